package io.cuvette.internal.transfer;

import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.hostcopy.HostParts;
import io.cuvette.internal.hostcopy.PartialCopy;
import io.cuvette.internal.order.OpenStream;

/**
 * One copy between memory of the host and a buffer through chunks. All calls of the driver are made
 * by the thread that copies, in the order of the bytes, so that what is written is a prefix when a
 * copy fails. Confined to that thread.
 */
final class StagedCopy {
  /** The most bytes that a chunk stands for. */
  static final long PART_BYTES = 2L << 20;

  final HostParts host;
  final OpenStream stream;
  final boolean in;
  private final PackedRows packed;

  /** The bytes from the start that have come to the other side, or are on their way there. */
  long written;

  /** How many bytes behind these may be written too. */
  long touched;

  private StagedCopy(PackedRows packed, HostParts host, OpenStream stream, boolean in) {
    this.packed = packed;
    this.host = host;
    this.stream = stream;
    this.in = in;
  }

  /**
   * Copies and waits.
   *
   * @param packed where the bytes are in the buffer
   * @param in whether it is from the host to the buffer
   * @param isAlone whether this thread copies alone and waits for no other transfer
   */
  static void run(
      Memory device,
      PackedRows packed,
      HostParts host,
      OpenStream stream,
      Staging staging,
      boolean in,
      boolean isAlone) {
    BlockReports.hostAccess(device, host, in);
    StagedCopy copy = new StagedCopy(packed, host, stream, in);
    long bytes = Math.min(host.byteSize(), Math.min(PART_BYTES, staging.mostBytes()));
    StagingChunk first = staging.first(device, stream, bytes, !isAlone);
    try (first) {
      if (first.byteSize() == host.byteSize()) {
        copy.run(first);
      } else {
        StagedParts.run(copy, device, staging, first, isAlone);
      }
    } catch (RuntimeException | Error e) {
      throw PartialCopy.explained(
          named(e, stream), in, host.byteSize(), packed.width(), copy.written, copy.touched);
    }
  }

  /** What ends with the Cuda under a copy is the copy's own, and no name for users. */
  private static Throwable named(Throwable e, OpenStream stream) {
    return e.getClass() == IllegalStateException.class && stream.on().session().isClosed()
        ? new IllegalStateException("Cuda is closed", e)
        : e;
  }

  /** Few bytes need neither events nor other threads: the stream is waited for. */
  private void run(StagingChunk chunk) {
    long bytes = host.byteSize();
    if (in) {
      copyAll(chunk);
      send(chunk, 0, bytes);
      stream.awaitWork();
    } else {
      fetch(chunk, 0, bytes);
      stream.awaitWork();
      touched = bytes;
      copyAll(chunk);
      touched = 0;
      written = bytes;
    }
  }

  private void copyAll(StagingChunk chunk) {
    report(chunk, 0, host.byteSize());
    for (int piece = 0; piece < host.pieces(); piece++) {
      chunk.copy(host, piece, (long) piece * HostParts.PIECE_BYTES, in);
    }
  }

  void report(StagingChunk chunk, long from, long bytes) {
    chunk.report(host.window(from, bytes), bytes, in);
  }

  /** Byte after byte, so that what is written is a prefix also if a call fails. */
  void send(StagingChunk chunk, long from, long bytes) {
    packed.split(
        from,
        bytes,
        takesRows(chunk),
        (at, apart, width, rows, layers) -> {
          chunk.send(at - from, apart, width, rows, layers);
          written += width * rows * layers;
        });
  }

  void fetch(StagingChunk chunk, long from, long bytes) {
    packed.split(
        from,
        bytes,
        takesRows(chunk),
        (at, apart, width, rows, layers) -> chunk.fetch(at - from, apart, width, rows, layers));
  }

  /** The driver is given memory that is not page-locked as a segment, row by row. */
  private boolean takesRows(StagingChunk chunk) {
    return chunk.isPinned() && packed.isForDriver();
  }
}
