package io.cuvette.array;

import io.cuvette.CudaStream;
import org.jspecify.annotations.Nullable;

/**
 * An array of elements of one type with any number of axes, on a device ({@link CudaArray}) or on
 * the host ({@link HostArray}). Programs written against this type and its {@link #module()} run on
 * both.
 *
 * <p>An array that owns its memory frees it when closed, in stream order. Slices, transposed,
 * broadcast and mostly also reshaped arrays are views: they share the memory of the array they were
 * taken from, keep it reachable, and are closed with it; closing a view does nothing. Type, shape
 * and layout of a closed array can still be read.
 *
 * <p>Operations on device arrays are queued in the stream that is current on this thread for the
 * array's device, and do not wait unless something moves to or from the host. Host arrays are
 * changed at once.
 *
 * <p>Thread-safe as a {@link io.cuvette.Buffer} is: closing an array while other threads use it is
 * safe, and writing elements that others read is the caller's to order.
 */
public sealed interface NdArray extends NdOperations, AutoCloseable permits CudaArray, HostArray {

  /** {@return the type of the elements} */
  ElementType type();

  /** {@return where the elements lie in the memory} */
  Layout layout();

  /** {@return what makes arrays where this one is, in the way of CuPy's get_array_module} */
  ArrayModule<? extends NdArray> module();

  /** {@return the size of each axis} */
  default long[] shape() {
    return layout().shape();
  }

  /** {@return the number of axes; 0 for an array of one element without axes} */
  default int rank() {
    return layout().rank();
  }

  /** {@return the number of elements} */
  default long size() {
    return layout().size();
  }

  /**
   * {@return the size of all elements in bytes, without gaps between them}
   *
   * @throws IllegalArgumentException if that is more than a long counts, as of a broadcast array
   */
  default long byteSize() {
    return BaseArray.bytes(type(), layout());
  }

  /**
   * {@return whether the elements follow each other without a gap in an order}
   *
   * @param order C or F
   */
  default boolean isContiguous(Order order) {
    return layout().isContiguous(order);
  }

  /** {@return whether the memory belongs to another array, a buffer or the caller} */
  boolean isView();

  /**
   * {@return whether operations that write the elements are refused, as of memory that another
   * library or a segment has for reading alone} Kernels that are given the buffer are not kept from
   * writing.
   */
  boolean isReadOnly();

  /** {@return whether the memory has been freed} */
  boolean isClosed();

  /**
   * {@return a part of the array as a view}
   *
   * @param ranges what is taken of each axis, from the first on; axes without one are taken whole
   * @throws IndexOutOfBoundsException for an index that is not inside
   * @throws IllegalArgumentException for more ranges than axes
   */
  NdArray slice(Range... ranges);

  /**
   * {@return the elements in another shape, in order {@link Order#C} of both} A view if the strides
   * allow it ({@link Layout#reshape}), else a copy that the caller closes.
   *
   * @param shape the size of each axis; -1 once, for the size that follows from the others
   * @throws IllegalArgumentException if the number of elements would change
   */
  NdArray reshape(long... shape);

  /** {@return the array with its axes in reverse order, as a view} */
  NdArray transpose();

  /**
   * {@return the array with its axes in another order, as a view}
   *
   * @param axes which axis of this comes where, each once; from the end if negative
   * @throws IllegalArgumentException if not each axis is named once
   */
  NdArray transpose(int... axes);

  /**
   * {@return the elements repeated to a larger shape, as a view that cannot be written}
   *
   * @param shape the size of each axis
   * @throws IllegalArgumentException if the shapes do not fit
   */
  NdArray broadcastTo(long... shape);

  /** {@return the array without all axes of size 1, as a view} */
  NdArray squeeze();

  /**
   * {@return the array without some axes of size 1, as a view}
   *
   * @param axes the axes, from the end if negative
   * @throws IllegalArgumentException for an axis of another size
   */
  NdArray squeeze(int... axes);

  /**
   * {@return the array with one axis of size 1 more, as a view}
   *
   * @param axis where the axis is in the result, from the end if negative
   * @throws IndexOutOfBoundsException for another place
   */
  NdArray expand(int axis);

  /** {@return a copy in order C, which the caller closes} */
  NdArray copy();

  /**
   * {@return a copy, which the caller closes}
   *
   * @param order in which order the copy lies
   */
  NdArray copy(Order order);

  /**
   * {@return a copy with elements of another type, in order K, which the caller closes} Floating
   * point becomes an integer by rounding towards zero, what is no number becomes 0, and what is out
   * of range the nearest bound. Integers lose their upper bits, complex numbers their imaginary
   * part. All but 0 and false become true. Floating point is rounded to the nearest, ties to even.
   *
   * @param type the type of the copy
   */
  NdArray asType(ElementType type);

  /**
   * Copies the elements of another array of any type, broadcast to this shape, into this one. Waits
   * if one of them is on the host.
   *
   * @param source the array that is read
   * @throws IllegalArgumentException if the shapes do not fit, both have bytes in common, or
   *     elements of this one are the same
   */
  void copyFrom(NdArray source);

  /**
   * Gives all elements a value.
   *
   * @param value the value, which must be in the range of an integer type
   * @throws IllegalArgumentException if an integer type does not hold it
   */
  void fill(long value);

  /**
   * Gives all elements a value, rounded as {@link #asType} does.
   *
   * @param value the value; for an integer type, which must hold it, an integer
   * @throws IllegalArgumentException if an integer type does not hold it
   */
  void fill(double value);

  /**
   * Gives all elements a value.
   *
   * @param value the value; real unless the type is complex
   * @throws IllegalArgumentException if the type does not hold it
   */
  void fill(Complex value);

  /**
   * {@link #toHost(CudaStream, Order, HostArray, boolean)} with the current stream, order C, a new
   * array, and waiting.
   *
   * @return the array on the host
   */
  default HostArray toHost() {
    return toHost(null, Order.C, null, true);
  }

  /**
   * Copies the array to the host, as CuPy's asnumpy.
   *
   * <p>An array that is on the host already is returned as a view, if it lies in the order and
   * there is no {@code out}.
   *
   * @param stream the stream of the copy, of this array's device; null for the current one
   * @param order in which order the result lies: C, F or A; ignored if there is an {@code out}
   * @param out where the elements go: same type and shape, contiguous in order C or F; null for a
   *     new array in page-locked memory, which the caller closes
   * @param blocking whether to wait until the copy is done. If not, it is queued: the stream must
   *     be synchronised before the result is read. Until it is done both memories are kept, also if
   *     the arrays are closed; an {@code out} must be page-locked
   * @return {@code out}, or the new array
   * @throws IllegalArgumentException if {@code out} does not fit or could move while it is written
   */
  HostArray toHost(
      @Nullable CudaStream stream, Order order, @Nullable HostArray out, boolean blocking);

  /**
   * Copies the elements into a new array of Java, nested once for each axis.
   *
   * @param javaType the class of the array, {@code float[][].class} for example: as many dimensions
   *     as axes, and of the element type that {@link ElementType#of} names
   * @param <T> that class
   * @return the array
   * @throws IllegalArgumentException for another class, or if an axis exceeds what an array of Java
   *     holds
   */
  <T> T toArray(Class<T> javaType);

  /** Frees the memory in stream order, if this array owns it. Idempotent. */
  @Override
  void close();
}
