package io.cuvette.array;

import io.cuvette.Buffer;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * An array of elements in memory of a device. {@link CudaArrays} makes them. See {@link NdArray}
 * for its operations, for views and for threads.
 */
public final class CudaArray extends BaseArray<CudaArray> implements NdArray {
  private final Buffer buffer;
  private final boolean owner;
  private final boolean readOnly;

  CudaArray(Buffer buffer, ElementType type, Layout layout, boolean owner) {
    this(buffer, type, layout, owner, false);
  }

  CudaArray(Buffer buffer, ElementType type, Layout layout, boolean owner, boolean readOnly) {
    super(type, layout);
    this.buffer = buffer;
    this.owner = owner;
    this.readOnly = readOnly;
  }

  /**
   * {@return the memory that the elements lie in, at the {@link #layout()}'s places} That of the
   * array which owns it, also for views. It stays open as long as that array.
   */
  public Buffer buffer() {
    return buffer;
  }

  /** {@return the address of the element with the indices 0, valid on the device; 0 if empty} */
  public long address() {
    return size() == 0 ? 0 : buffer.address() + layout().offset() * type().bytes();
  }

  /** {@return the device that the memory is on} */
  public CudaDevice device() {
    return buffer.device();
  }

  /** {@return the stream that the memory was allocated on, in order of which it is freed} */
  public CudaStream stream() {
    return buffer.stream();
  }

  /** {@return the module of this device and the stream that is current when it makes an array} */
  @Override
  public CudaArrays module() {
    return CudaArrays.of(device());
  }

  /**
   * {@return the module of a stream of this device, to copy and convert this array in its order}
   *
   * @param stream a stream of this device
   */
  CudaArrays on(CudaStream stream) {
    return module().on(stream);
  }

  @Override
  CudaArray self() {
    return this;
  }

  @Override
  public boolean isView() {
    return !owner;
  }

  @Override
  public boolean isReadOnly() {
    return readOnly;
  }

  @Override
  public boolean isClosed() {
    return buffer.isClosed();
  }

  @Override
  long memoryAddress() {
    return buffer.address();
  }

  @Override
  CudaArray renamed(Layout changed) {
    return new CudaArray(buffer, type(), changed, owner, readOnly);
  }

  @Override
  CudaArray view(Layout changed) {
    return new CudaArray(buffer, type(), changed, false, readOnly);
  }

  @Override
  void checkOpen() {
    if (buffer.isClosed()) {
      throw new IllegalStateException(this + " is closed");
    }
  }

  /**
   * Copies the elements of another array of any type, broadcast to this shape, into this one in
   * order of a stream.
   *
   * @param source the array that is read: on this device, or on another or in page-locked memory,
   *     and then with the type of this one and in the same order without gaps
   * @param stream a stream of this array's device, or of the source's
   * @throws IllegalArgumentException if the shapes do not fit, both have bytes in common, elements
   *     of this one are the same, or a source elsewhere is not of that kind
   */
  public void copyFrom(NdArray source, CudaStream stream) {
    Objects.requireNonNull(source, "source");
    Copies.queue(this, source, Objects.requireNonNull(stream, "stream"));
  }

  @Override
  public void copyFrom(NdArray source) {
    Copies.copy(this, Objects.requireNonNull(source, "source"), current());
  }

  /** The bytes from the lowest element to the highest. */
  Buffer bytes() {
    Layout layout = layout();
    int bytes = type().bytes();
    return buffer.slice(layout.lowest() * bytes, (layout.end() - layout.lowest()) * bytes);
  }

  @Override
  boolean overlaps(BaseArray<?> other) {
    return other instanceof CudaArray that
        && Overlap.exists(
            layout(), type(), buffer.address(), that.layout(), that.type(), that.buffer.address());
  }

  @Override
  void fillWith(Scalar value) {
    DeviceCopies.fill(this, value, current());
  }

  @Override
  public HostArray toHost(
      @Nullable CudaStream stream, Order order, @Nullable HostArray out, boolean blocking) {
    return Transfers.toHost(this, stream == null ? current() : stream, order, out, blocking);
  }

  /** The current stream of the array's device. */
  CudaStream current() {
    return device().cuda().currentStream(device());
  }

  @Override
  public void close() {
    if (owner) {
      buffer.close();
    }
  }

  @Override
  public String toString() {
    return "%sCudaArray of %s with %s on %s"
        .formatted(owner ? "" : "view of a ", type(), layout(), device());
  }
}
