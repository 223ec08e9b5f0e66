package io.cuvette.pool;

import java.util.Arrays;

/**
 * The records of all blocks of an arena, in two primitive arrays: a block is an index, and a
 * recycled index is used again before the arrays grow. Not thread-safe.
 *
 * <p>Neighbours of a chunk are linked in address order ({@code prev}, {@code next}); free blocks of
 * equal size and kind are linked in a list of their own ({@code before}, {@code after}), whose head
 * is held by {@link SizeIndex}.
 */
final class BlockTable {
  static final int NONE = -1;

  /** States of a block; a state of 0 or more is the leaf of the index that a free block is in. */
  static final int IN_USE = -1;

  static final int PENDING = -2;
  static final int RECYCLED = -3;

  private static final int INITIAL_BLOCKS = 16;
  private static final int LINK_SHIFT = 3;
  private static final int PREV = 0;
  private static final int NEXT = 1;
  private static final int BEFORE = 2;
  private static final int AFTER = 3;
  private static final int STATE = 4;
  private static final int CHUNK = 5;

  private static final int SPAN_SHIFT = 2;
  private static final int ADDRESS = 0;
  private static final int UNITS = 1;
  private static final int BASE = 2;

  private int[] links = new int[INITIAL_BLOCKS << LINK_SHIFT];
  private long[] spans = new long[INITIAL_BLOCKS << SPAN_SHIFT];
  private int end;
  private int recycled = NONE;

  /** A block that is in use and has no neighbours. */
  int create(long address, long units, long base, int chunk) {
    int block = recycled;
    if (block == NONE) {
      block = append();
    } else {
      recycled = next(block);
    }
    int link = block << LINK_SHIFT;
    links[link + PREV] = NONE;
    links[link + NEXT] = NONE;
    links[link + STATE] = IN_USE;
    links[link + CHUNK] = chunk;
    int span = block << SPAN_SHIFT;
    spans[span + ADDRESS] = address;
    spans[span + UNITS] = units;
    spans[span + BASE] = base;
    return block;
  }

  private int append() {
    if (end << LINK_SHIFT == links.length) {
      links = Arrays.copyOf(links, Math.multiplyExact(links.length, 2));
      spans = Arrays.copyOf(spans, spans.length * 2);
    }
    return end++;
  }

  void recycle(int block) {
    state(block, RECYCLED);
    next(block, recycled);
    recycled = block;
  }

  /** One more than the highest index ever used. */
  int end() {
    return end;
  }

  int firstRecycled() {
    return recycled;
  }

  int prev(int block) {
    return links[(block << LINK_SHIFT) + PREV];
  }

  void prev(int block, int prev) {
    links[(block << LINK_SHIFT) + PREV] = prev;
  }

  int next(int block) {
    return links[(block << LINK_SHIFT) + NEXT];
  }

  void next(int block, int next) {
    links[(block << LINK_SHIFT) + NEXT] = next;
  }

  int before(int block) {
    return links[(block << LINK_SHIFT) + BEFORE];
  }

  void before(int block, int before) {
    links[(block << LINK_SHIFT) + BEFORE] = before;
  }

  int after(int block) {
    return links[(block << LINK_SHIFT) + AFTER];
  }

  void after(int block, int after) {
    links[(block << LINK_SHIFT) + AFTER] = after;
  }

  int state(int block) {
    return links[(block << LINK_SHIFT) + STATE];
  }

  void state(int block, int state) {
    links[(block << LINK_SHIFT) + STATE] = state;
  }

  boolean isFree(int block) {
    int state = state(block);
    return state >= 0 || state == PENDING;
  }

  boolean isWhole(int block) {
    return (prev(block) & next(block)) == NONE;
  }

  int chunk(int block) {
    return links[(block << LINK_SHIFT) + CHUNK];
  }

  long address(int block) {
    return spans[(block << SPAN_SHIFT) + ADDRESS];
  }

  long units(int block) {
    return spans[(block << SPAN_SHIFT) + UNITS];
  }

  void units(int block, long units) {
    spans[(block << SPAN_SHIFT) + UNITS] = units;
  }

  /** Address of the chunk that the block is a part of. */
  long base(int block) {
    return spans[(block << SPAN_SHIFT) + BASE];
  }
}
