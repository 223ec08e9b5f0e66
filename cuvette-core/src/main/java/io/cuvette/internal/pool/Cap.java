package io.cuvette.internal.pool;

/**
 * How much memory is held before memory is moved: a little more than was ever in use at once.
 * Moving much in little work allows for more. Not thread-safe.
 */
public final class Cap {
  private static final int FIRST_PERMILLE = 10;
  private static final int STEP_PERMILLE = 10;
  private static final int MOST_PERMILLE = 50;

  /** So many pieces moved in few allocations mean that moving costs more than memory is worth. */
  private static final int MANY_PIECES = 1024;

  private static final int FEW_ALLOCATIONS = 16 * MANY_PIECES;

  /** No piece is larger than this part of what was in use at once: it would be hard to reuse. */
  private static final int PART = 128;

  private static final long LARGEST_PIECE = 32L << 20;

  private int permille = FIRST_PERMILLE;
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
    long room = Math.max(0, peak + peak / 1000 * permille - held.held());
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

  public long movedPieces() {
    return pieces;
  }

  public long largestPiece() {
    return Math.min(LARGEST_PIECE, peakBytes / PART);
  }
}
