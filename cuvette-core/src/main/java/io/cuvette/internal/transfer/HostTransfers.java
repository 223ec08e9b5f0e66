package io.cuvette.internal.transfer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.stream.UsedMemory;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;

/**
 * Copies between buffers and segments of the host. Heap memory can move while the driver works, so
 * it goes through page-locked chunks; while one chunk is on its way, the host fills or empties the
 * other. Stateless.
 */
public final class HostTransfers {
  private static final long CHUNK_BYTES = 4L << 20;

  private HostTransfers() {}

  /**
   * Copies a segment and waits.
   *
   * @param pinned page-locked memory for what goes through it
   */
  public static void copyIn(
      Memory target, MemorySegment source, OpenStream stream, ChunkSource pinned) {
    Transfers.checkCanWait(stream, "copyFrom");
    Transfers.checkFits(target, source.byteSize());
    checkApart(target, source);
    if (source.byteSize() == 0) {
      return;
    }
    MemorySegment host = target.hostMemory();
    if (host != null) {
      stream.awaitWork();
      copyHere(target, source, host, source.byteSize(), true);
    } else if (source.isNative() && canWait(stream)) {
      copyInAsync(target, source, stream);
      stream.awaitWork();
    } else {
      stage(target, source, stream, pinned, true);
    }
  }

  /**
   * Copies into a segment and waits.
   *
   * @param pinned page-locked memory for what goes through it
   */
  public static void copyOut(
      Memory source, MemorySegment target, OpenStream stream, ChunkSource pinned) {
    Transfers.checkCanWait(stream, "copyTo");
    checkHolds(source, target);
    checkApart(source, target);
    if (target.byteSize() == 0) {
      return;
    }
    MemorySegment host = source.hostMemory();
    if (host != null) {
      stream.awaitWork();
      copyHere(source, host, target, target.byteSize(), false);
    } else if (target.isNative() && canWait(stream)) {
      copyOutAsync(source, target, stream);
      stream.awaitWork();
    } else {
      stage(source, target, stream, pinned, false);
    }
  }

  /** Inside a callback a wait can end before the work; the driver is not left with user memory. */
  private static boolean canWait(OpenStream stream) {
    return !stream.on().session().isInsideCallback();
  }

  public static void copyInAsync(Memory target, MemorySegment source, OpenStream stream) {
    target.checkOpen();
    Transfers.checkFits(target, source.byteSize());
    checkNative("source", source);
    Transfers.checkStream(target, target, stream);
    checkApart(target, source);
    if (source.byteSize() > 0) {
      int device = stream.on().id();
      queue(
          stream,
          target,
          source,
          driver ->
              driver
                  .transfers()
                  .memcpyHtoDAsync(device, target.address(), source, stream.state.handle));
    }
  }

  public static void copyOutAsync(Memory source, MemorySegment target, OpenStream stream) {
    source.checkOpen();
    checkHolds(source, target);
    checkNative("target", target);
    if (target.isReadOnly()) {
      throw new IllegalArgumentException("target: %s is read-only".formatted(target));
    }
    Transfers.checkStream(source, source, stream);
    checkApart(source, target);
    if (target.byteSize() > 0) {
      int device = stream.on().id();
      queue(
          stream,
          source,
          target,
          driver ->
              driver
                  .transfers()
                  .memcpyDtoHAsync(device, target, source.address(), stream.state.handle));
    }
  }

  /** Copies bytes of a buffer on this thread; in pieces, so that closing it waits for one alone. */
  private static void copyHere(
      Memory buffer, MemorySegment from, MemorySegment to, long bytes, boolean in) {
    BlockReports.hostCopy(buffer, in ? from : to, bytes, in);
    for (long done = 0; done < bytes; done += CHUNK_BYTES) {
      buffer.hold();
      try {
        MemorySegment.copy(from, done, to, done, Math.min(CHUNK_BYTES, bytes - done));
      } finally {
        buffer.unhold();
      }
    }
  }

  /**
   * Queues a copy between a buffer and native memory, which can be another buffer's: that knows the
   * stream after, too. The arena of the memory is held by the call of the driver.
   */
  private static void queue(
      OpenStream stream, Memory buffer, MemorySegment host, Consumer<CudaDriver> work) {
    UsedMemory viewed = stream.state.streams.views().find(host);
    if (viewed == null) {
      stream.awaitInCallback("a copy of native memory"); // pageable, for which the driver waits
      Transfers.queue(
          stream,
          buffer,
          driver -> {
            work.accept(driver);
            keepIfCaptured(stream, host);
          });
    } else {
      Transfers.queue(stream, buffer, viewed, work);
    }
  }

  /** An arena that the collector ends must not end before the graph. */
  private static void keepIfCaptured(OpenStream stream, MemorySegment host) {
    Capture capture = stream.state.capture();
    if (capture != null) {
      capture.keep(host);
    }
  }

  private static void checkHolds(Memory source, MemorySegment target) {
    if (target.byteSize() > source.byteSize()) {
      throw new IndexOutOfBoundsException(
          "copy of %d bytes out of %s (expected: <= %d)"
              .formatted(target.byteSize(), source, source.byteSize()));
    }
  }

  /** A segment can be the buffer's own memory, at the device's address or at the host's. */
  private static void checkApart(Memory buffer, MemorySegment segment) {
    if (segment.isNative()) {
      Transfers.checkApart(buffer.address(), segment.address(), segment.byteSize());
      Transfers.checkApart(buffer.hostAddress(), segment.address(), segment.byteSize());
    }
  }

  private static void checkNative(String name, MemorySegment segment) {
    if (!segment.isNative()) {
      throw new IllegalArgumentException(
          ("%s: heap segment of %d bytes in an asynchronous copy, which the collector may move:"
                  + " copy it into a PinnedBuffer first")
              .formatted(name, segment.byteSize()));
    }
    if (!segment.scope().isAlive()) {
      throw new IllegalStateException("%s: the arena of %s is closed".formatted(name, segment));
    }
  }

  private static void stage(
      Memory device, MemorySegment heap, OpenStream stream, ChunkSource pinned, boolean in) {
    if (!in && heap.isReadOnly()) {
      throw new IllegalArgumentException("target: %s is read-only".formatted(heap));
    }
    long chunk = Math.min(CHUNK_BYTES, heap.byteSize());
    try (StagingChunk even = new StagingChunk(device, heap, stream, pinned, chunk);
        StagingChunk odd =
            heap.byteSize() > chunk
                ? new StagingChunk(device, heap, stream, pinned, chunk)
                : even) {
      StagingChunk next = even;
      for (long offset = 0; offset < heap.byteSize(); offset += chunk) {
        if (in) {
          next.sendIn(offset);
        } else {
          next.sendOut(offset);
        }
        next = next == even ? odd : even;
      }
      // In order of their offsets, so that the last chunks are emptied too.
      next.finish();
      (next == even ? odd : even).finish();
    }
  }
}
