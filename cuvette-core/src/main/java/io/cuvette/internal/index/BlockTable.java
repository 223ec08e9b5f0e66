package io.cuvette.internal.index;

import static io.cuvette.internal.index.ArenaCheck.require;

import java.util.Arrays;

/**
 * The records of all blocks of an arena in primitive arrays: a block is an index, and a recycled
 * index is used again before there are more. Records never move once they fill a segment, so that
 * growing takes no longer the more blocks there are. Not thread-safe.
 *
 * <p>Neighbours of a chunk are linked in address order ({@code prev}, {@code next}); listed blocks
 * of equal size and kind are linked in a list of their own ({@code before}, {@code after}), whose
 * head is held by {@link SizeIndex}. A record is 64 bytes, its fields in the order in which they
 * are wanted, so that most visits to a block touch one cache line.
 */
public final class BlockTable {
  public static final int NONE = -1;

  /** No block either; both have a size, which is 0. */
  public static final int NOTHING = -2;

  /** In the place of a listed block's links, whose upper half is {@link #NOTHING} or more. */
  private static final long UNLISTED = -3L << Integer.SIZE;

  private static final long RECYCLED = -4L << Integer.SIZE;
  private static final long LEAST_LISTED = (long) NOTHING << Integer.SIZE;
  private static final long ALONE = pack(NOTHING, NOTHING);

  private static final int INITIAL_BLOCKS = 16;
  private static final int SHIFT = 3;
  private static final int SEGMENT_SHIFT = 12;
  private static final int SEGMENT_BLOCKS = 1 << SEGMENT_SHIFT;

  /** Records of {@link #NOTHING} and {@link #NONE}, which never are what one looks for. */
  private static final int DUMMIES = 2;

  private static final int UNITS = 0;
  private static final int NEIGHBOURS = 1;
  private static final int LEAF_AND_CHUNK = 2;
  private static final int LIST = 3;
  private static final int ADDRESS = 4;
  private static final int BASE = 5;

  private static final long LOW = 0xFFFF_FFFFL;
  private static final long HIGH = ~LOW;
  private static final long NONE_TWICE = -1;

  /** The first segment, which grows; most arenas never have another. */
  private long[] first = new long[INITIAL_BLOCKS << SHIFT];

  /** The others, and nothing in the place of the first. */
  private long[][] segments = {new long[0]};

  /** How many records there is room for. */
  private int room = INITIAL_BLOCKS - DUMMIES;

  private int end;
  private int recycled = NONE;
  private int live;

  public BlockTable() {
    for (int dummy = NOTHING; dummy <= NONE; dummy++) {
      unlist(dummy);
    }
  }

  /** Makes room for one more block, so that making it allocates nothing. */
  public void reserve() {
    if (recycled == NONE && end == room) {
      grow();
    }
  }

  private void grow() {
    int count = segments.length;
    if (room + DUMMIES < SEGMENT_BLOCKS) {
      first = Arrays.copyOf(first, first.length << 1);
    } else {
      long[] segment = new long[SEGMENT_BLOCKS << SHIFT];
      segments = Arrays.copyOf(segments, count + 1);
      segments[count] = segment;
    }
    room += Math.min(room + DUMMIES, SEGMENT_BLOCKS);
  }

  /** An unlisted block without neighbours. */
  public int create(long address, long units, long base, int chunk) {
    reserve();
    int block = recycled;
    if (block == NONE) {
      block = end++;
    } else {
      recycled = next(block);
    }
    live++;
    long[] records = segment(block);
    int record = at(block);
    records[record + UNITS] = units;
    records[record + NEIGHBOURS] = NONE_TWICE;
    records[record + LIST] = UNLISTED;
    records[record + LEAF_AND_CHUNK] = pack(NONE, chunk);
    records[record + ADDRESS] = address;
    records[record + BASE] = base;
    return block;
  }

  /** Cuts a block after so many units; the tail is a new, unlisted block. */
  public int cut(int block, long units, int unitShift) {
    int tail =
        create(
            address(block) + (units << unitShift), units(block) - units, base(block), chunk(block));
    units(block, units);
    int next = next(block);
    segment(tail)[at(tail) + NEIGHBOURS] = pack(block, next);
    next(block, tail);
    prev(next, tail);
    return tail;
  }

  /** Joins a block's next neighbour to it. */
  public void absorbNext(int block) {
    int gone = next(block);
    int next = next(gone);
    units(block, units(block) + units(gone));
    next(block, next);
    prev(next, block);
    recycle(gone);
  }

