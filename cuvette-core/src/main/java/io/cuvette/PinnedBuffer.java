package io.cuvette;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;

/**
 * Page-locked host memory, which devices can access and copy at full speed. Its bytes are those of
 * the host: wait for the streams that write them before reading. See {@link Buffer} for its
 * operations and for threads.
 */
public final class PinnedBuffer extends BufferBase implements Buffer {
  private final MemorySegment memory;
  private final HostView view;

  PinnedBuffer(MemorySegment memory, CudaStream stream) {
    this(memory.address(), memory, stream);
  }

  /** The memory at an address, which the host may see at another one. */
  PinnedBuffer(long address, MemorySegment memory, CudaStream stream) {
    super(address, memory.byteSize(), stream);
    this.memory = memory;
    this.view = new HostView();
  }

  private PinnedBuffer(PinnedBuffer of, long offset, long bytes) {
    super(of, offset, bytes);
    this.memory = of.memory.asSlice(offset, bytes);
    this.view = of.view;
  }

  /**
   * The memory as a segment. It dies with the buffer: every access after {@link #close()} throws
   * IllegalStateException.
   */
  public MemorySegment segment() {
    return view.of(this);
  }

  /** The memory as a byte buffer in the host's byte order, up to 2 GiB. It dies with the buffer. */
  public ByteBuffer byteBuffer() {
    return HostView.byteBuffer(segment());
  }

  /**
   * The address at which a device sees this memory (cuMemHostGetDevicePointer); with UVA the same
   * as the host's.
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
  public PinnedBuffer slice(long offset) {
    return slice(offset, byteSize() - offset);
  }

  @Override
  public PinnedBuffer slice(long offset, long bytes) {
    return new PinnedBuffer(this, offset, bytes);
  }

  @Override
  PinnedBuffer block(long offset, long bytes, CudaStream of) {
    return new PinnedBuffer(address() + offset, memory.asSlice(offset, bytes), of);
  }

  @Override
  Buffer asBuffer() {
    return this;
  }

  @Override
  MemorySegment hostMemory() {
    return memory;
  }

  @Override
  public String toString() {
    return text("pinned buffer");
  }
}
