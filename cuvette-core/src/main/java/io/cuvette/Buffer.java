package io.cuvette;

import java.lang.foreign.MemorySegment;

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
public sealed interface Buffer extends AutoCloseable
    permits DeviceBuffer, ManagedBuffer, PinnedBuffer {

  /** The address, valid on the device; 0 if the buffer has no bytes. */
  long address();

  /** The size that was asked for, in bytes. */
  long byteSize();

  /** The size of the block that holds it, in bytes: rounded up by a pool. */
  long blockBytes();

  /** The device it was allocated on. */
  CudaDevice device();

  /** The stream it was allocated on and is freed in order of. */
  CudaStream stream();

  /** Whether the host can access it too. */
  boolean isHostAccessible();

  /** Whether this is memory of another process, or a slice of it. */
  boolean isMapped();

  /**
   * What another process imports this buffer by, a slice too. The importer must not touch the
   * memory before the allocation is complete in stream order, and must have closed its buffer
   * before this one is closed: it is enough that the work of closing here is ordered behind the
   * work of closing there, with an interprocess event for example.
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
   */
  BufferDescriptor descriptor();

  /** Whether the buffer, or the one it is a slice of, was closed. */
  boolean isClosed();

  /**
   * The buffer that owns the memory: for a slice, and a slice of that, what they are parts of. Any
   * other buffer is its own parent.
   */
  Buffer parent();

  /** The rest of the buffer from an offset in bytes on, as a view. */
  Buffer slice(long offset);

  /**
   * A part of the buffer as a view.
   *
   * @param offset in bytes, 0 to {@link #byteSize()}
   * @param bytes its size, inside the buffer
   * @throws IndexOutOfBoundsException for a part that is not inside
   */
  Buffer slice(long offset, long bytes);

  /**
   * Copies all of another buffer to the start of this one and waits (cuMemcpyAsync,
   * cuMemcpyPeerAsync).
   *
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
   * @throws IllegalArgumentException if the stream is of a third device, or a byte is in both
   *     ranges
   * @throws IllegalStateException if such a copy is to be captured into a graph
   */
  void copyFrom(Buffer source, CudaStream stream);

  /** Copies this buffer to the start of another and waits. */
  void copyTo(Buffer target);

  /** Copies this buffer to the start of another in order of a stream of either's device. */
  void copyTo(Buffer target, CudaStream stream);

  /**
   * Copies all of a segment, on the heap or not, to the start of this buffer and waits. Heap memory
   * goes through page-locked memory of {@link Cuda#allocatePinned}.
   *
   * @throws IllegalArgumentException if the segment has bytes that are copied to
   */
  void copyFrom(MemorySegment source);

  /**
   * Copies native memory to the start of this buffer in stream order (cuMemcpyHtoDAsync). The
   * segment must stay alive and unchanged until the stream is past it.
   *
   * @throws IllegalArgumentException for a heap segment, which the collector may move, or one with
   *     bytes that are copied to
   */
  void copyFrom(MemorySegment source, CudaStream stream);

  /**
   * Copies as many bytes of this buffer as the segment has into it, on the heap or not, and waits.
   *
   * @throws IllegalArgumentException if the segment has bytes that are copied
   */
  void copyTo(MemorySegment target);

  /**
   * Copies as many bytes of this buffer as the segment has into native memory in stream order
   * (cuMemcpyDtoHAsync). The segment must stay alive until the stream is past it.
   *
   * @throws IllegalArgumentException for a heap segment, which the collector may move, or one with
   *     bytes that are copied
   */
  void copyTo(MemorySegment target, CudaStream stream);

  /**
   * Fills the buffer with a byte and waits (cuMemsetD8Async). Every {@code fill} writes one byte
   * again and again, whatever the type of the argument; {@link #fillShorts} and {@link #fillInts}
   * write wider values.
   */
  void fill(byte value);

  /** Fills the buffer with a byte in stream order (cuMemsetD8Async). */
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
   * @throws IllegalArgumentException for a value that is no byte
   */
  void fill(int value, CudaStream stream);

  /**
   * Fills the buffer with a 2-byte value and waits (cuMemsetD16Async).
   *
   * @throws IllegalArgumentException if address or size is no multiple of 2
   */
  void fillShorts(short value);

  /**
   * Fills the buffer with a 2-byte value in stream order (cuMemsetD16Async).
   *
   * @throws IllegalArgumentException if address or size is no multiple of 2
   */
  void fillShorts(short value, CudaStream stream);

  /**
   * Fills the buffer with a 4-byte value and waits (cuMemsetD32Async).
   *
   * @throws IllegalArgumentException if address or size is no multiple of 4
   */
  void fillInts(int value);

  /**
   * Fills the buffer with a 4-byte value in stream order (cuMemsetD32Async).
   *
   * @throws IllegalArgumentException if address or size is no multiple of 4
   */
  void fillInts(int value, CudaStream stream);

  /**
   * Says that work queued on a stream by other means uses this memory, so that it is not handed out
   * again before that is done. Operations of this interface do this by themselves.
   */
  void recordUse(CudaStream stream);

  /**
   * Gives the memory back; for a slice does nothing. Never waits if a pool owns the memory. Does
   * nothing the second time.
   */
  @Override
  void close();
}
