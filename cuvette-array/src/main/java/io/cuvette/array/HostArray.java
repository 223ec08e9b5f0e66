package io.cuvette.array;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * An array of elements in memory of the host: page-locked, so that devices copy it at full speed
 * and without waiting, or any other that was wrapped. {@link HostArrays} makes them. Its elements
 * are those of the host: wait for the streams that write them before reading. See {@link NdArray}
 * for its operations, for views and for threads.
 */
public final class HostArray extends BaseArray<HostArray> implements NdArray {
  private final Cuda cuda;
  private final MemorySegment memory;
  private final @Nullable PinnedBuffer pinned;
  private final @Nullable ImportedMemory imported;
  private final boolean owner;

  HostArray(
      Cuda cuda,
      MemorySegment memory,
      @Nullable PinnedBuffer pinned,
      ElementType type,
      Layout layout,
      boolean owner) {
    this(cuda, memory, pinned, null, type, layout, owner);
  }

  HostArray(
      Cuda cuda,
      MemorySegment memory,
      @Nullable PinnedBuffer pinned,
      @Nullable ImportedMemory imported,
      ElementType type,
      Layout layout,
      boolean owner) {
    super(type, layout);
    this.cuda = cuda;
    this.memory = memory;
    this.pinned = pinned;
    this.imported = imported;
    this.owner = owner;
  }

  /** One that owns page-locked memory; frees it if that fails. */
  static HostArray of(Cuda cuda, PinnedBuffer pinned, ElementType type, Layout layout) {
    try {
      return new HostArray(cuda, pinned.segment(), pinned, type, layout, true);
    } catch (RuntimeException | Error e) {
      pinned.close();
      throw e;
    }
  }

  /**
   * {@return an array in page-locked memory whose elements have no particular value, in order C}
   *
   * @param cuda whose pinned allocator
   * @param type the type of the elements
   * @param shape the size of each axis, >= 0
   */
  public static HostArray emptyPinned(Cuda cuda, ElementType type, long... shape) {
    return HostArrays.of(cuda).empty(type, shape);
  }

  /**
   * {@return an array in page-locked memory whose elements have no particular value}
   *
   * @param cuda whose pinned allocator
   * @param type the type of the elements
   * @param order C or F
   * @param shape the size of each axis, >= 0
   */
  public static HostArray emptyPinned(Cuda cuda, ElementType type, Order order, long... shape) {
    return HostArrays.of(cuda).empty(type, order, shape);
  }

  /**
   * {@return zeros in page-locked memory, in order C}
   *
   * @param cuda whose pinned allocator
   * @param type the type of the elements
   * @param shape the size of each axis, >= 0
   */
  public static HostArray zerosPinned(Cuda cuda, ElementType type, long... shape) {
    return HostArrays.of(cuda).zeros(type, shape);
  }

  /**
   * {@return zeros in page-locked memory}
   *
   * @param cuda whose pinned allocator
   * @param type the type of the elements
   * @param order C or F
   * @param shape the size of each axis, >= 0
   */
  public static HostArray zerosPinned(Cuda cuda, ElementType type, Order order, long... shape) {
    return HostArrays.of(cuda).zeros(type, order, shape);
  }

  /**
   * {@return an array in page-locked memory with type and shape of another, in order K}
   *
   * @param a the other array, on a device or not
   */
  public static HostArray emptyLikePinned(NdArray a) {
    return host(a).emptyLike(a);
  }

  /**
   * {@return an array in page-locked memory with the shape of another}
   *
   * @param a the other array, on a device or not
   * @param type the type of the elements
   * @param order the order, which may follow that of the other array
   */
  public static HostArray emptyLikePinned(NdArray a, ElementType type, Order order) {
    return host(a).emptyLike(a, type, order);
  }

  /**
   * {@return an array in page-locked memory in the order of another}
   *
   * @param a the other array, on a device or not
   * @param type the type of the elements
   * @param order the order; if the number of axes differs, A and K mean C
   * @param shape the size of each axis, >= 0
   */
  public static HostArray emptyLikePinned(NdArray a, ElementType type, Order order, long... shape) {
    return host(a).emptyLike(a, type, order, shape);
  }

  /**
   * {@return zeros in page-locked memory with type and shape of another array, in order K}
   *
   * @param a the other array, on a device or not
   */
  public static HostArray zerosLikePinned(NdArray a) {
    return host(a).zerosLike(a);
  }

  /**
   * {@return zeros in page-locked memory with the shape of another array}
   *
   * @param a the other array, on a device or not
   * @param type the type of the elements
   * @param order the order, which may follow that of the other array
   */
  public static HostArray zerosLikePinned(NdArray a, ElementType type, Order order) {
    return host(a).zerosLike(a, type, order);
  }

  /**
   * {@return zeros in page-locked memory in the order of another array}
   *
   * @param a the other array, on a device or not
   * @param type the type of the elements
   * @param order the order; if the number of axes differs, A and K mean C
   * @param shape the size of each axis, >= 0
   */
  public static HostArray zerosLikePinned(NdArray a, ElementType type, Order order, long... shape) {
    return host(a).zerosLike(a, type, order, shape);
  }

  private static HostArrays host(NdArray a) {
    return HostArrays.of(Objects.requireNonNull(a, "a").module().cuda());
  }

  /**
   * {@return the memory that the elements lie in, at the {@link #layout()}'s places} That of the
   * array which owns it, also for views. It dies with that array.
   */
  public MemorySegment segment() {
    return memory;
  }

  /** {@return whether the memory is page-locked by this library} */
  public boolean isPinned() {
    return pinned != null;
  }

