package io.cuvette.internal.transfer;

import io.cuvette.internal.block.Memory;
import io.cuvette.internal.hostcopy.CopyThreads;
import io.cuvette.internal.hostcopy.HostParts;
import io.cuvette.internal.hostcopy.PartialCopy;
import io.cuvette.internal.hostcopy.Pieces;

/**
 * The parts of a copy that takes several chunks: while the device copies some, threads fill or
 * empty others. When the thread that copies is interrupted it begins no other part, and ends what
 * it has begun. Confined to that thread.
 */
final class StagedParts {
  private final StagedCopy copy;
  private final ChunkRing ring;
  private final long partBytes;
  private final int parts;

  /** The part that is not begun, nor those after it. */
  private int end;

  private StagedParts(StagedCopy copy, ChunkRing ring) {
    this.copy = copy;
    this.ring = ring;
    this.partBytes = ring.chunkBytes();
    this.parts = Math.toIntExact((copy.host.byteSize() + partBytes - 1) / partBytes);
    this.end = parts;
  }

  /**
   * Copies and waits.
   *
   * @param first a chunk, whose bytes are those of each part but the last
   * @param isAlone whether this thread copies alone
   */
  static void run(
      StagedCopy copy, Memory device, Staging staging, StagingChunk first, boolean isAlone) {
    HostParts host = copy.host;
    boolean helped =
        !isAlone && host.byteSize() >= CopyThreads.HELPED_BYTES && host.isForAllThreads();
    int helpers = helped ? CopyThreads.MOST : 0;
    try (ChunkRing ring = new ChunkRing(staging, device, copy.stream, first, 2 * (helpers + 1))) {
      new StagedParts(copy, ring).run(helpers);
    }
  }

  private void run(int helpers) {
    Pieces pieces =
        new Pieces(this::copyPiece, copy.host.pieces(), piecesOfPart(), ring.most(), helpers);
    try {
      if (copy.in) {
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

  private int piecesOfPart() {
    return (int) (partBytes / HostParts.PIECE_BYTES);
  }

  /** On any thread. */
  private void copyPiece(int piece) {
    long offset = (long) (piece % piecesOfPart()) * HostParts.PIECE_BYTES;
    ring.at(piece / piecesOfPart()).copy(copy.host, piece, offset, copy.in);
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
        copy.send(ring.at(sent), offset(sent), bytes(sent));
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
        copy.fetch(ring.at(fetched), offset(fetched), bytes(fetched));
        ring.at(fetched).mark();
        fetched++;
      } else if (done < opened && pieces.isDone(done)) {
        ring.free(done);
        copy.written += bytes(done);
        copy.touched -= bytes(done);
        done++;
      } else if (opened < Math.min(fetched, end) && ring.at(opened).isPast()) {
        report(opened);
        copy.touched += bytes(opened);
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
    return Math.min(partBytes, copy.host.byteSize() - offset(part));
  }

  private void report(int part) {
    copy.report(ring.at(part), offset(part), bytes(part));
  }
}
