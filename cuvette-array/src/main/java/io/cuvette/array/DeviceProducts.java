package io.cuvette.array;

import io.cuvette.Buffer;
import io.cuvette.CudaStream;
import io.cuvette.LibraryHandle;
import io.cuvette.MatrixProducts;
import io.cuvette.array.internal.kernel.Axes;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixType;
import java.util.Arrays;
import java.util.Objects;

/** Multiplies matrices on a device, by cuBLAS. Stateless. */
final class DeviceProducts {
  private DeviceProducts() {}

  /** Multiplies matrices, of which there are some, in the current stream; results by columns. */
  static void multiply(CudaArray c, CudaArray a, CudaArray b) {
    long[] shape = Arrays.copyOf(c.layout().sizes(), c.layout().rank() - 2);
    Axes axes = Axes.anyOrder(shape, strides(c, shape), strides(a, shape), strides(b, shape));
    CudaStream stream = c.current();
    try (LibraryHandle cublas = c.device().useCublas(stream)) {
      new Batches(cublas, c, a, b, axes).run(axes.shape().length - 1, 0, 0, 0);
    }
  }

  /** The distances of matrices, in elements. */
  private static long[] strides(CudaArray a, long[] shape) {
    int own = a.layout().rank() - 2;
    long[] strides = new long[shape.length];
    for (int axis = 0; axis < own; axis++) {
      boolean isRepeated = a.layout().sizes()[axis] == 1;
      strides[shape.length - own + axis] = isRepeated ? 0 : a.layout().steps()[axis];
    }
    return strides;
  }

  /** One call for each batch at equal distances. */
  private record Batches(LibraryHandle cublas, CudaArray c, CudaArray a, CudaArray b, Axes axes) {

    void run(int axis, long inC, long inA, long inB) {
      boolean isLast = axis <= 0 && canBeOne();
      if (axis < 0 || isLast) {
        multiply(axis < 0 ? 1 : axes.shape()[0], inC, inA, inB);
        return;
      }
      for (long i = 0; i < axes.shape()[axis]; i++) {
        run(
            axis - 1,
            inC + i * axes.strides()[0][axis],
            inA + i * axes.strides()[1][axis],
            inB + i * axes.strides()[2][axis]);
      }
    }

    /** Whether the first axis is a batch: no matrix lies before another, results do not mix. */
    private boolean canBeOne() {
      long most = c.layout().stride(-1) * (c.layout().shape(-1) - 1) + c.layout().shape(-2);
      return axes.shape().length > 0
          && axes.strides()[0][0] >= most
          && axes.strides()[1][0] >= 0
          && axes.strides()[2][0] >= 0;
    }

    private void multiply(long batch, long inC, long inA, long inB) {
      MatrixProduct product =
          new MatrixProduct(
              type(c.type()),
              c.layout().shape(-2),
              c.layout().shape(-1),
              a.layout().shape(-1),
              Objects.requireNonNull(Matrices.operand(a.layout(), stride(1, batch))),
              Objects.requireNonNull(Matrices.operand(b.layout(), stride(2, batch))),
              Objects.requireNonNull(Matrices.line(c.layout(), stride(0, batch))),
              batch);
      MatrixProducts.multiply(cublas, product, from(c, inC), from(a, inA), from(b, inB));
    }

    private long stride(int array, long batch) {
      return batch == 1 ? 0 : axes.strides()[array][0];
    }

    private static Buffer from(CudaArray array, long place) {
      return array.buffer().slice((array.layout().offset() + place) * array.type().bytes());
    }
  }

  private static MatrixType type(ElementType type) {
    return switch (type) {
      case FLOAT16 -> MatrixType.HALF;
      case BFLOAT16 -> MatrixType.BFLOAT16;
      case FLOAT32 -> MatrixType.FLOAT;
      case FLOAT64 -> MatrixType.DOUBLE;
      case COMPLEX64 -> MatrixType.COMPLEX_FLOAT;
      case COMPLEX128 -> MatrixType.COMPLEX_DOUBLE;
      default -> throw new AssertionError(type);
    };
  }
}
