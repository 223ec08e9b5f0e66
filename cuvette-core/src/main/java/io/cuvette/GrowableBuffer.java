package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.paged.GrowableBlock;
import io.cuvette.internal.paged.Paging;
import java.util.List;
import java.util.Objects;

/**
 * Memory of a device that grows and shrinks without moving: for caches that get longer by the token
 * or the row. It reserves addresses for its largest size, and maps memory there as it grows
 * (cuMemMap), in pieces of 2 to 32 MiB; {@link #blockBytes()} is what it holds now.
 *
 * <p>It is a buffer like others: what is queued uses the bytes that there are at that moment. A
 * slice is a view of the bytes that it was made of: it stays valid while the buffer grows, and is
 * refused once the buffer has shrunk below its end. Memory that is new has no content yet.
 *
 * <p>It cannot be shared with other processes, which import memory of a {@link
 * DeviceMemoryResource} or of {@link MemoryResource#direct()}.
 *
 * <p>Thread-safe; changes of the size take place one after the other. Made by {@link
 * CudaDevice#growable(long)}.
 */
public final class GrowableBuffer extends DeviceBuffer {
  private GrowableBuffer(long address, OpenStream stream) {
    super(address, 0, stream);
  }

  static GrowableBuffer make(CudaDevice device, GrowableOptions options) {
    Objects.requireNonNull(options, "options");
    List<Integer> peers = options.peers().stream().map(peer -> id(device, peer)).toList();
    Paging paging = Paging.of(device.core(), peers);
    OpenStream stream = device.nullStream().core();
    return (GrowableBuffer)
        GrowableBlock.make(
            GrowableBuffer::new, BufferKind.DEVICE, paging, options.maxBytes(), stream);
  }

  private static int id(CudaDevice device, CudaDevice peer) {
    if (peer.cuda() != device.cuda()) {
      throw new IllegalArgumentException("peers: %s of another Cuda".formatted(peer));
    }
    return peer.id();
  }

  private GrowableBlock growable() {
    return (GrowableBlock) block();
  }

  /** {@return the size that it has now, in bytes} */
  @Override
  public long byteSize() {
    return growable().byteSize();
  }

  /** {@return the largest size that it can reach, in bytes} */
  public long maxBytes() {
    return growable().maxBytes();
  }

  /**
   * Makes it at least so large; does nothing if it is that large already. The bytes that it has
   * stay where they are, with their content and the work that uses them. If it fails, nothing has
   * changed.
   *
   * @param newByteSize the new size of all in bytes, 0 to {@link #maxBytes()}
   * @throws IllegalArgumentException if the size is beyond what is reserved
   * @throws IllegalStateException if it is closed
   * @throws OutOfDeviceMemoryException if there is no memory left, also after pools have released
   *     what they cache
   * @throws CudaException if the driver reports another error
   */
  public void grow(long newByteSize) {
    growable().grow(newByteSize);
  }

  /**
   * Makes it at most so large; does nothing if it is that small already. Memory in whole pieces
   * behind the new end goes back to the driver once the work is done that was queued before: this
   * waits for the streams that used the buffer, but for those that capture a graph and inside a
   * callback, where the memory goes back with the next change of the size.
   *
   * @param newByteSize the new size of all in bytes, 0 to {@link #maxBytes()}
   * @throws IllegalArgumentException if the size is negative or beyond what is reserved
   * @throws IllegalStateException if it is closed, if a graph that is there uses it, if a pool
   *     lends from it, or if operations of other threads did not end for a second; the size is
   *     unchanged then
   * @throws CudaException if the driver reports an error
   */
  public void shrink(long newByteSize) {
    growable().shrink(newByteSize);
  }

  @Override
  Memory memory() {
    return new Memory(this, kind(), block(), address(), byteSize(), order(), true);
  }

  @Override
  public String toString() {
    return text("growable buffer");
  }
}
