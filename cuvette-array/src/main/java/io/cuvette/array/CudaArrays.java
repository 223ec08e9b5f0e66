package io.cuvette.array;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.Scope;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Makes arrays on a device, of memory from the current allocator ({@link Cuda#currentAllocator()}):
 * by default on the device and in order of the stream that are current, or of those that were
 * chosen. Work is queued; only what comes from the host waits. See {@link ArrayModule} for its
 * operations.
 */
public final class CudaArrays extends ArrayModule<CudaArray> {
  private final @Nullable CudaDevice device;
  private final @Nullable CudaStream stream;

  private CudaArrays(Cuda cuda, @Nullable CudaDevice device, @Nullable CudaStream stream) {
    super(cuda);
    this.device = device;
    this.stream = stream;
  }

  /**
   * {@return the module of the device and the stream that are current on the thread that uses it}
   *
   * @param cuda whose devices
   */
  public static CudaArrays of(Cuda cuda) {
    return new CudaArrays(cuda, null, null);
  }

  /**
   * {@return the module of a device, and the stream that is current for it on the thread that uses
   * it}
   *
   * @param device the device
   */
  public static CudaArrays of(CudaDevice device) {
    return new CudaArrays(Objects.requireNonNull(device, "device").cuda(), device, null);
  }

  /**
   * {@return the module of a stream and its device}
   *
   * @param stream the stream
   */
  public CudaArrays on(CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    if (stream.device().cuda() != cuda()) {
      throw new IllegalArgumentException(
          "%s belongs to another Cuda (expected: %s)".formatted(stream, cuda()));
    }
    return new CudaArrays(cuda(), stream.device(), stream);
  }

  /** {@return the stream in whose order it makes arrays now, on this thread} */
  public CudaStream stream() {
    return stream != null
        ? stream
        : device != null ? cuda().currentStream(device) : cuda().currentStream();
  }

  /**
   * {@return an array in memory of a buffer, as a view} It is closed with the buffer, which the
   * caller closes.
   *
   * @param buffer the memory: allocated, or of others ({@link Cuda#wrap})
   * @param type the type of the elements
   * @param layout where they lie, counted from the start of the buffer
   * @throws IllegalArgumentException if an element is not inside, or the address is not aligned
   */
  public CudaArray wrap(Buffer buffer, ElementType type, Layout layout) {
    return over(buffer, type, layout, false);
  }

  /**
   * {@return an array in memory of a buffer, which closes the buffer}
   *
   * @param buffer the memory, which is the array's from now on: not a slice
   * @param type the type of the elements
   * @param layout where they lie, counted from the start of the buffer
   * @throws IllegalArgumentException if an element is not inside, or the address is not aligned;
   *     the buffer remains the caller's then
   */
  public CudaArray adopt(Buffer buffer, ElementType type, Layout layout) {
    if (Objects.requireNonNull(buffer, "buffer").parent() != buffer) {
      throw new IllegalArgumentException(
          "buffer: %s (expected: one that owns its memory)".formatted(buffer));
    }
    return over(buffer, type, layout, true);
  }

  private CudaArray over(Buffer buffer, ElementType type, Layout layout, boolean owner) {
    Objects.requireNonNull(buffer, "buffer");
    Objects.requireNonNull(type, "type");
    Objects.requireNonNull(layout, "layout");
    if (buffer.device().cuda() != cuda()) {
      throw new IllegalArgumentException(
          "%s belongs to another Cuda (expected: %s)".formatted(buffer, cuda()));
    }
    if (buffer.isClosed()) {
      throw new IllegalStateException(buffer + " is closed");
    }
    BaseArray.checkFits(type, layout, buffer.byteSize());
    if (buffer.address() % type.alignment() != 0) {
      throw new IllegalArgumentException(
          "address: 0x%x (expected: a multiple of %d for %s)"
              .formatted(buffer.address(), type.alignment(), type));
    }
    return new CudaArray(buffer, type, layout, owner);
  }

  @Override
  CudaArray allocate(ElementType type, Layout layout) {
    Objects.requireNonNull(type, "type");
    long bytes = BaseArray.bytes(type, layout);
    return new CudaArray(cuda().allocate(bytes, stream()), type, layout, true);
  }

  @Override
  @Nullable CudaArray here(NdArray a) {
    if (a instanceof CudaArray array && array.device() == stream().device()) {
      array.checkOpen();
      return array.view(array.layout());
    }
    return null;
  }

  @Override
  @Nullable Scope scope() {
    return stream == null && device == null ? null : stream().use();
  }

  @Override
  public String toString() {
    return "CudaArrays on " + (stream != null ? stream : device != null ? device : cuda());
  }
}
