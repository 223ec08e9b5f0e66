package io.cuvette;

import io.cuvette.internal.block.Memory;
import io.cuvette.internal.box.BoxTransfers;
import io.cuvette.internal.box.HostRowTransfers;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;

/**
 * The copies of a {@link Buffer} whose bytes lie in rows: boxes, of which the rows of each side can
 * be apart ({@link CopyBox}), and rows of the host, which are segments in many places.
 *
 * <p>As with all of a buffer's copies, those without a stream wait, those with one are in its
 * order, and those whose name ends with {@code Async} give a completion. That completes soon after
 * the copy, on a thread of the library, exceptionally if the device failed; what a device has
 * cannot be taken back, so that it cannot be cancelled. Both ends stay until then, also if they are
 * closed; memory that the collector may move is refused. Memory that is not page-locked is copied
 * before the call returns and needed no more; the call can be interrupted, as {@link
 * Buffer#copyFrom(MemorySegment)} says. In a capture the forms with a stream become a part of the
 * graph, and those with a completion are refused.
 *
 * <p>Thread-safe.
 */
public sealed interface RowTransfers permits Buffer {
  /**
   * Copies rows of another buffer to rows of this one and waits (cuMemcpy3DAsync). Between devices,
   * and with a pitch of 2 GiB or more, they are queued row by row.
   *
   * @param source the buffer that is read
   * @param box which bytes
   * @throws IndexOutOfBoundsException if a row is not inside
   * @throws IllegalArgumentException if a byte is in a row of the source and in one of the target
   */
  default void copyFrom(Buffer source, CopyBox box) {
    Memory from = BufferBase.base(Objects.requireNonNull(source, "source")).memory();
    BufferBase base = base();
    BoxTransfers.copy(base.memory(), from, Objects.requireNonNull(box, "box"), base.current());
  }

  /**
   * Copies rows of another buffer to rows of this one in order of a stream of either's device. In a
   * capture it is one node of the graph, or one for each row.
   *
   * @param source the buffer that is read
   * @param box which bytes
   * @param stream the stream that the copy is queued in
   * @throws IndexOutOfBoundsException if a row is not inside
   * @throws IllegalArgumentException if the stream is of a third device, or a byte is in a row of
   *     the source and in one of the target
   */
  default void copyFrom(Buffer source, CopyBox box, CudaStream stream) {
    Memory from = BufferBase.base(Objects.requireNonNull(source, "source")).memory();
    Objects.requireNonNull(box, "box");
    BoxTransfers.copyAsync(base().memory(), from, box, CudaStream.coreOf(stream));
  }

  /**
   * Copies rows of a segment, on the heap or not, to rows of this buffer and waits. Rows that are
   * not page-locked are packed into page-locked memory, as {@link #gatherFrom} does.
   *
   * @param source the segment that is read; of a confined arena, by this thread alone
   * @param box which bytes
   * @throws IndexOutOfBoundsException if a row is not inside
   * @throws IllegalArgumentException if a byte is in a row of the source and in one of the target
   * @throws IllegalStateException if the arena of the segment is closed, or the file that it is
   *     mapped from has become shorter than it
   */
  default void copyFrom(MemorySegment source, CopyBox box) {
    BufferBase base = base();
    Objects.requireNonNull(source, "source");
    Objects.requireNonNull(box, "box");
    BoxTransfers.copyIn(base.memory(), source, box, base.current(), base.staging());
  }

  /**
   * Copies rows of native memory to rows of this buffer in stream order. A segment of a {@link
   * PinnedBuffer} or of {@link Cuda#registerHost} is read by the device; other memory goes through
   * page-locked memory, and the call returns when it has been copied.
   *
   * @param source the segment that is read
   * @param box which bytes
   * @param stream the stream that the copy is queued in
   * @throws IndexOutOfBoundsException if a row is not inside
   * @throws IllegalArgumentException for a heap segment, which the collector may move, or if a byte
   *     is in a row of the source and in one of the target
   * @throws IllegalStateException if memory that is not page-locked is to be captured into a graph
   */
  default void copyFrom(MemorySegment source, CopyBox box, CudaStream stream) {
    BufferBase base = base();
    Objects.requireNonNull(source, "source");
    Objects.requireNonNull(box, "box");
    BoxTransfers.copyInAsync(base.memory(), source, box, CudaStream.coreOf(stream), base.staging());
  }

