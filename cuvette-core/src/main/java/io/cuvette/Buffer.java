package io.cuvette;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;

/**
 * Memory that a device can use. A buffer frees its memory when closed, in order of the stream it
 * was allocated on; a slice is a view that frees nothing.
 *
 * <p>Operations with a stream only queue work; those without one use this thread's current stream
 * of the buffer's device and wait until the work is done. Everything is checked first: bounds,
 * alignment, that the buffers are open, that the stream's device fits and, for operations that
 * wait, that the stream is not capturing a graph.
 *
 * <p>A buffer may be used on any stream: its memory is not handed out again before that use is
 * done. Work that is ordered against other streams is the caller's part, as with any stream.
 *
 * <p>Thread-safe. A buffer can be closed while other threads use it: an operation that has begun
 * ends as it should, and closing waits for it, a second at most; one that comes later throws {@link
 * IllegalStateException}. An operation on many bytes may do either half way, and then has copied a
 * part.
 */
public sealed interface Buffer extends RowTransfers, AutoCloseable
    permits DeviceBuffer, ManagedBuffer, PinnedBuffer {

  /** {@return the address, valid on the device; 0 if the buffer has no bytes} */
  long address();

  /** {@return the requested size in bytes} */
  long byteSize();

  /** {@return the size of the block that holds it, in bytes: rounded up by a pool} */
  long blockBytes();

  /** {@return the device it was allocated on} */
  CudaDevice device();

  /** {@return the stream it was allocated on, in order of which it is freed} */
  CudaStream stream();

  /** {@return whether the host can access it too} */
  boolean isHostAccessible();

  /** {@return whether this is memory of another process, or a slice of it} */
  boolean isMapped();

  /**
   * {@return the descriptor by which another process imports this buffer, which may be a slice} The
   * importer must not touch the memory before the allocation is complete in stream order, and must
   * have closed its buffer before this one is closed: it is enough that the work of closing here is
   * ordered behind the work of closing there, with an interprocess event for example.
   *
   * <p>What can be shared: buffers of a {@link DeviceMemoryResource} or {@link
   * PinnedMemoryResource} that is IPC-enabled (cuMemPoolExportPointer); device memory without a
   * pool of the driver, which is that of {@link MemoryResource#direct()} and of a {@link
   * MemoryPool} on top of it (cuIpcGetMemHandle); and buffers that were imported. Plain memory is
   * shared by whole allocations: the importer can see and change everything that lies in the same
   * allocation, which for a {@link MemoryPool} are the other blocks of the chunk, and for
   * allocations that are no multiple of 2 MiB whatever the driver keeps beside them. Where that
   * matters, use an IPC-enabled resource, which shares one allocation each.
   *
   * @throws IllegalStateException if the memory cannot be shared, saying what could
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  BufferDescriptor descriptor();

  /** {@return whether the buffer, or the one it is a slice of, is closed} */
  boolean isClosed();

  /**
   * {@return the buffer that owns the memory: for a slice, and a slice of it, the buffer that they
   * are parts of} Any other buffer is its own parent.
   */
  Buffer parent();

  /**
   * {@return the rest of the buffer from an offset in bytes on, as a view}
   *
   * @param offset where the slice begins, in bytes, 0 to {@link #byteSize()}
   */
  Buffer slice(long offset);

  /**
   * {@return a part of the buffer as a view}
   *
   * @param offset where the slice begins, in bytes, 0 to {@link #byteSize()}
   * @param bytes the size of the slice in bytes, 0 to what follows the offset
   * @throws IndexOutOfBoundsException for a part that is not inside
   */
  Buffer slice(long offset, long bytes);

  /**
   * Copies all of another buffer to the start of this one and waits (cuMemcpyAsync,
   * cuMemcpyPeerAsync).
   *
   * @param source the buffer that is read
   * @throws IndexOutOfBoundsException if the source is larger than this
   * @throws IllegalArgumentException if a byte is in both ranges, as between overlapping slices
   */
  void copyFrom(Buffer source);

  /**
   * Copies all of another buffer to the start of this one in order of a stream of either's device.
   *
   * <p>A copy between memory of a driver's pool and the host or managed memory, on a stream of a
   * device without access to the pool, is run by the pool's device in that order, which costs some
   * calls more.
   *
   * @param source the buffer that is read
   * @param stream the stream that the copy is queued in
   * @throws IllegalArgumentException if the stream is of a third device, or a byte is in both
   *     ranges
   * @throws IllegalStateException if such a copy is to be captured into a graph
   */
  void copyFrom(Buffer source, CudaStream stream);

  /**
   * Copies this buffer to the start of another and waits.
   *
   * @param target the buffer that is written
   */
  void copyTo(Buffer target);

  /**
   * Copies this buffer to the start of another in order of a stream of either's device.
   *
   * @param target the buffer that is written
   * @param stream the stream that the copy is queued in
   */
  void copyTo(Buffer target, CudaStream stream);

  /**
   * Copies all of a segment, on the heap or not, to the start of this buffer and waits. What is not
   * page-locked goes through page-locked memory of {@link Cuda#allocatePinned}: from 1 MiB on
   * several threads copy to that while the device copies from it. {@link
   * CudaOptions#withTransferBytes} bounds the memory; if there is none, the copy goes on without.
   *
   * <p>A copy that fails half way says which bytes were written. One of more than 2 MiB that goes
   * through page-locked memory, or between memory of the host and a buffer that the host can
   * access, ends when its thread is interrupted: no other part is begun, those that are begun are
   * ended, and the thread stays interrupted. What the device copies by itself nobody takes back.
   *
   * @param source the segment that is read; of a confined arena, by this thread alone
   * @throws IllegalArgumentException if the segment has bytes that are copied to
   * @throws IllegalStateException if the arena of the segment is closed, or the file that it is
   *     mapped from has become shorter than it
   * @throws java.util.concurrent.CancellationException if the thread is interrupted; it says which
   *     bytes were written
   */
  void copyFrom(MemorySegment source);

  /**
   * Copies native memory to the start of this buffer in stream order (cuMemcpyHtoDAsync). Memory
   * that is not page-locked, if it is more than 64 KiB or a mapped file, goes through page-locked
   * memory, as without a stream, and the call returns when it has been copied. The segment must
   * stay alive and unchanged until the stream is past it; in a capture, alive for as long as the
   * graph can run, each launch of which copies what it has then.
   *
   * @param source the buffer that is read
   * @param stream the stream that the copy is queued in
   * @throws IllegalArgumentException for a heap segment, which the collector may move, or one with
   *     bytes that are copied to
   */
  void copyFrom(MemorySegment source, CudaStream stream);

  /**
   * Copies as many bytes of this buffer as the segment has into it, on the heap or not, and waits;
   * the way is that of {@link #copyFrom(MemorySegment)}.
   *
   * @param target the segment that is written; of a confined arena, by this thread alone
   * @throws IllegalArgumentException if the segment has bytes that are copied, or is read-only
   * @throws IllegalStateException if the arena of the segment is closed, or the file that it is
   *     mapped from has become shorter than it
   */
  void copyTo(MemorySegment target);

  /**
   * Copies as many bytes of this buffer as the segment has into native memory in stream order
   * (cuMemcpyDtoHAsync); the way is that of {@link #copyFrom(MemorySegment, CudaStream)}. The
   * segment must stay alive until the stream is past it; in a capture, for as long as the graph can
   * run.
   *
   * @param target the buffer that is written
   * @param stream the stream that the copy is queued in
   * @throws IllegalArgumentException for a heap segment, which the collector may move, or one with
   *     bytes that are copied
   */
  void copyTo(MemorySegment target, CudaStream stream);

  /**
   * Copies the bytes of another buffer to the start of this one in order of a stream, with a
   * completion; otherwise {@link #copyFrom(Buffer, CudaStream)}. Both buffers may be closed at
   * once: their memory stays until then.
   *
   * @param source the buffer that is read
   * @param stream the stream that the copy is queued in, not capturing
   * @return completes soon after the copy, on a thread of the library, exceptionally if the device
   *     failed; cannot be cancelled
   */
  default CompletableFuture<Void> copyFromAsync(Buffer source, CudaStream stream) {
    Objects.requireNonNull(source, "source");
    Objects.requireNonNull(stream, "stream");
    return stream.copies().queue(() -> copyFrom(source, stream));
  }

  /**
   * Copies the bytes of this buffer to the start of another one; otherwise {@link
   * #copyFromAsync(Buffer, CudaStream)} of that.
   *
   * @param target the buffer that is written
   * @param stream the stream that the copy is queued in, not capturing
   * @return completes soon after the copy
   */
  default CompletableFuture<Void> copyToAsync(Buffer target, CudaStream stream) {
    return Objects.requireNonNull(target, "target").copyFromAsync(this, stream);
  }

  /**
   * Copies native memory to the start of this buffer in order of a stream, with a completion, until
   * which both ends stay. This buffer and a {@link PinnedBuffer} that the segment is of may be
   * closed at once; the arena of memory that another library has page-locked cannot be.
   *
   * <p>The call returns at once for memory that is page-locked. Other memory it copies as {@link
   * #copyFrom(MemorySegment, CudaStream)} does, and has read all of it when it returns: the device
   * has no means to, and a thread that copied while the stream waits could come to wait for it.
   *
   * @param source the segment that is read
   * @param stream the stream, not capturing
   * @return completes soon after the copy, on a thread of the library, exceptionally if the device
   *     failed; cannot be cancelled, but what the call copies by an interrupt
   * @throws IndexOutOfBoundsException if the segment has more bytes than this
   * @throws IllegalArgumentException for memory on the heap, which the collector may move, for
   *     memory in part this buffer's, or that another library has page-locked if its arena is
   *     confined to a thread
   * @throws IllegalStateException if something is closed, or the stream is capturing
   * @throws io.cuvette.driver.CudaException if the driver reports an error; it says which bytes
   *     were written
   */
  default CompletableFuture<Void> copyFromAsync(MemorySegment source, CudaStream stream) {
    Objects.requireNonNull(source, "source");
    Objects.requireNonNull(stream, "stream");
    return stream.copies().in(BufferBase.base(this).memory(), source);
  }

  /**
   * Copies as many bytes of this buffer as the segment has into native memory in order of a stream,
   * with a completion, as {@link #copyFromAsync(MemorySegment, CudaStream)} does.
   *
   * @param target the segment that is written
   * @param stream the stream, not capturing
   * @return completes soon after the copy
   */
  default CompletableFuture<Void> copyToAsync(MemorySegment target, CudaStream stream) {
    Objects.requireNonNull(target, "target");
    Objects.requireNonNull(stream, "stream");
    return stream.copies().out(BufferBase.base(this).memory(), target);
  }

  /**
   * Fills the buffer with a byte and waits (cuMemsetD8Async). Every {@code fill} writes one byte
   * again and again, whatever the type of the argument; {@link #fillShorts} and {@link #fillInts}
   * write wider values.
   *
   * @param value the byte
   */
  void fill(byte value);

  /**
   * Fills the buffer with a byte in stream order (cuMemsetD8Async).
   *
   * @param value the byte
   * @param stream the stream that the fill is queued in
   */
  void fill(byte value, CudaStream stream);

  /**
   * Fills the buffer with the byte that an int holds and waits (cuMemsetD8Async).
   *
   * @param value a byte, signed or unsigned: -128 to 255
   * @throws IllegalArgumentException for a value that is no byte
   */
  void fill(int value);

  /**
   * Fills the buffer with the byte that an int holds in stream order (cuMemsetD8Async).
   *
   * @param value a byte, signed or unsigned: -128 to 255
   * @param stream the stream that the fill is queued in
   * @throws IllegalArgumentException for a value that is no byte
   */
  void fill(int value, CudaStream stream);

  /**
   * Fills the buffer with a 2-byte value and waits (cuMemsetD16Async).
   *
   * @param value the 2-byte value
   * @throws IllegalArgumentException if address or size is no multiple of 2
   */
  void fillShorts(short value);

  /**
   * Fills the buffer with a 2-byte value in stream order (cuMemsetD16Async).
   *
   * @param value the 2-byte value
   * @param stream the stream that the fill is queued in
   * @throws IllegalArgumentException if address or size is no multiple of 2
   */
  void fillShorts(short value, CudaStream stream);

  /**
   * Fills the buffer with a 4-byte value and waits (cuMemsetD32Async).
   *
   * @param value the 4-byte value
   * @throws IllegalArgumentException if address or size is no multiple of 4
   */
  void fillInts(int value);

  /**
   * Fills the buffer with a 4-byte value in stream order (cuMemsetD32Async).
   *
   * @param value the 4-byte value
   * @param stream the stream that the fill is queued in
   * @throws IllegalArgumentException if address or size is no multiple of 4
   */
  void fillInts(int value, CudaStream stream);

  /**
   * Records that work queued in a stream by other means uses this memory, so that it is not lent
   * again before that work has completed. Operations of this interface do so by themselves.
   *
   * @param stream the stream of that work
   */
  void recordUse(CudaStream stream);

  /**
   * Frees the memory, in order of its stream; does nothing for a slice. Never waits if a pool owns
   * the memory. Idempotent.
   */
  @Override
  void close();
}
