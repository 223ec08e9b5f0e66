package io.cuvette.internal.index;

import static io.cuvette.internal.index.BlockTable.NONE;

/**
 * An ordered set of free blocks by size, with blocks of equal size in lists, last in first out. Not
 * thread-safe.
 *
 * <p>Sizes below {@value DenseSizes#LIMIT_UNITS} units, of which there may be very many blocks, are
 * addressed directly; the others, of which a device holds a thousand or so, are found in a trie.
 * Either way the steps of an operation depend on the requested size, never on how many blocks there
 * are.
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

  private final BlockTable blocks;
  private final DenseSizes dense;
  private final SparseSizes sparse;
  private long wholeUnits;

  private final int limitUnits;

  /** Sizes below a limit, a power of 2, take 8 bytes of heap each, and are found faster. */
  public SizeIndex(BlockTable blocks, int limitUnits) {
    this.blocks = blocks;
    this.limitUnits = limitUnits;
    dense = new DenseSizes(blocks, limitUnits);
    sparse = new SparseSizes(blocks);
  }

  /** Makes room for so many blocks of this size, so that their insertion allocates nothing. */
  public void reserve(long units, int count) {
    if (units < limitUnits) {
      dense.reserve((int) units);
    } else {
      sparse.reserve(units, count);
    }
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
