package io.cuvette.array;

import java.util.Arrays;
import java.util.Objects;
import java.util.Optional;

/**
 * Where the elements of an array lie in its memory: the shape, how many elements apart neighbours
 * along each axis are, and where the first one is. All numbers count elements, not bytes. A value;
 * the element with the index <i>i</i> is at offset + &Sigma; <i>i<sub>k</sub></i> ·
 * stride<i><sub>k</sub></i>.
 *
 * <p>A layout without axes has one element; one with an axis of size 0 has none. Sizes are longs
 * and may exceed 2<sup>31</sup>; what does not fit into a long is refused.
 */
public final class Layout {
  /** The most axes a layout has: {@value}. */
  public static final int MAX_RANK = 32;

  private final long[] shape;
  private final long[] strides;
  private final long offset;
  private final long size;

  /** Checked by {@link LayoutChecks}; the arrays are its own. */
  private Layout(long[] shape, long[] strides, long offset) {
    this.shape = shape;
    this.strides = strides;
    this.offset = offset;
    this.size = LayoutChecks.size(shape);
  }

  /**
   * {@return the layout of a shape in order {@link Order#C}, which begins at 0}
   *
   * @param shape the size of each axis, >= 0
   * @throws IllegalArgumentException for a negative size, too many axes, or more elements than a
   *     long counts
   */
  public static Layout of(long... shape) {
    return of(Order.C, shape);
  }

  /**
   * {@return the layout of a shape in an order, which begins at 0}
   *
   * @param order C or F
   * @param shape the size of each axis, >= 0
   * @throws IllegalArgumentException for another order, a negative size, too many axes, or more
   *     elements than a long counts
   */
  public static Layout of(Order order, long... shape) {
    LayoutChecks.plainOrder(order);
    long[] own = LayoutChecks.shape(shape);
    return new Layout(own, LayoutViews.dense(own, LayoutViews.axes(own.length, order)), 0);
  }

  /**
   * {@return a layout with any strides}
   *
   * @param shape the size of each axis, >= 0
   * @param strides the distance of neighbours along each axis in elements, of any sign, also 0
   * @param offset where the element with the indices 0 is, in elements, >= 0
   * @throws IllegalArgumentException if there are not as many strides as axes, or an element would
   *     lie before 0 or beyond what a long counts
   */
  public static Layout strided(long[] shape, long[] strides, long offset) {
    long[] own = LayoutChecks.shape(shape);
    long[] ownStrides = LayoutChecks.strides(own, strides);
    LayoutChecks.inside(own, ownStrides, offset);
    return new Layout(own, ownStrides, offset);
  }

  /** {@return the number of axes} */
  public int rank() {
    return shape.length;
  }

  /** {@return the size of each axis} */
  public long[] shape() {
    return shape.clone();
  }

  /**
   * {@return the size of an axis}
   *
   * @param axis the axis, from the end if negative
   * @throws IndexOutOfBoundsException for an axis that it does not have
   */
  public long shape(int axis) {
    return shape[LayoutChecks.axis(axis, rank())];
  }

  /** {@return the distance of neighbours along each axis, in elements} */
  public long[] strides() {
    return strides.clone();
  }

  /**
   * {@return the distance of neighbours along an axis, in elements}
   *
   * @param axis the axis, from the end if negative
   * @throws IndexOutOfBoundsException for an axis that it does not have
   */
  public long stride(int axis) {
    return strides[LayoutChecks.axis(axis, rank())];
  }

  /** {@return where the element with the indices 0 is, in elements} */
  public long offset() {
    return offset;
  }

  /** {@return the number of elements} */
  public long size() {
    return size;
  }

  /** {@return where the element with the lowest address is, in elements; the offset if empty} */
  public long lowest() {
    return size == 0 ? offset : offset + LayoutViews.reach(shape, strides, false);
  }

  /** {@return where the memory of the highest element ends, in elements; the offset if empty} */
  public long end() {
    return size == 0 ? offset : offset + LayoutViews.reach(shape, strides, true) + 1;
  }

  /**
   * {@return where an element is, in elements}
   *
   * @param index one index for each axis, from the end of the axis if negative
   * @throws IndexOutOfBoundsException for an index that is not inside
   * @throws IllegalArgumentException if there are not as many indices as axes
   */
  public long at(long... index) {
    Objects.requireNonNull(index, "index");
    if (index.length != rank()) {
      throw new IllegalArgumentException(
          "%d indices (expected: %d, the shape is %s)"
              .formatted(index.length, rank(), Arrays.toString(shape)));
    }
    long place = offset;
    for (int axis = 0; axis < index.length; axis++) {
      place += LayoutChecks.index(index[axis], axis, shape[axis]) * strides[axis];
    }
    return place;
  }

  /**
   * {@return whether the elements follow each other without a gap in an order} Layouts with at most
   * one element are contiguous in both orders.
   *
   * @param order C or F
   */
  public boolean isContiguous(Order order) {
    LayoutChecks.plainOrder(order);
    return size == 0 || LayoutViews.isDense(shape, strides, LayoutViews.axes(rank(), order));
  }

  /**
   * {@return whether the elements fill one range of memory, each once, in any order of axes and
   * directions} A copy of such a layout can be one copy of that range.
   */
  public boolean isDense() {
    return size == 0 || (end() - lowest() == size && hasDistinctElements());
  }

  /**
   * {@return whether no two indices are the same element} False for layouts that were broadcast,
   * and for those with other strides by which that cannot be told at once.
   */
  public boolean hasDistinctElements() {
    return size == 0 || LayoutViews.areDistinct(shape, strides);
  }

