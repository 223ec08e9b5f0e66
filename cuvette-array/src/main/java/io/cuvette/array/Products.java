package io.cuvette.array;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** Multiplies matrices in the last two axes of arrays. Stateless. */
final class Products {
  private Products() {}

  static <A extends NdArray> A matmul(BaseArray<A> a, NdArray other, @Nullable NdArray out) {
    BaseArray<?> b = (BaseArray<?>) other;
    ElementType type = checked(a, b);
    boolean isRow = a.layout().rank() == 1;
    boolean isColumn = b.layout().rank() == 1;
    BaseArray<?> left = isRow ? view(a, a.layout().expand(0)) : a;
    BaseArray<?> right = isColumn ? view(b, b.layout().expand(1)) : b;
    checkInner(a, b, left.layout().shape(-1), right.layout().shape(-2));
    long[] batch = Layout.broadcastShape(batch(left), batch(right));
    long[] full = LayoutViews.joined(batch, left.layout().shape(-2), right.layout().shape(-1));
    int[] dropped =
        IntStream.of(isRow ? full.length - 2 : -1, isColumn ? full.length - 1 : -1)
            .filter(axis -> axis >= 0)
            .toArray();
    Layout result = Layout.of(full).squeeze(dropped);
    BaseArray<A> target = Outs.check(a, out, type, result.sizes(), List.of(a, b), false);
    if (target != null && !Matrices.isByLines(expanded(target.layout(), dropped))) {
      throw new IllegalArgumentException(
          "out: %s (expected: rows or columns without gaps in them)".formatted(target.layout()));
    }
    return Outs.fill(
        a,
        target,
        () -> a.module().allocate(type, result),
        made -> multiply(view(made, expanded(made.layout(), dropped)), left, right, type));
  }

  /** With the axes of size 1 that the result does not have. */
  private static Layout expanded(Layout layout, int... axes) {
    Layout result = layout;
    for (int axis : axes) {
      result = result.expand(axis);
    }
    return result;
  }

  private static BaseArray<?> view(BaseArray<?> a, Layout layout) {
    return (BaseArray<?>) a.view(layout);
  }

  private static ElementType checked(BaseArray<?> a, BaseArray<?> b) {
    a.checkOpen();
    b.checkOpen();
    Places.checkSame(a, "other", b);
    if (a.layout().rank() == 0 || b.layout().rank() == 0) {
      throw new IllegalArgumentException(
          "product of shapes %s and %s (expected: at least one axis each)"
              .formatted(Arrays.toString(a.layout().sizes()), Arrays.toString(b.layout().sizes())));
    }
    ElementType type = a.type().commonWith(b.type());
    if (!type.isFloating() && !type.isComplex()) {
      throw new IllegalArgumentException(
          "product of %s and %s (expected: a floating or complex type; convert one with asType)"
              .formatted(a.type(), b.type()));
    }
    return type;
  }

  private static void checkInner(BaseArray<?> a, BaseArray<?> b, long one, long other) {
    if (one != other) {
      throw new IllegalArgumentException(
          "product of shapes %s and %s: %d columns, %d rows (expected: the same)"
              .formatted(
                  Arrays.toString(a.layout().sizes()),
                  Arrays.toString(b.layout().sizes()),
                  one,
                  other));
    }
  }

  private static long[] batch(BaseArray<?> a) {
    return Arrays.copyOf(a.layout().sizes(), a.layout().rank() - 2);
  }

  /** Multiplies into an array of the right type and shape. */
  private static void multiply(BaseArray<?> c, BaseArray<?> a, BaseArray<?> b, ElementType type) {
    if (c.layout().size() == 0) {
      return;
    }
    if (a.layout().shape(-1) == 0) {
      c.fillWith(Scalar.of(type, 0));
      return;
    }
    List<NdArray> copies = new ArrayList<>();
    try {
      BaseArray<?> left = ready(a, type, copies);
      BaseArray<?> right = ready(b, type, copies);
      if (c instanceof HostArray host) {
        HostProducts.multiply(host, (HostArray) left, (HostArray) right);
      } else if (Matrices.line(c.layout(), 0) != null) {
        DeviceProducts.multiply((CudaArray) c, (CudaArray) left, (CudaArray) right);
      } else { // by rows: the transposed product by columns
        DeviceProducts.multiply(
            (CudaArray) Matrices.transposed(c),
            (CudaArray) Matrices.transposed(right),
            (CudaArray) Matrices.transposed(left));
      }
    } finally {
      copies.forEach(NdArray::close);
    }
  }

  /** An operand of the type that is computed with, whose matrices cuBLAS can read. */
  private static BaseArray<?> ready(BaseArray<?> a, ElementType type, List<NdArray> copies) {
    boolean isReady =
        a.type() == type && (a instanceof HostArray || Matrices.isByLines(a.layout()));
    if (isReady) {
      return a;
    }
    NdArray copy = a.module().copy(a.self(), type, Order.C);
    copies.add(copy);
    return (BaseArray<?>) copy;
  }

  static <A extends NdArray> A dot(BaseArray<A> a, NdArray other) {
    BaseArray<?> b = (BaseArray<?>) other;
    checked(a, b);
    int rank = b.layout().rank();
    if (rank <= 2 && (a.layout().rank() <= 2 || rank == 1)) {
      return matmul(a, other, null);
    }
    long inner = a.layout().shape(-1);
    checkInner(a, b, inner, b.layout().shape(rank == 1 ? 0 : -2));
    long[] rows = Arrays.copyOf(a.layout().sizes(), a.layout().rank() - 1);
    int[] innerFirst =
        IntStream.concat(
                IntStream.of(rank - 2), IntStream.range(0, rank).filter(axis -> axis != rank - 2))
            .toArray();
    BaseArray<?> moved = view(b, b.layout().transpose(innerFirst));
    long[] columns = Arrays.copyOfRange(moved.layout().sizes(), 1, rank);
    Layout result = Layout.of(LayoutViews.joined(rows, columns));
    try (NdArray left = a.reshape(LayoutChecks.size(rows), inner);
        NdArray right = moved.reshape(inner, LayoutChecks.size(columns))) {
      @SuppressWarnings("unchecked") // it was reshaped from an A
      BaseArray<A> reshaped = (BaseArray<A>) left;
      A product = matmul(reshaped, right, null);
      return Outs.renamed(product, result);
    }
  }
}