  /** Makes a chunk of its own, with a tag, of a block and what is behind it. */
  void split(int first, int chunk) {
    next(prev(first), NONE);
    prev(first, NONE);
    long base = address(first);
    for (int block = first; block != NONE; block = next(block)) {
      base(block, base);
      chunk(block, chunk);
    }
  }

  public void recycle(int block) {
    live--;
    segment(block)[at(block) + LIST] = RECYCLED;
    next(block, recycled);
    recycled = block;
  }

  /** How many blocks there are. */
  public int live() {
    return live;
  }

  /** One more than the highest index ever used. */
  public int end() {
    return end;
  }

  public int firstRecycled() {
    return recycled;
  }

  public int prev(int block) {
    return high(NEIGHBOURS, block);
  }

  private void prev(int block, int prev) {
    high(NEIGHBOURS, block, prev);
  }

  public int next(int block) {
    return low(NEIGHBOURS, block);
  }

  private void next(int block, int next) {
    low(NEIGHBOURS, block, next);
  }

  int before(int block) {
    return high(LIST, block);
  }

  void before(int block, int before) {
    high(LIST, block, before);
  }

  public int after(int block) {
    return low(LIST, block);
  }

  void after(int block, int after) {
    low(LIST, block, after);
  }

  /** Whether a listed block is alone in its list. */
  boolean isAlone(int block) {
    return segment(block)[at(block) + LIST] == ALONE;
  }

  /** Makes a block the first of a list. */
  void first(int block, int after) {
    segment(block)[at(block) + LIST] = pack(NOTHING, after);
  }

  public void unlist(int block) {
    segment(block)[at(block) + LIST] = UNLISTED;
  }

  public boolean isListed(int block) {
    return segment(block)[at(block) + LIST] >= LEAST_LISTED;
  }

  public boolean isUnlisted(int block) {
    return segment(block)[at(block) + LIST] == UNLISTED;
  }

  /** What the index noted of a listed block. */
  int leaf(int block) {
    return high(LEAF_AND_CHUNK, block);
  }

  void leaf(int block, int leaf) {
    high(LEAF_AND_CHUNK, block, leaf);
  }

  boolean isWhole(int block) {
    return segment(block)[at(block) + NEIGHBOURS] == NONE_TWICE;
  }

  public int chunk(int block) {
    return low(LEAF_AND_CHUNK, block);
  }

  /** Changes the tag of one block. */
  public void chunk(int block, int chunk) {
    low(LEAF_AND_CHUNK, block, chunk);
  }

  public long address(int block) {
    return segment(block)[at(block) + ADDRESS];
  }

  public long units(int block) {
    return segment(block)[at(block) + UNITS];
  }

  private void units(int block, long units) {
    segment(block)[at(block) + UNITS] = units;
  }

  /** Address of the chunk that the block is a part of. */
  public long base(int block) {
    return segment(block)[at(block) + BASE];
  }

  /** Changes what {@link #base} is for one block. */
  public void base(int block, long base) {
    segment(block)[at(block) + BASE] = base;
  }

  /**
   * Walks over a list of blocks and counts them.
   *
   * @throws AssertionError if one does not belong there
   */
  int checkAndCountList(int head, boolean isWhole, long units) {
    int count = 0;
    int before = NOTHING;
    for (int block = head; block != NOTHING; block = after(block)) {
      require(isListed(block), "state of listed block", block, head);
      require(before(block) == before, "before block", before(block), before);
      require(units(block) == units, "units of block", units(block), units);
      require(isWhole(block) == isWhole, "kind of block", block, head);
      before = block;
      count++;
    }
    return count;
  }

  private long[] segment(int block) {
    return block < SEGMENT_BLOCKS - DUMMIES ? first : segments[(block + DUMMIES) >>> SEGMENT_SHIFT];
  }

  private static int at(int block) {
    return ((block + DUMMIES) & (SEGMENT_BLOCKS - 1)) << SHIFT;
  }

  private static long pack(int high, int low) {
    return ((long) high << Integer.SIZE) | (low & LOW);
  }

  private int high(int field, int block) {
    return (int) (segment(block)[at(block) + field] >> Integer.SIZE);
  }

  private void high(int field, int block, int value) {
    long[] records = segment(block);
    int at = at(block) + field;
    records[at] = ((long) value << Integer.SIZE) | (records[at] & LOW);
  }

  private int low(int field, int block) {
    return (int) segment(block)[at(block) + field];
  }

  private void low(int field, int block, int value) {
    long[] records = segment(block);
    int at = at(block) + field;
    records[at] = (records[at] & HIGH) | (value & LOW);
  }
}
