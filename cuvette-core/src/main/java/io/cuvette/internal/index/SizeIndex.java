package io.cuvette.internal.index;

import static io.cuvette.internal.index.BlockTable.NONE;
import static io.cuvette.internal.index.BlockTable.NOTHING;

/**
 * An ordered set of free blocks by size, with blocks of equal size in lists, last in first out. Not
 * thread-safe.
 *
 * <p>Sizes below a limit, of which there may be very many blocks, are addressed directly; the
 * others are found in a trie. The limit rises, up to {@value DenseSizes#LIMIT_UNITS} units, when
 * there are many blocks above: a direct address takes 8 bytes of heap for each size, too much for
 * one large block. Either way the steps of an operation depend on the requested size, never on how
 * many blocks there are.
 *
 * <p>Blocks that are a whole chunk have bitmaps and lists of their own beside those of the parts of
 * chunks: one walk over both finds the best fit, a walk over one finds chunks to release.
 */
public final class SizeIndex {
  /** Sets of blocks that a search may look at: a mask for the bitmaps of parts. */
  public static final long ALL = -1;

  static final long WHOLE_ONLY = 0;

  /** Kinds of blocks. */
  static final int PARTS = 0;

  static final int WHOLE = 1;

  /** The first limit. */
  private static final int FEW_UNITS = 1 << 12;

  /** So many blocks in the trie are worth a higher limit. */
  static final int MANY = 32;

  private final BlockTable blocks;
  private final DenseSizes dense;
  private final SparseSizes sparse;
  private long wholeUnits;

  private final int mostUnits;
  private int limitUnits;

  /** The blocks in the trie. */
  private int large;

  /** Sizes below a power of 2 can be addressed directly. */
  public SizeIndex(BlockTable blocks, int mostUnits) {
    this.blocks = blocks;
    this.mostUnits = mostUnits;
    this.limitUnits = Math.min(mostUnits, FEW_UNITS);
    dense = new DenseSizes(blocks, mostUnits);
    sparse = new SparseSizes(blocks);
  }

  /** Makes room for so many blocks of this size, so that their insertion allocates nothing. */
  public void reserve(long units, int count) {
    if (units >= limitUnits && units < mostUnits && large >= MANY) {
      raiseAbove((int) units);
    }
    if (units < limitUnits) {
      dense.reserve((int) units);
    } else {
      sparse.reserve(units, count);
    }
  }

  /** The same for blocks of this size or less. */
  public void reserveUpTo(long units, int count) {
    reserve(units, count);
    dense.reserve((int) Math.min(units, limitUnits - 1));
  }

  /** Raises the limit above a size; blocks of equal size stay in their order. */
  private void raiseAbove(int units) {
    int limit = Integer.highestOneBit(units) << 1;
    dense.reserve(limit - 1);
    int first = sparse.atLeast(limitUnits, ALL);
    while (first != NONE && blocks.units(first) < limit) {
      int last = first;
      for (int after = first; after != NOTHING; after = blocks.after(after)) {
        last = after;
      }
      while (last != NOTHING) {
        int before = blocks.before(last);
        sparse.remove(last, blocks.units(last), kind(last));
        dense.insert(last, (int) blocks.units(last), kind(last));
        large--;
        last = before;
      }
      first = sparse.atLeast(limitUnits, ALL);
    }
    limitUnits = limit;
  }

  /** Sizes below are addressed directly. */
  int limitUnits() {
    return limitUnits;
  }

  /** Adds an unlisted block, in front of those of its size and kind. */
  public void insert(int block) {
    long units = blocks.units(block);
    int kind = kind(block);
    wholeUnits += units & -kind;
    if (units < limitUnits) {
      dense.insert(block, (int) units, kind);
    } else {
      sparse.insert(block, units, kind);
      large++;
    }
  }

  /** Removes a listed block. */
  public void remove(int block) {
    long units = blocks.units(block);
    int kind = kind(block);
    wholeUnits -= units & -kind;
    if (units < limitUnits) {
      dense.remove(block, (int) units, kind);
    } else {
      sparse.remove(block, units, kind);
      large--;
    }
    blocks.unlist(block);
  }

  private int kind(int block) {
    return blocks.isWhole(block) ? WHOLE : PARTS;
  }

  /** The smallest block of a set with at least so many units, or NONE. */
  public int atLeast(long units, long set) {
    if (units < limitUnits) {
      int block = dense.atLeast((int) units, set);
      if (block != NONE) {
        return block;
      }
    }
    return sparse.atLeast(units, set);
  }

  /** The largest size there is, in units; 0 if there is none. */
  public long largest() {
    long largest = sparse.largest();
    return largest != 0 ? largest : dense.largest();
  }

  /** Units in blocks that are whole chunks. */
  long wholeUnits() {
    return wholeUnits;
  }

  /** Nodes of the trie, used and recycled: what grows with use. */
  int nodes() {
    return sparse.end();
  }

  /**
   * Walks over all bitmaps and lists and counts the blocks.
   *
   * @throws AssertionError if a bit, a link or a note of a block is wrong
   */
  public int checkAndCount() {
    return dense.checkAndCount() + sparse.checkAndCount();
  }
}
