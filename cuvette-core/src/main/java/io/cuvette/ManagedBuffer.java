package io.cuvette;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;

/**
 * Managed memory: one address for the host and all devices, moved on demand. The host may touch it
 * while a device works only where the device has {@link DeviceAttribute#CONCURRENT_MANAGED_ACCESS}.
 * See {@link Buffer} for its operations and for threads.
 */
public final class ManagedBuffer extends BufferBase implements Buffer {
  private final HostView view;

  ManagedBuffer(long address, long bytes, CudaStream stream) {
    super(address, bytes, stream);
    this.view = new HostView();
  }

  private ManagedBuffer(ManagedBuffer of, long offset, long bytes) {
    super(of, offset, bytes);
    this.view = of.view;
  }

  /**
   * The memory as a segment. It dies with the buffer: every access after {@link #close()} throws
   * IllegalStateException. Keep the buffer as long as the segment: a buffer that nobody can reach
   * any more is taken back, and its segment dies with it.
   */
  public MemorySegment segment() {
    return view.of(this);
  }

  /** The memory as a byte buffer in the host's byte order, up to 2 GiB. It dies with the buffer. */
  public ByteBuffer byteBuffer() {
    return HostView.byteBuffer(segment());
  }

  /**
   * Moves exactly this buffer's range to a location in stream order; the driver works in whole
   * pages (cuMemPrefetchAsync).
   */
  public void prefetch(MemoryLocation target, CudaStream stream) {
    checkOpen();
    device().cuda().checkOwn(stream);
    if (byteSize() > 0) {
      int on = stream.device().id();
      Transfers.queue(
          stream,
          this,
          this,
          driver ->
              driver.memPrefetchAsync(
                  on, address(), byteSize(), target.type(), target.id(), stream.handle()));
    }
  }

  /** {@link #prefetch(MemoryLocation, CudaStream)} on the current stream of the buffer's device. */
  public void prefetch(MemoryLocation target) {
    prefetch(target, device().cuda().currentStream(device()));
  }

  /** Advises on the use of exactly this buffer's range (cuMemAdvise). */
  public void advise(MemoryAdvice advice, MemoryLocation location) {
    checkOpen();
    if (byteSize() > 0) {
      device()
          .context()
          .memAdvise(
              device().id(), address(), byteSize(), advice.code(), location.type(), location.id());
    }
  }

  @Override
  public boolean isHostAccessible() {
    return true;
  }

  @Override
  public ManagedBuffer slice(long offset) {
    return slice(offset, byteSize() - offset);
  }

  @Override
  public ManagedBuffer slice(long offset, long bytes) {
    return new ManagedBuffer(this, offset, bytes);
  }

  @Override
  ManagedBuffer block(long offset, long bytes, CudaStream of) {
    return new ManagedBuffer(address() + offset, bytes, of);
  }

  @Override
  Buffer asBuffer() {
    return this;
  }

  @Override
  public String toString() {
    return text("managed buffer");
  }
}