  /**
   * Copies rows of this buffer to rows of a segment, on the heap or not, and waits; the way is that
   * of {@link #copyFrom(MemorySegment, CopyBox)}. The source of the box is this buffer.
   *
   * @param target the segment that is written; of a confined arena, by this thread alone
   * @param box which bytes
   * @throws IndexOutOfBoundsException if a row is not inside
   * @throws IllegalArgumentException if a byte is in a row of the source and in one of the target,
   *     or the segment is read-only
   * @throws IllegalStateException if the arena of the segment is closed, or the file that it is
   *     mapped from has become shorter than it
   */
  default void copyTo(MemorySegment target, CopyBox box) {
    BufferBase base = base();
    Objects.requireNonNull(target, "target");
    Objects.requireNonNull(box, "box");
    BoxTransfers.copyOut(base.memory(), target, box, base.current(), base.staging());
  }

  /**
   * Copies rows of this buffer to rows of native memory in stream order; the way is that of {@link
   * #copyFrom(MemorySegment, CopyBox, CudaStream)}. The source of the box is this buffer.
   *
   * @param target the segment that is written
   * @param box which bytes
   * @param stream the stream that the copy is queued in
   * @throws IndexOutOfBoundsException if a row is not inside
   * @throws IllegalArgumentException for a heap segment, which the collector may move, one that is
   *     read-only, or if a byte is in a row of the source and in one of the target
   * @throws IllegalStateException if memory that is not page-locked is to be captured into a graph
   */
  default void copyTo(MemorySegment target, CopyBox box, CudaStream stream) {
    BufferBase base = base();
    Objects.requireNonNull(target, "target");
    Objects.requireNonNull(box, "box");
    BoxTransfers.copyOutAsync(
        base.memory(), target, box, CudaStream.coreOf(stream), base.staging());
  }

  /**
   * Copies rows of another buffer to rows of this one in order of a stream, with a completion;
   * otherwise {@link #copyFrom(Buffer, CopyBox, CudaStream)}.
   *
   * @param source the buffer that is read
   * @param box which bytes
   * @param stream the stream that the copy is queued in, not capturing
   * @return completes soon after the copy
   * @throws IllegalStateException if something is closed, or the stream is capturing
   */
  default CompletableFuture<Void> copyFromAsync(Buffer source, CopyBox box, CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    return stream.copies().queue(() -> copyFrom(source, box, stream));
  }

  /**
   * Copies rows of native memory to rows of this buffer in order of a stream, with a completion;
   * otherwise {@link #copyFrom(MemorySegment, CopyBox, CudaStream)}. The call returns at once for
   * memory of a {@link PinnedBuffer}, also of {@link Cuda#registerHost}.
   *
   * @param source the segment that is read
   * @param box which bytes
   * @param stream the stream, not capturing
   * @return completes soon after the copy
   * @throws IllegalArgumentException for a heap segment, which the collector may move, or if a byte
   *     is in a row of the source and in one of the target
   * @throws IllegalStateException if something is closed, or the stream is capturing
   */
  default CompletableFuture<Void> copyFromAsync(
      MemorySegment source, CopyBox box, CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    return stream.copies().queue(() -> copyFrom(source, box, stream));
  }

  /**
   * Copies rows of this buffer to rows of native memory in order of a stream, with a completion, as
   * {@link #copyFromAsync(MemorySegment, CopyBox, CudaStream)} does.
   *
   * @param target the segment that is written
   * @param box which bytes; the source of the box is this buffer
   * @param stream the stream, not capturing
   * @return completes soon after the copy
   */
  default CompletableFuture<Void> copyToAsync(
      MemorySegment target, CopyBox box, CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    return stream.copies().queue(() -> copyTo(target, box, stream));
  }

