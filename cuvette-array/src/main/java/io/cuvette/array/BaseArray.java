package io.cuvette.array;

import java.util.Objects;

/**
 * What arrays on devices and on the host have in common.
 *
 * @param <A> the kind of array
 */
abstract sealed class BaseArray<A extends NdArray> extends ComputedArray<A>
    permits CudaArray, HostArray {
  private final ElementType type;
  private final Layout layout;

  BaseArray(ElementType type, Layout layout) {
    this.type = Objects.requireNonNull(type, "type");
    this.layout = Objects.requireNonNull(layout, "layout");
  }

  /**
   * Implements {@link NdArray#type()}.
   *
   * @return the type of the elements
   */
  public final ElementType type() {
    return type;
  }

  /**
   * Implements {@link NdArray#layout()}.
   *
   * @return the layout
   */
  public final Layout layout() {
    return layout;
  }

  /**
   * Implements {@link NdArray#module()}.
   *
   * @return the module
   */
  public abstract ArrayModule<A> module();

  @Override
  final BaseArray<A> base() {
    return this;
  }

  /** Where the memory begins; 0 for an array of Java. */
  abstract long memoryAddress();

  /** Where the element with the indices 0 is, in bytes. */
  final long firstByte() {
    return layout.offset() * type.bytes();
  }

  /** Itself as the public type. */
  abstract A self();

  /** The same memory in another shape: the only one that is used from now on. */
  abstract A renamed(Layout changed);

  /** Another view of the same memory. */
  abstract A view(Layout changed);

  abstract void fillWith(Scalar value);

  /** Whether a byte belongs to an element of both. */
  abstract boolean overlaps(BaseArray<?> other);

  /** Throws if the memory has been freed. */
  abstract void checkOpen();

  private A open(Layout changed) {
    checkOpen();
    return view(changed);
  }

  /**
   * Implements {@link NdArray#slice(Range...)}.
   *
   * @param ranges what is taken of each axis
   * @return the view
   */
  public final A slice(Range... ranges) {
    return open(layout.slice(ranges));
  }

  /**
   * Implements {@link NdArray#reshape(long...)}.
   *
   * @param shape the size of each axis
   * @return the view or copy
   */
  public final A reshape(long... shape) {
    checkOpen();
    return layout
        .reshape(shape)
        .map(this::view)
        .orElseGet(() -> Copies.reshaped(this, layout.reshapedShape(shape)));
  }

  /**
   * Implements {@link NdArray#transpose()}.
   *
   * @return the view
   */
  public final A transpose() {
    return open(layout.transpose());
  }

  /**
   * Implements {@link NdArray#transpose(int...)}.
   *
   * @param axes the axes
   * @return the view
   */
  public final A transpose(int... axes) {
    return open(layout.transpose(axes));
  }

  /**
   * Implements {@link NdArray#broadcastTo(long...)}.
   *
   * @param shape the size of each axis
   * @return the view
   */
  public final A broadcastTo(long... shape) {
    return open(layout.broadcastTo(shape));
  }

  /**
   * Implements {@link NdArray#squeeze()}.
   *
   * @return the view
   */
  public final A squeeze() {
    return open(layout.squeeze());
  }

  /**
   * Implements {@link NdArray#squeeze(int...)}.
   *
   * @param axes the axes
   * @return the view
   */
  public final A squeeze(int... axes) {
    return open(layout.squeeze(axes));
  }

  /**
   * Implements {@link NdArray#expand(int)}.
   *
   * @param axis the axis
   * @return the view
   */
  public final A expand(int axis) {
    return open(layout.expand(axis));
  }

  /**
   * Implements {@link NdArray#copy()}.
   *
   * @return the copy
   */
  public final A copy() {
    return copy(Order.C);
  }

  /**
   * Implements {@link NdArray#copy(Order)}.
   *
   * @param order the order
   * @return the copy
   */
  public final A copy(Order order) {
    checkOpen();
    return module().copy(self(), type, order);
  }

  /**
   * Implements {@link NdArray#asType(ElementType)}.
   *
   * @param type the type of the copy
   * @return the copy
   */
  public final A asType(ElementType type) {
    checkOpen();
    return module().copy(self(), Objects.requireNonNull(type, "type"), Order.K);
  }

  /**
   * Implements {@link NdArray#fill(long)}.
   *
   * @param value the value
   */
  public final void fill(long value) {
    fillWith(Scalar.of(type, value));
  }

  /**
   * Implements {@link NdArray#fill(double)}.
   *
   * @param value the value
   */
  public final void fill(double value) {
    fillWith(Scalar.of(type, value));
  }

  /**
   * Implements {@link NdArray#fill(Complex)}.
   *
   * @param value the value
   */
  public final void fill(Complex value) {
    fillWith(Scalar.of(type, value));
  }

  /**
   * Implements {@link NdArray#toArray(Class)}.
   *
   * @param javaType the class of the array
   * @param <T> that class
   * @return the array
   */
  public final <T> T toArray(Class<T> javaType) {
    return JavaArrays.write(self(), javaType);
  }

  /** The place of the lowest element in bytes from the start of the memory. */
  final long lowestByte() {
    return layout.lowest() * type.bytes();
  }

  /**
   * Implements {@link NdArray#isReadOnly()}.
   *
   * @return whether it is
   */
  public abstract boolean isReadOnly();

  /** That the elements can be written: that no two of them are one, and the memory may be. */
  void checkWritable() {
    if (isReadOnly()) {
      throw new IllegalArgumentException(this + " is read-only");
    }
    if (!layout.hasDistinctElements()) {
      throw new IllegalArgumentException(
          "target: %s (expected: no two elements in one place, as a broadcast array has)"
              .formatted(layout));
    }
  }

  /** That the elements lie in a memory of some bytes. */
  static void checkFits(ElementType type, Layout layout, long bytes) {
    long lowest = layout.lowest();
    long end = layout.end();
    if (layout.size() > 0 && (lowest < 0 || end > bytes / type.bytes())) {
      throw new IllegalArgumentException(
          "%s of %s: elements %d to %d, of %d bytes each (expected: within %d bytes)"
              .formatted(layout, type, lowest, end - 1, type.bytes(), bytes));
    }
  }

  /** The bytes of an array without gaps; checked, as the number of elements alone need not fit. */
  static long bytes(ElementType type, Layout layout) {
    try {
      return Math.multiplyExact(layout.size(), (long) type.bytes());
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException(
          "%d elements of %s (expected: at most 2^63-1 bytes)".formatted(layout.size(), type), e);
    }
  }
}
