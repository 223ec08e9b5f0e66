package io.cuvette.internal.transfer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.internal.block.Addresses;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.hostcopy.HostParts;
import io.cuvette.internal.hostcopy.PartialCopy;
import io.cuvette.internal.lifetime.HostViews;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.stream.UsedMemory;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * Copies between buffers and memory of the host. What is not page-locked goes through page-locked
 * chunks: heap memory can move while the driver works, a mapped file can shrink, and the driver's
 * own way with other memory is slow. Stateless.
 */
public final class HostTransfers {
  /** The driver copies so many bytes of pageable memory before its call returns. */
  private static final long DRIVER_STAGES_BYTES = 64 << 10;

  private HostTransfers() {}

  /** Copies a segment to the start of a buffer and waits. */
  public static void copyIn(
      Memory target, MemorySegment source, OpenStream stream, Staging staging) {
    Transfers.checkCanWait(stream, "copyFrom");
    Transfers.checkFits(target, source.byteSize());
    target.checkWritable();
    checkApart(target, source.byteSize(), source);
    if (target.hostMemory() == null && source.byteSize() > 0 && isForDriver(source, stream, true)) {
      target.checkOpen();
      checkNative("source", source);
      queueIn(target, source, stream);
      stream.awaitWork();
    } else {
      copy(target, HostParts.of("source", source, false), stream, staging, true);
    }
  }

  /** Copies the start of a buffer to a segment and waits. */
  public static void copyOut(
      Memory source, MemorySegment target, OpenStream stream, Staging staging) {
    Transfers.checkCanWait(stream, "copyTo");
    checkHolds(source, target.byteSize());
    checkApart(source, target.byteSize(), target);
    if (source.hostMemory() == null
        && target.byteSize() > 0
        && isForDriver(target, stream, false)) {
      source.checkOpen();
      checkNative("target", target);
      checkWritable(target);
      queueOut(source, target, stream);
      stream.awaitWork();
    } else {
      copy(source, HostParts.of("target", target, true), stream, staging, false);
    }
  }

  /** Copies between the start of a buffer and the host, through chunks or by threads, and waits. */
  public static void copy(
      Memory buffer, HostParts host, OpenStream stream, Staging staging, boolean in) {
    if (host.byteSize() == 0) {
      return;
    }
    MemorySegment memory = buffer.hostMemory();
    if (memory != null) {
      stream.awaitTurn();
      HostCopy.run(buffer, memory, host, in);
    } else {
      PackedRows packed = PackedRows.of(host.byteSize());
      StagedCopy.run(buffer, packed, host, stream, staging, in, !canWait(stream));
    }
  }

  /** Copies between rows of the host and as many rows of a buffer, and waits. */
  public static void copyRows(
      Memory buffer,
      PackedRows packed,
      String name,
      List<MemorySegment> rows,
      OpenStream stream,
      Staging staging,
      boolean in) {
    if (buffer.hostMemory() == null) {
      HostParts host = HostParts.of(name, rows, !in);
      StagedCopy.run(buffer, packed, host, stream, staging, in, !canWait(stream));
      return;
    }
    stream.awaitTurn();
    boolean endsEarly = rows.size() * packed.width() > StagedCopy.PART_BYTES;
    for (int i = 0; i < rows.size(); i++) {
      try {
        if (endsEarly && Thread.currentThread().isInterrupted()) {
          throw PartialCopy.interrupted();
        }
        Memory row = buffer.part(packed.offsetOf(i), packed.width());
        MemorySegment memory = Objects.requireNonNull(row.hostMemory());
        HostCopy.run(row, memory, HostParts.of(name, rows.get(i), !in), in);
      } catch (RuntimeException | Error e) {
        throw PartialCopy.explained(
            e, "copy of %d rows: the first %d were written".formatted(rows.size(), i));
      }
    }
  }

  /**
   * Whether the driver is given the memory: if that is page-locked, or so few bytes on their way to
   * a device that the driver copies them at once; back it takes longer than a chunk. Not a file,
   * which may shrink: the driver does not survive that.
   */
  private static boolean isForDriver(MemorySegment host, OpenStream stream, boolean in) {
    if (!host.isNative() || !canWait(stream)) {
      return false;
    }
    HostViews<UsedMemory> views = stream.state.streams.views();
    if (views.find(host) != null) {
      return true;
    }
    return !host.isMapped()
        && !views.isInPart(host)
        && !views.isOfAnother(host)
        && (host.byteSize() <= DRIVER_STAGES_BYTES
            ? in
            : Addresses.isPageLocked(stream.on(), host.address()));
  }

  /** Whether others have page-locked native memory: nobody here knows how long it stays. */
  public static boolean isPageLockedByOthers(MemorySegment host, OpenStream stream) {
    HostViews<UsedMemory> views = stream.state.streams.views();
    return !host.isMapped()
        && views.find(host) == null
        && !views.isInPart(host)
        && !views.isOfAnother(host)
        && Addresses.isPageLocked(stream.on(), host.address());
  }

