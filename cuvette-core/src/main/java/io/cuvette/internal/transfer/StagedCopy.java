package io.cuvette.internal.transfer;

import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.hostcopy.CopyThreads;
import io.cuvette.internal.hostcopy.HostParts;
import io.cuvette.internal.hostcopy.PartialCopy;
import io.cuvette.internal.hostcopy.Pieces;
import io.cuvette.internal.order.OpenStream;

/**
 * One copy between memory of the host and a buffer through chunks: while the device copies some,
 * threads fill or empty others. All calls of the driver are made by the thread that copies, in the
 * order of the bytes, so that what is written is a prefix when a copy fails. When the thread is
 * interrupted it begins no other part, and ends what it has begun. Confined to that thread.
 */
final class StagedCopy {
  /** The bytes of each part but the last, which a chunk stands for. */
  static final long PART_BYTES = 2L << 20;

  /** From so many bytes on other threads help. */
  private static final int HELPED_BYTES = 1 << 20;

  private final HostParts host;
  private final PackedRows packed;
  private final OpenStream stream;
  private final boolean in;
  private final int helpers;
  private final ChunkRing ring;
  private final long partBytes;
  private final int parts;

  /** The part that is not begun, nor those after it. */
  private int end;

  /** The bytes from the start that have come to the other side, or are on their way there. */
  private long written;

  /** How many bytes behind these may be written too. */
  private long touched;

  private StagedCopy(
      Memory device,
      PackedRows packed,
      HostParts host,
      OpenStream stream,
      Staging staging,
      boolean in,
      boolean isAlone) {
    this.host = host;
    this.packed = packed;
    this.stream = stream;
    this.in = in;
    boolean helped = !isAlone && host.byteSize() >= HELPED_BYTES && host.isForAllThreads();
    this.helpers = helped ? CopyThreads.MOST : 0;
    long bytes = Math.min(host.byteSize(), Math.min(PART_BYTES, staging.mostBytes()));
    this.ring =
        new ChunkRing(
            staging,
            device,
            stream,
            () -> staging.first(device, stream, bytes, !isAlone),
            2 * (helpers + 1));
    this.partBytes = ring.chunkBytes();
    this.parts = Math.toIntExact((host.byteSize() + partBytes - 1) / partBytes);
    this.end = parts;
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
    StagedCopy copy = new StagedCopy(device, packed, host, stream, staging, in, isAlone);
    try (ChunkRing _ = copy.ring) {
      copy.run();
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

  private void run() {
    if (parts == 1) {
      copyOne();
      return;
    }
    Pieces pieces =
        new Pieces(this::copyPiece, host.pieces(), piecesOfPart(), ring.most(), helpers);
    try {
      if (in) {
        sendAll(pieces);
      } else {
        fetchAll(pieces);
      }
      if (end < parts) {
        throw PartialCopy.interrupted();
      }
    } finally {
      pieces.stop();
    }
  }

  /** Few bytes need neither events nor other threads: the stream is waited for. */
  private void copyOne() {
    boolean _ = ring.take(0);
    if (in) {
      copyAll();
      send(0);
      stream.awaitWork();
    } else {
      fetch(0);
      stream.awaitWork();
      touched = host.byteSize();
      copyAll();
      touched = 0;
      written = host.byteSize();
    }
  }

  private void copyAll() {
    report(0);
    for (int piece = 0; piece < host.pieces(); piece++) {
      ring.at(0).copy(host, piece, (long) piece * HostParts.PIECE_BYTES, in);
    }
  }

  private int piecesOfPart() {
    return (int) (partBytes / HostParts.PIECE_BYTES);
  }

  /** On any thread. */
  private void copyPiece(int piece) {
    long offset = (long) (piece % piecesOfPart()) * HostParts.PIECE_BYTES;
    ring.at(piece / piecesOfPart()).copy(host, piece, offset, in);
  }

  /** Where to end; an interrupt leaves it at what is begun. */
  private int end(int begun) {
    if (begun < end && Thread.currentThread().isInterrupted()) {
      end = begun;
    }
    return end;
  }

  private void sendAll(Pieces pieces) {
    int opened = 0;
    int sent = 0;
    int past = 0;
    while (sent < end(opened)) {
      pieces.check();
      if (opened < end && ring.take(opened)) {
        report(opened);
        pieces.open(opened);
        opened++;
      } else if (sent < opened && pieces.isDone(sent)) {
        send(sent);
        ring.at(sent).mark();
        sent++;
      } else if (opened < end && past < sent && ring.at(past).isPast()) {
        ring.free(past);
        past++;
      } else if (!pieces.copyOne()) {
        if (sent < opened) {
          pieces.await(sent);
        } else {
          ring.at(past).awaitPast();
        }
      }
    }
    if (end > 0) {
      ring.at(end - 1).awaitPast();
    }
  }

  private void fetchAll(Pieces pieces) {
    int fetched = 0;
    int opened = 0;
    int done = 0;
    while (done < end(opened)) {
      pieces.check();
      if (fetched < end && ring.take(fetched)) {
        fetch(fetched);
        ring.at(fetched).mark();
        fetched++;
      } else if (done < opened && pieces.isDone(done)) {
        ring.free(done);
        written += bytes(done);
        touched -= bytes(done);
        done++;
      } else if (opened < Math.min(fetched, end) && ring.at(opened).isPast()) {
        report(opened);
        touched += bytes(opened);
        pieces.open(opened);
        opened++;
      } else if (!pieces.copyOne()) {
        if (opened < Math.min(fetched, end)) {
          ring.at(opened).awaitPast();
        } else {
          pieces.await(done);
        }
      }
    }
  }

  private long offset(int part) {
    return part * partBytes;
  }

  private long bytes(int part) {
    return Math.min(partBytes, host.byteSize() - offset(part));
  }

  private void report(int part) {
    long bytes = bytes(part);
    ring.at(part).report(host.window(offset(part), bytes), bytes, in);
  }

  /** Byte after byte, so that what is written is a prefix also if a call fails. */
  private void send(int part) {
    StagingChunk chunk = ring.at(part);
    long from = offset(part);
    packed.split(
        from,
        bytes(part),
        takesRows(chunk),
        (at, apart, bytes, rows, layers) -> {
          chunk.send(at - from, apart, bytes, rows, layers);
          written += bytes * rows * layers;
        });
  }

  private void fetch(int part) {
    StagingChunk chunk = ring.at(part);
    long from = offset(part);
    packed.split(
        from,
        bytes(part),
        takesRows(chunk),
        (at, apart, bytes, rows, layers) -> chunk.fetch(at - from, apart, bytes, rows, layers));
  }

  /** The driver is given memory that is not page-locked as a segment, row by row. */
  private boolean takesRows(StagingChunk chunk) {
    return chunk.isPinned() && packed.isForDriver();
  }
}