  /**
   * Copies segments, one after the other without gaps, to the start of this buffer and waits: rows
   * that lie in many places become one block, in one pass and as {@link
   * Buffer#copyFrom(MemorySegment)} does. {@link HostRows} makes segments of arrays.
   *
   * @param sources the segments that are read
   * @throws IndexOutOfBoundsException if they have more bytes than this
   * @throws IllegalArgumentException if one has bytes that are copied to
   * @throws IllegalStateException if the arena of one is closed, or the file that it is mapped from
   *     has become shorter than it
   */
  default void gatherFrom(List<MemorySegment> sources) {
    BufferBase base = base();
    Objects.requireNonNull(sources, "sources");
    HostRowTransfers.gather(base.memory(), sources, base.current(), base.staging());
  }

  /**
   * Copies native segments, one after the other without gaps, to the start of this buffer in stream
   * order. If all are page-locked, of a {@link PinnedBuffer} or of {@link Cuda#registerHost}, the
   * device reads them, each by a call of the driver (cuMemcpyAsync); otherwise they go through
   * page-locked memory, and the call returns when they have been read.
   *
   * @param sources the segments that are read
   * @param stream the stream that the copies are queued in
   * @throws IndexOutOfBoundsException if they have more bytes than this
   * @throws IllegalArgumentException for a heap segment, which the collector may move, or if one
   *     has bytes that are copied to
   * @throws IllegalStateException if something is closed, a file has become shorter than its
   *     mapping, or memory that is not page-locked is to be captured into a graph
   */
  default void gatherFrom(List<MemorySegment> sources, CudaStream stream) {
    BufferBase base = base();
    Objects.requireNonNull(sources, "sources");
    HostRowTransfers.gatherAsync(base.memory(), sources, CudaStream.coreOf(stream), base.staging());
  }

  /**
   * Copies native segments to the start of this buffer in order of a stream, with a completion;
   * otherwise {@link #gatherFrom(List, CudaStream)}.
   *
   * @param sources the segments that are read
   * @param stream the stream, not capturing
   * @return completes soon after the copy
   */
  default CompletableFuture<Void> gatherFromAsync(List<MemorySegment> sources, CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    return stream.copies().queue(() -> gatherFrom(sources, stream));
  }

  /**
   * Copies the start of this buffer to segments, one after the other, as many bytes as they have,
   * and waits. Where segments have bytes in common, these are undefined afterwards.
   *
   * @param targets the segments that are written
   * @throws IndexOutOfBoundsException if they have more bytes than this
   * @throws IllegalArgumentException if one has bytes that are copied, or is read-only
   * @throws IllegalStateException if the arena of one is closed, or the file that it is mapped from
   *     has become shorter than it
   */
  default void scatterTo(List<MemorySegment> targets) {
    BufferBase base = base();
    Objects.requireNonNull(targets, "targets");
    HostRowTransfers.scatter(base.memory(), targets, base.current(), base.staging());
  }

  /**
   * Copies the start of this buffer to native segments, one after the other, in stream order; the
   * way is that of {@link #gatherFrom(List, CudaStream)}.
   *
   * @param targets the segments that are written
   * @param stream the stream that the copies are queued in
   * @throws IndexOutOfBoundsException if they have more bytes than this
   * @throws IllegalArgumentException for a heap segment, which the collector may move, one that is
   *     read-only, or if one has bytes that are copied
   * @throws IllegalStateException if something is closed, a file has become shorter than its
   *     mapping, or memory that is not page-locked is to be captured into a graph
   */
  default void scatterTo(List<MemorySegment> targets, CudaStream stream) {
    BufferBase base = base();
    Objects.requireNonNull(targets, "targets");
    HostRowTransfers.scatterAsync(
        base.memory(), targets, CudaStream.coreOf(stream), base.staging());
  }

  /**
   * Copies the start of this buffer to native segments in order of a stream, with a completion;
   * otherwise {@link #scatterTo(List, CudaStream)}.
   *
   * @param targets the segments that are written
   * @param stream the stream, not capturing
   * @return completes soon after the copy
   */
  default CompletableFuture<Void> scatterToAsync(List<MemorySegment> targets, CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    return stream.copies().queue(() -> scatterTo(targets, stream));
  }

  private BufferBase base() {
    return BufferBase.base((Buffer) this);
  }
}