  /**
   * {@return the part that some ranges choose}
   *
   * @param ranges one for each axis from the first on, or fewer; see {@link Range}
   * @throws IndexOutOfBoundsException for an index that is not inside
   * @throws IllegalArgumentException for more ranges than axes
   */
  public Layout slice(Range... ranges) {
    return LayoutViews.slice(this, ranges);
  }

  /**
   * {@return the elements in another shape, in order {@link Order#C} of both, if the strides allow
   * that without moving one}
   *
   * @param shape the size of each axis; -1 once, for the size that follows from the others
   * @throws IllegalArgumentException if the number of elements would change
   */
  public Optional<Layout> reshape(long... shape) {
    long[] target = LayoutChecks.reshaped(this, shape);
    return Optional.ofNullable(LayoutViews.reshapedStrides(this, target))
        .map(changed -> new Layout(target, changed, offset));
  }

  /**
   * {@return the shape that {@link #reshape} gives}
   *
   * @param shape the size of each axis; -1 once, for the size that follows from the others
   * @throws IllegalArgumentException if the number of elements would change
   */
  public long[] reshapedShape(long... shape) {
    return LayoutChecks.reshaped(this, shape);
  }

  /** {@return the axes in reverse order} */
  public Layout transpose() {
    int[] reversed = new int[rank()];
    Arrays.setAll(reversed, axis -> rank() - 1 - axis);
    return transpose(reversed);
  }

  /**
   * {@return the axes in another order}
   *
   * @param axes which axis of this comes where, each once; from the end if negative
   * @throws IllegalArgumentException if not each axis is named once
   */
  public Layout transpose(int... axes) {
    int[] from = LayoutChecks.permutation(axes, rank());
    long[] changed = new long[rank()];
    long[] changedStrides = new long[rank()];
    for (int axis = 0; axis < from.length; axis++) {
      changed[axis] = shape[from[axis]];
      changedStrides[axis] = strides[from[axis]];
    }
    return new Layout(changed, changedStrides, offset);
  }

  /**
   * {@return the elements repeated to a larger shape, by strides of 0} Axes are added in front, and
   * axes of size 1 grow.
   *
   * @param shape the size of each axis
   * @throws IllegalArgumentException if the shapes do not fit
   */
  public Layout broadcastTo(long... shape) {
    long[] target = LayoutChecks.shape(shape);
    return new Layout(target, LayoutViews.broadcastStrides(this, target), offset);
  }

  /**
   * {@return the shape to which all of some shapes can be broadcast}
   *
   * @param shapes the shapes
   * @throws IllegalArgumentException if there is none
   */
  public static long[] broadcastShape(long[]... shapes) {
    return LayoutViews.broadcastShape(shapes);
  }

  /** {@return this without all axes of size 1} */
  public Layout squeeze() {
    int[] ones = LayoutViews.axesOfOne(shape);
    return LayoutViews.without(this, ones);
  }

  /**
   * {@return this without some axes of size 1}
   *
   * @param axes the axes, from the end if negative
   * @throws IllegalArgumentException for an axis of another size
   */
  public Layout squeeze(int... axes) {
    return LayoutViews.without(this, LayoutChecks.axesOfOne(axes, shape));
  }

  /**
   * {@return this with one axis of size 1 more}
   *
   * @param axis where the axis is in the result, 0 to {@link #rank()}, from the end if negative
   * @throws IndexOutOfBoundsException for another place
   */
  public Layout expand(int axis) {
    return LayoutViews.with(this, LayoutChecks.axis(axis, rank() + 1));
  }

  /**
   * {@return the layout of a copy, which begins at 0 and has no gaps}
   *
   * @param order in which order the copy lies
   */
  public Layout like(Order order) {
    return like(order, shape);
  }

  /**
   * {@return the layout of an array of another shape in the order of this one, which begins at 0
   * and has no gaps}
   *
   * @param order in which order it lies; A and K mean C if the number of axes differs
   * @param shape the size of each axis, >= 0
   */
  public Layout like(Order order, long... shape) {
    long[] own = LayoutChecks.shape(shape);
    return switch (Objects.requireNonNull(order, "order")) {
      case C, F -> of(order, own);
      case A -> of(own.length == rank() && isFortran() ? Order.F : Order.C, own);
      case K ->
          own.length == rank()
              ? new Layout(own, LayoutViews.dense(own, LayoutViews.byStride(strides)), 0)
              : of(own);
    };
  }

  private boolean isFortran() {
    return isContiguous(Order.F) && !isContiguous(Order.C);
  }

  /** {@return whether both have the same shape} */
  boolean hasShapeOf(Layout other) {
    return Arrays.equals(shape, other.shape);
  }

  /** One made of checked parts, which become its own. */
  static Layout view(long[] shape, long[] strides, long offset) {
    return new Layout(shape, strides, offset);
  }

  /** The parts themselves, which nobody changes. */
  long[] sizes() {
    return shape;
  }

  long[] steps() {
    return strides;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Layout that
        && offset == that.offset
        && Arrays.equals(shape, that.shape)
        && Arrays.equals(strides, that.strides);
  }

  @Override
  public int hashCode() {
    return 31 * (31 * Arrays.hashCode(shape) + Arrays.hashCode(strides)) + Long.hashCode(offset);
  }

  @Override
  public String toString() {
    return "Layout[shape=%s, strides=%s, offset=%d]"
        .formatted(Arrays.toString(shape), Arrays.toString(strides), offset);
  }
}