  /** The page-locked memory; null for any other. */
  @Nullable PinnedBuffer pinned() {
    return pinned;
  }

  /** The memory of another library; null for any other. */
  @Nullable ImportedMemory imported() {
    return imported;
  }

  /**
   * {@return an element of an integer type or BOOLEAN, where 1 is true; of UINT64 its bits}
   *
   * @param index one index for each axis, from the end of the axis if negative
   * @throws IndexOutOfBoundsException for an index that is not inside
   * @throws IllegalArgumentException for another type, or another number of indices
   */
  public long getLong(long... index) {
    return Elements.integer(type(), open(), byteOf(index));
  }

  /**
   * {@return an element of a real type, as the nearest double}
   *
   * @param index one index for each axis, from the end of the axis if negative
   * @throws IndexOutOfBoundsException for an index that is not inside
   * @throws IllegalArgumentException for a complex type, or another number of indices
   */
  public double getDouble(long... index) {
    return Elements.real(type(), open(), byteOf(index));
  }

  /**
   * {@return an element of any type}
   *
   * @param index one index for each axis, from the end of the axis if negative
   * @throws IndexOutOfBoundsException for an index that is not inside
   * @throws IllegalArgumentException for another number of indices
   */
  public Complex getComplex(long... index) {
    return Elements.complex(type(), open(), byteOf(index));
  }

  /**
   * Writes an element.
   *
   * @param value the value, see {@link #fill(long)}
   * @param index one index for each axis, from the end of the axis if negative
   * @throws IndexOutOfBoundsException for an index that is not inside
   * @throws IllegalArgumentException if an integer type does not hold it
   */
  public void setLong(long value, long... index) {
    put(Scalar.of(type(), value), index);
  }

  /**
   * Writes an element.
   *
   * @param value the value, see {@link #fill(double)}
   * @param index one index for each axis, from the end of the axis if negative
   * @throws IndexOutOfBoundsException for an index that is not inside
   * @throws IllegalArgumentException if an integer type does not hold it
   */
  public void setDouble(double value, long... index) {
    put(Scalar.of(type(), value), index);
  }

  /**
   * Writes an element.
   *
   * @param value the value, see {@link #fill(Complex)}
   * @param index one index for each axis, from the end of the axis if negative
   * @throws IndexOutOfBoundsException for an index that is not inside
   * @throws IllegalArgumentException if the type does not hold it
   */
  public void setComplex(Complex value, long... index) {
    put(Scalar.of(type(), value), index);
  }

  private void put(Scalar value, long[] index) {
    long at = byteOf(index);
    MemorySegment.copy(value.segment(), 0, writable(), at, type().bytes());
  }

  private long byteOf(long[] index) {
    return layout().at(index) * type().bytes();
  }

  private MemorySegment open() {
    checkOpen();
    return memory;
  }

  private MemorySegment writable() {
    checkOpen();
    checkWritable();
    return memory;
  }

  /** The elements as copies on the host take them. */
  HostCopies.Place place() {
    return new HostCopies.Place(memory, type(), layout());
  }

  /** The bytes of an array without gaps. */
  MemorySegment bytes() {
    return memory.asSlice(lowestByte(), byteSize());
  }

  @Override
  public HostArrays module() {
    return HostArrays.of(cuda);
  }

  @Override
  HostArray self() {
    return this;
  }

  @Override
  public boolean isView() {
    return !owner;
  }

  @Override
  public boolean isClosed() {
    if (imported != null) {
      return imported.isClosed();
    }
    return pinned != null ? pinned.isClosed() : !memory.scope().isAlive();
  }

  @Override
  long memoryAddress() {
    return memory.isNative() ? memory.address() : 0;
  }

  @Override
  HostArray renamed(Layout changed) {
    return new HostArray(cuda, memory, pinned, imported, type(), changed, owner);
  }

  @Override
  HostArray view(Layout changed) {
    return new HostArray(cuda, memory, pinned, imported, type(), changed, false);
  }

  @Override
  void checkOpen() {
    if (isClosed()) {
      throw new IllegalStateException(this + " is closed");
    }
  }

  @Override
  public boolean isReadOnly() {
    return memory.isReadOnly();
  }

  @Override
  boolean overlaps(BaseArray<?> other) {
    return other instanceof HostArray that
        && memory.asOverlappingSlice(that.memory).isPresent()
        && Overlap.exists(
            layout(), type(), memory.address(), that.layout(), that.type(), that.memory.address());
  }

  @Override
  void fillWith(Scalar value) {
    checkOpen();
    checkWritable();
    if (size() > 0 && layout().isDense() && value.isOneByte()) {
      HostAccess.run(() -> bytes().fill((byte) value.low()), memory);
      return;
    }
    HostCopies.copy(
        place(),
        new HostCopies.Place(value.segment(), type(), Layout.of().broadcastTo(layout().sizes())));
  }

  @Override
  public void copyFrom(NdArray source) {
    Copies.copy(this, Objects.requireNonNull(source, "source"));
  }

  @Override
  public HostArray toHost(
      @Nullable CudaStream stream, Order order, @Nullable HostArray out, boolean blocking) {
    return Transfers.toHost(this, order, out);
  }

  @Override
  public void close() {
    if (owner && pinned != null) {
      pinned.close();
    }
    if (owner && imported != null) {
      imported.close();
    }
  }

  @Override
  public String toString() {
    return "%sHostArray of %s with %s%s"
        .formatted(
            owner ? "" : "view of a ", type(), layout(), pinned == null ? ", not page-locked" : "");
  }
}
