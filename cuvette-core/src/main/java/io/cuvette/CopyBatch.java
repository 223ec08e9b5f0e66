package io.cuvette;

import io.cuvette.internal.base.Checks;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.box.BatchTransfers;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;

/**
 * Copies between buffers that are queued together, which costs less than one after the other
 * (cuMemcpyBatchAsync). They are in order with the other work of the stream, and in no order among
 * themselves: no byte that one of them writes may be read or written by another. Slices make it
 * copies between parts of buffers.
 *
 * <p>Where the driver has no such call (before CUDA 12.8), in the null stream, in a stream that
 * captures a graph, between devices, and with memory that came from elsewhere ({@link Cuda#wrap}),
 * they are queued one by one. If one fails, the error says which are queued.
 *
 * <p>Immutable, but for the buffers; thread-safe.
 */
public final class CopyBatch {
  private final List<Buffer> targets;
  private final List<Buffer> sources;

  private CopyBatch(List<Buffer> targets, List<Buffer> sources) {
    this.targets = targets;
    this.sources = sources;
  }

  /**
   * {@return the copies of all bytes of each source to the start of the target at the same place}
   *
   * @param targets the buffers that are written
   * @param sources the buffers that are read, as many
   * @throws IllegalArgumentException if there are not as many sources as targets
   */
  public static CopyBatch of(List<? extends Buffer> targets, List<? extends Buffer> sources) {
    List<Buffer> to = Checks.noNulls("targets", Objects.requireNonNull(targets, "targets"));
    List<Buffer> from = Checks.noNulls("sources", Objects.requireNonNull(sources, "sources"));
    if (to.size() != from.size()) {
      throw new IllegalArgumentException(
          "%d targets, %d sources (expected: as many)".formatted(to.size(), from.size()));
    }
    return new CopyBatch(to, from);
  }

  /** {@return the number of copies} */
  public int size() {
    return targets.size();
  }

  /**
   * Makes the copies in the current stream of the first target's device and waits.
   *
   * @throws IllegalArgumentException if a byte that is written is in another range too
   * @throws IllegalStateException if a buffer is closed, or the stream captures a graph
   * @throws IndexOutOfBoundsException if a source is larger than its target
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public void copy() {
    if (!targets.isEmpty()) {
      BufferBase first = BufferBase.base(targets.getFirst());
      BatchTransfers.copy(memories(targets), memories(sources), first.current());
    }
  }

  /**
   * Makes the copies in order of a stream. Everything is checked before the first is queued.
   *
   * @param stream the stream that the copies are queued in, of a device of each copy
   * @throws IllegalArgumentException if a byte that is written is in another range too, or the
   *     stream is of a third device
   * @throws IllegalStateException if a buffer or the stream is closed
   * @throws IndexOutOfBoundsException if a source is larger than its target
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public void copy(CudaStream stream) {
    BatchTransfers.copyAsync(memories(targets), memories(sources), CudaStream.coreOf(stream));
  }

  /**
   * Makes the copies in order of a stream, with a completion; otherwise {@link #copy(CudaStream)}.
   * The buffers may be closed at once: their memory stays until then.
   *
   * @param stream the stream that the copies are queued in, not capturing
   * @return completes soon after the last copy, on a thread of the library, exceptionally if the
   *     device failed; cannot be cancelled
   * @throws IllegalStateException if something is closed, or the stream is capturing
   */
  public CompletableFuture<Void> copyAsync(CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    return stream.copies().queue(() -> copy(stream));
  }

  private static List<Memory> memories(List<Buffer> buffers) {
    List<Memory> memories = new ArrayList<>(buffers.size());
    for (Buffer buffer : buffers) {
      memories.add(BufferBase.base(buffer).memory());
    }
    return memories;
  }
}
