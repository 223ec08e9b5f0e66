package io.cuvette.internal.transfer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.UsedMemory;
import java.lang.ref.Reference;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;

/** Copies between buffers and fills: checks first, then the driver. Stateless. */
public final class Transfers {
  private static final long PIECE_BYTES = 4L << 20;

  private Transfers() {}

  public static void copy(Memory target, Memory source, OpenStream stream) {
    checkCanWait(stream, "copyFrom");
    copyAsync(target, source, stream);
    if (source.byteSize() > 0) {
      stream.awaitWork();
    }
  }

  public static void copyAsync(Memory target, Memory source, OpenStream stream) {
    target.checkOpen();
    source.checkOpen();
    checkFits(target, source.byteSize());
    target.checkWritable();
    checkStream(target, source, stream);
    long bytes = source.byteSize();
    checkApart(target.address(), bytes, source.address(), bytes);
    if (bytes == 0) {
      return;
    }
    try {
      queue(stream, source, target.block(), driver -> copy(driver, target, source, stream));
    } finally {
      Reference.reachabilityFence(target.face());
    }
  }

  private static void copy(CudaDriver driver, Memory target, Memory source, OpenStream stream) {
    int device = stream.on().id();
    int from = source.on().id();
    int to = target.on().id();
    long bytes = source.byteSize();
    if (from != to && source.isOfDevice() && target.isOfDevice()) {
      stream.state.session.peers().prepareCopy(from, to);
      driver
          .transfers()
          .memcpyPeerAsync(
              device, target.address(), to, source.address(), from, bytes, stream.state.handle);
    } else if (isKeptFrom(stream.on(), target)) {
      CopyViaOwner.queue(target, source, target.on(), stream);
    } else if (isKeptFrom(stream.on(), source)) {
      CopyViaOwner.queue(target, source, source.on(), stream);
    } else {
      driver
          .transfers()
          .memcpyAsync(device, target.address(), source.address(), bytes, stream.state.handle);
    }
  }

  /** Whether the driver copies by the addresses alone in order of a stream, and needs no more. */
  public static boolean isDirect(Memory target, Memory source, OpenStream stream) {
    return target.on().equals(source.on())
        || !((source.isOfDevice() && target.isOfDevice())
            || isKeptFrom(stream.on(), target)
            || isKeptFrom(stream.on(), source));
  }

  /** Whether it is memory of a driver's pool that a device other than its own cannot access. */
  private static boolean isKeptFrom(Device device, Memory buffer) {
    return buffer.isOfDevice()
        && !device.equals(buffer.on())
        && buffer.block().deniesAccess(device);
  }

  /**
   * Queues work with a buffer, which knows the stream after. Both are held, and reachable, until
   * the driver has the work.
   */
  public static void queue(OpenStream stream, Memory buffer, Consumer<CudaDriver> work) {
    buffer.hold();
    try {
      queueHeld(stream, List.of(buffer.block()), work);
    } finally {
      buffer.unhold();
    }
  }

  /** The same for work with two buffers; the caller keeps the other one reachable. */
  public static void queue(
      OpenStream stream, Memory buffer, UsedMemory other, Consumer<CudaDriver> work) {
    other.hold();
    try {
      buffer.hold();
      try {
        queueHeld(stream, List.of(buffer.block(), other), work);
      } finally {
        buffer.unhold();
      }
    } finally {
      other.unhold();
    }
  }

  /** The same for memory that the caller holds and keeps reachable. */
  public static void queueHeld(
      OpenStream stream, List<? extends UsedMemory> used, Consumer<CudaDriver> work) {
    CudaDriver driver = stream.holdToQueue();
    try {
      Capture before = stream.state.capture();
      used.forEach(each -> each.useHeld(stream.state, before));
      work.accept(driver);
      if (stream.state.isExposed()) {
        Capture after = stream.state.capture();
        if (!Objects.equals(before, after)) { // a capture has begun before the work, or ended
          used.forEach(each -> each.useHeld(stream.state, after));
        }
      }
    } finally {
      stream.unhold();
    }
  }

  public static void fill(Memory target, FillValue value, OpenStream stream, ChunkSource scratch) {
    checkCanWait(stream, "fill");
    fillAsync(target, value, stream, scratch);
    if (target.byteSize() > 0) {
      stream.awaitWork();
    }
  }

  /**
   * Queues a fill.
   *
   * @param scratch memory of the device, in order of the stream
   */
  public static void fillAsync(
      Memory target, FillValue value, OpenStream stream, ChunkSource scratch) {
    target.checkOpen();
    value.check(target);
    target.checkWritable();
    checkStream(target, target, stream);
    if (target.byteSize() == 0) {
      return;
    }
    if (target.faces().isOfHost() && target.block().isMapped()) {
      fillByCopies(target, value, stream, scratch);
    } else {
      queue(stream, target, driver -> value.fill(driver, target, stream));
    }
  }

  /** Devices are not let into host memory of another process, but copy to it. */
  private static void fillByCopies(
      Memory target, FillValue value, OpenStream stream, ChunkSource scratch) {
    long bytes = target.byteSize();
    Memory filled = Objects.requireNonNull(scratch.allocate(Math.min(bytes, PIECE_BYTES), stream));
    try {
      fillAsync(filled, value, stream, scratch);
      for (long done = 0; done < bytes; done += PIECE_BYTES) {
        long piece = Math.min(PIECE_BYTES, bytes - done);
        copyAsync(target.part(done, piece), filled.part(0, piece), stream);
      }
    } finally {
      filled.close();
    }
  }

  /** Checks that an operation may wait for a stream. */
  public static void checkCanWait(OpenStream stream, String call) {
    stream.checkNotCapturing(call);
    stream.checkCanWait(call);
  }

  public static void checkFits(Memory target, long bytes) {
    if (bytes > target.byteSize()) {
      throw new IndexOutOfBoundsException(
          "copy of %d bytes into %s (expected: <= %d)".formatted(bytes, target, target.byteSize()));
    }
  }

  /** Checks that copied ranges are apart, since what the driver makes of others is undefined. */
  public static void checkApart(long target, long targetBytes, long source, long bytes) {
    long shared = Math.min(target + targetBytes, source + bytes) - Math.max(target, source);
    if (shared > 0) {
      throw new IllegalArgumentException(
          "copy of %d bytes from 0x%x to 0x%x: %d bytes are in both ranges (expected: none)"
              .formatted(bytes, source, target, shared));
    }
  }

  /**
   * The stream's device must be that of one of the buffers; host and managed memory fit every
   * device.
   */
  public static void checkStream(Memory target, Memory source, OpenStream stream) {
    stream.checkOf(target.on().session());
    if (source.on().session() != target.on().session()) {
      throw new IllegalArgumentException("%s belongs to another Cuda".formatted(source));
    }
    boolean fits =
        stream.on().equals(target.on())
            || stream.on().equals(source.on())
            || (!target.isOfDevice() && !source.isOfDevice());
    if (!fits) {
      throw new IllegalArgumentException(
          "%s (expected: a stream of %s%s)"
              .formatted(
                  stream,
                  target.on(),
                  target.on().equals(source.on()) ? "" : " or " + source.on()));
    }
  }
}