  /** Inside a callback a wait can end before the work; the driver is not left with user memory. */
  private static boolean canWait(OpenStream stream) {
    return !stream.on().session().isInsideCallback();
  }

  /**
   * Copies native memory to the start of a buffer in order of a stream. As with the driver, the
   * call returns when memory that is not page-locked has been read.
   */
  public static void copyInAsync(
      Memory target, MemorySegment source, OpenStream stream, Staging staging) {
    checkIn(target, source, stream);
    if (isStaged(source, stream)) {
      Transfers.checkCanWait(stream, "copyFrom");
      copy(target, HostParts.of("source", source, false), stream, staging, true);
    } else if (source.byteSize() > 0) {
      queueIn(target, source, stream);
    }
  }

  /** Checks a copy of native memory to the start of a buffer in order of a stream. */
  public static void checkIn(Memory target, MemorySegment source, OpenStream stream) {
    target.checkOpen();
    Transfers.checkFits(target, source.byteSize());
    target.checkWritable();
    checkNative("source", source);
    Transfers.checkStream(target, target, stream);
    checkApart(target, source.byteSize(), source);
  }

  /** Checks a copy of the start of a buffer to native memory in order of a stream. */
  public static void checkOut(Memory source, MemorySegment target, OpenStream stream) {
    source.checkOpen();
    checkHolds(source, target.byteSize());
    checkNative("target", target);
    checkWritable(target);
    Transfers.checkStream(source, source, stream);
    checkApart(source, target.byteSize(), target);
  }

  private static void queueIn(Memory target, MemorySegment source, OpenStream stream) {
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

  /** Copies the start of a buffer to native memory in order of a stream, likewise. */
  public static void copyOutAsync(
      Memory source, MemorySegment target, OpenStream stream, Staging staging) {
    checkOut(source, target, stream);
    if (isStaged(target, stream)) {
      Transfers.checkCanWait(stream, "copyTo");
      copy(source, HostParts.of("target", target, true), stream, staging, false);
    } else if (target.byteSize() > 0) {
      queueOut(source, target, stream);
    }
  }

  private static void checkWritable(MemorySegment target) {
    if (target.isReadOnly()) {
      throw new IllegalArgumentException("target: %s is read-only".formatted(target));
    }
  }

  private static void queueOut(Memory source, MemorySegment target, OpenStream stream) {
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

  /**
   * Whether native memory in order of a stream goes through chunks. What is captured cannot: each
   * launch of the graph reads or writes the memory itself.
   */
  private static boolean isStaged(MemorySegment host, OpenStream stream) {
    HostViews<UsedMemory> views = stream.state.streams.views();
    boolean inPart = views.isInPart(host) || views.isOfAnother(host);
    boolean worth =
        inPart || host.isMapped() || (host.byteSize() > DRIVER_STAGES_BYTES && canWait(stream));
    if (!worth || views.find(host) != null) {
      return false;
    }
    if (stream.state.capture() == null) {
      return inPart || host.isMapped() || !Addresses.isPageLocked(stream.on(), host.address());
    }
    if (host.isMapped()) {
      throw new IllegalStateException(
          "%s is capturing a graph, whose launches do not survive that the file of %s shrinks"
                  .formatted(stream, host)
              + " (expected: a PinnedBuffer)");
    }
    return false;
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
            copy(driver, host, work);
            keepIfCaptured(stream, host);
          });
    } else {
      Transfers.queue(stream, buffer, viewed, driver -> copy(driver, host, work));
    }
  }

  /** Names what was closed under the call: the JVM does not. */
  private static void copy(CudaDriver driver, MemorySegment host, Consumer<CudaDriver> work) {
    try {
      work.accept(driver);
    } catch (IllegalStateException e) {
      throw host.scope().isAlive()
          ? e
          : PartialCopy.explained(
              HostParts.closed("memory of the host", host, e),
              "copy of %d bytes: some may be written".formatted(host.byteSize()));
    }
  }

  /** An arena that the collector ends must not end before the graph. */
  private static void keepIfCaptured(OpenStream stream, MemorySegment host) {
    Capture capture = stream.state.capture();
    if (capture != null) {
      capture.keep(host);
    }
  }

  public static void checkHolds(Memory source, long bytes) {
    if (bytes > source.byteSize()) {
      throw new IndexOutOfBoundsException(
          "copy of %d bytes out of %s (expected: <= %d)"
              .formatted(bytes, source, source.byteSize()));
    }
  }

  /** A segment can be the buffer's own memory, at the device's address or at the host's. */
  public static void checkApart(Memory buffer, long bytes, MemorySegment segment) {
    if (segment.isNative()) {
      Transfers.checkApart(buffer.address(), bytes, segment.address(), segment.byteSize());
      Transfers.checkApart(buffer.hostAddress(), bytes, segment.address(), segment.byteSize());
    }
  }

  /** Checks memory that an asynchronous copy is given. */
  public static void checkNative(String name, MemorySegment segment) {
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
}
