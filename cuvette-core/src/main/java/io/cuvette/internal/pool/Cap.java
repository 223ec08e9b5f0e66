package io.cuvette.internal.pool;

import java.util.function.LongSupplier;

/**
 * How much memory is held before memory is moved, or what threads have free is brought together: a
 * little more than was ever in use at once. Doing that often in little work allows for more. Not
 * thread-safe.
 */
public final class Cap {
  private static final int FIRST_PERMILLE = 10;
  private static final int STEP_PERMILLE = 10;
  private static final int MOST_PERMILLE = 50;
  private static final int MOST_APART_PERMILLE = 500;

  /** So many pieces moved in few allocations mean that moving costs more than memory is worth. */
  private static final int MANY_PIECES = 1024;

  private static final int FEW_ALLOCATIONS = 16 * MANY_PIECES;

  /** Threads that meet lose more by bringing memory together than in so many allocations. */
  private static final int RARE_ALLOCATIONS = 512;

  /** No piece is larger than this part of what was in use at once: it would be hard to reuse. */
  private static final int PART = 128;

  private static final long LARGEST_PIECE = 32L << 20;

  private int permille = FIRST_PERMILLE;
  private int apartPermille;
  private long gatheredThen;
  private long peakBytes;
  private long pieces;
  private long piecesThen;
  private long allocationsThen;

  /** Takes note of the bytes in use, as requested. */
  public void use(long bytes) {
    peakBytes = Math.max(peakBytes, bytes);
  }

  /**
   * How many of the bytes to be mapped must come from elsewhere.
   *
   * @param requestedBytes what is in use with them
   */
  public long toMove(long bytes, long requestedBytes, Budget held) {
    long peak = Math.max(peakBytes, requestedBytes);
    long most = peak + peak / 1000 * Math.max(permille, apartPermille);
    long room = Math.max(0, most - held.held());
    return bytes == 0 ? 0 : bytes - Math.min(held.room(), room);
  }

  /** Takes note of pieces that moved. */
  public void moved(int count, long allocations) {
    pieces += count;
    if (pieces - piecesThen >= MANY_PIECES) {
      if (allocations - allocationsThen < FEW_ALLOCATIONS) {
        permille = Math.min(MOST_PERMILLE, permille + STEP_PERMILLE);
      }
      piecesThen = pieces;
      allocationsThen = allocations;
    }
  }

  /**
   * Whether more is mapped for a block, and what threads have free apart is left to them.
   *
   * @param requestedBytes gives what is in use
   */
  public boolean leavesApart(long bytes, LongSupplier requestedBytes, Budget held) {
    long mapped = bytes + LARGEST_PIECE; // what is mapped for a block is whole pieces
    if (apartPermille == 0 || held.room() < mapped) {
      return false;
    }
    long peak = Math.max(peakBytes, requestedBytes.getAsLong() + bytes);
    return held.held() + bytes <= peak + peak / 1000 * apartPermille;
  }

  /** Takes note that what threads have free was brought together for a block. */
  public void gathered(long allocations) {
    if (allocations - gatheredThen < RARE_ALLOCATIONS) {
      apartPermille = Math.min(MOST_APART_PERMILLE, apartPermille + STEP_PERMILLE);
    }
    gatheredThen = allocations;
  }

  /** The driver has no more: what threads have free is brought together again. */
  public void refused() {
    apartPermille = 0;
  }

  public long movedPieces() {
    return pieces;
  }

  public long largestPiece() {
    return Math.min(LARGEST_PIECE, peakBytes / PART);
  }
}
