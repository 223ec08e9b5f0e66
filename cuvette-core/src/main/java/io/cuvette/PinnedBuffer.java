package io.cuvette;

import io.cuvette.internal.block.HostView;
import io.cuvette.internal.order.OpenStream;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Page-locked host memory, which devices can access and copy at full speed. Its bytes are those of
 * the host: wait for the streams that write them before reading. See {@link Buffer} for its
 * operations and for threads.
 */
public final class PinnedBuffer extends BufferBase implements Buffer {
  private final HostView view;

  /** The host's side of the memory; null if it is seen through the view alone. */
  private final @Nullable MemorySegment memory;

  /** The memory at an address, which the host may see at another one, or has not seen yet. */
  PinnedBuffer(long address, long bytes, @Nullable MemorySegment memory, OpenStream stream) {
    super(address, bytes, stream);
    this.memory = memory;
    this.view = new HostView();
  }

  /** Memory of the program, which is still there when the buffer is closed. */
  PinnedBuffer(MemorySegment memory, OpenStream stream) {
    super(memory.address(), memory.byteSize(), stream);
    this.memory = memory;
    this.view = new HostView(memory);
  }

  private PinnedBuffer(PinnedBuffer of, long offset, long bytes) {
    super(of, offset, bytes);
    this.memory = of.memory == null ? null : of.memory.asSlice(offset, bytes);
    this.view = of.view;
  }

  /**
   * {@return the memory as a segment} It dies with the buffer: every access after {@link #close()}
   * throws IllegalStateException, but for memory of {@link Cuda#registerHost}. Keep the buffer as
   * long as the segment: a buffer that is not reachable any more is released, and its segment dies
   * with it.
   */
  public MemorySegment segment() {
    return view.of(memory(), whole().memory());
  }

  /**
   * {@return the memory as a byte buffer in the host's byte order, up to 2 GiB} It dies with the
   * buffer.
   */
  public ByteBuffer byteBuffer() {
    return HostView.byteBuffer(segment());
  }

  /**
   * {@return the address at which a device sees this memory (cuMemHostGetDevicePointer); with UVA
   * the same as the host's}
   *
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public long devicePointer() {
    checkOpen();
    return address();
  }

  @Override
  public boolean isHostAccessible() {
    return true;
  }

  @Override
  public PinnedBuffer parent() {
    return (PinnedBuffer) whole();
  }

  @Override
  public PinnedBuffer slice(long offset) {
    return slice(offset, byteSize() - offset);
  }

  @Override
  public PinnedBuffer slice(long offset, long bytes) {
    return new PinnedBuffer(this, offset, bytes);
  }

  @Override
  BufferKind kind() {
    return BufferKind.PINNED;
  }

  @Override
  Buffer asBuffer() {
    return this;
  }

  @Override
  boolean isReadOnly() {
    return memory != null && memory.isReadOnly();
  }

  @Override
  MemorySegment hostMemory() {
    // Through the view, and not another one, because that ends with the buffer: what maps memory
    // for longer keeps a simulated device from taking it back.
    return memory == null ? view.of(memory(), whole().memory()) : memory;
  }

  @Override
  long hostAddress() {
    return view.addressOf(memory(), whole().memory());
  }

  @Override
  public String toString() {
    return text("pinned buffer");
  }
}
