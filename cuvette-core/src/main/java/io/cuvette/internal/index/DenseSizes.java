package io.cuvette.internal.index;

import static io.cuvette.internal.index.ArenaCheck.require;
import static io.cuvette.internal.index.BlockTable.NONE;
import static io.cuvette.internal.index.BlockTable.NOTHING;
import static io.cuvette.internal.index.SizeIndex.ALL;
import static io.cuvette.internal.index.SizeIndex.PARTS;
import static io.cuvette.internal.index.SizeIndex.WHOLE;

import java.util.Arrays;

/**
 * The free blocks of less than {@value #LIMIT_UNITS} units, or fewer: a list for each size,
 * addressed by the size, under bitmaps of three levels. Not thread-safe.
 *
 * <pre>
 *   top     bit t: some bit of middle word t is set
 *   middle  bit m of word t: some bit of bottom word 64·t + m is set
 *   bottom  bit b of word w: there are blocks of 64·w + b units
 * </pre>
 *
 * <p>Each bitmap word has a twin: the even ones stand for parts of chunks, the odd ones of whole
 * chunks, and so do the lists.
 */
final class DenseSizes {
  /** The highest limit, with which the lists take 1 MB. */
  static final int LIMIT_UNITS = 1 << 17;

  private static final int BITS = 6;
  private static final int INITIAL_UNITS = 512;

  /** What is added to a block in a list head, so that 0 is {@link BlockTable#NOTHING}. */
  private static final int BIAS = -NOTHING;

  private final BlockTable blocks;

  /** The first block of each size and kind, biased; 0 if there is none. */
  private int[] lists = new int[2 * INITIAL_UNITS];

  private long[] bottom = new long[(2 * INITIAL_UNITS) >> BITS];
  private final long[] middle;
  private final long[] top = new long[2];

  DenseSizes(BlockTable blocks, int limitUnits) {
    this.blocks = blocks;
    this.middle = new long[(2 * limitUnits) >> (2 * BITS)];
  }

  /** Makes room for a block of this size. */
  void reserve(int units) {
    if (2 * units >= lists.length) {
      grow(units);
    }
  }

  /** Adds a block in front of those of its size and kind; there is room for it. */
  void insert(int block, int units, int kind) {
    int list = 2 * units + kind;
    int head = lists[list] - BIAS;
    lists[list] = block + BIAS;
    blocks.first(block, head);
    blocks.before(head, block);
    bottom[2 * (units >> BITS) + kind] |= 1L << units;
    middle[2 * (units >> (2 * BITS)) + kind] |= 1L << (units >> BITS);
    top[kind] |= 1L << (units >> (2 * BITS));
  }

  private void grow(int units) {
    int size = Integer.highestOneBit(units) << 2;
    long[] longer = Arrays.copyOf(bottom, size >> BITS);
    lists = Arrays.copyOf(lists, size);
    bottom = longer;
  }

  void remove(int block, int units, int kind) {
    if (blocks.isAlone(block)) {
      lists[2 * units + kind] = 0;
      lower(units, kind);
      return;
    }
    int before = blocks.before(block);
    int after = blocks.after(block);
    blocks.before(after, before);
    blocks.after(before, after);
    if (before == NOTHING) {
      lists[2 * units + kind] = after + BIAS;
    }
  }

  private void lower(int units, int kind) {
    int word = 2 * (units >> BITS) + kind;
    long bits = bottom[word] & ~(1L << units);
    bottom[word] = bits;
    int wordAbove = 2 * (units >> (2 * BITS)) + kind;
    long bitsAbove = middle[wordAbove] & ~(oneIfZero(bits) << (units >> BITS));
    middle[wordAbove] = bitsAbove;
    top[kind] &= ~(oneIfZero(bitsAbove) << (units >> (2 * BITS)));
  }

  /** Without a branch: what it would depend on is as good as random. */
  private static long oneIfZero(long bits) {
    return ((bits | -bits) >>> 63) ^ 1;
  }

  /** The smallest block of a set with at least so many units, or NONE. */
  int atLeast(int units, long set) {
    int word = units >> BITS;
    if (2 * units >= lists.length) {
      return NONE;
    }
    long bits = pair(bottom, word, set) & (-1L << units);
    if (bits == 0) {
      word = wordAfter(word, set);
      if (word < 0) {
        return NONE;
      }
      bits = pair(bottom, word, set);
    }
    return head((word << BITS) + Long.numberOfTrailingZeros(bits), set);
  }

  /** The first bottom word after this one with a bit of a set, or a negative number. */
  private int wordAfter(int word, long set) {
    int above = word >> BITS;
    long bits = pair(middle, above, set) & (-2L << word);
    if (bits == 0) {
      long topBits = pair(top, 0, set) & (-2L << above);
      if (topBits == 0) {
        return -1;
      }
      above = Long.numberOfTrailingZeros(topBits);
      bits = pair(middle, above, set);
    }
    return (above << BITS) + Long.numberOfTrailingZeros(bits);
  }

  /** Parts come first, so that whole chunks stay whole and can be released. */
  private int head(int units, long set) {
    int part = lists[2 * units] & (int) set;
    return (part != 0 ? part : lists[2 * units + 1]) - BIAS;
  }

  private static long pair(long[] words, int word, long set) {
    return (words[2 * word] & set) | words[2 * word + 1];
  }

  /** The largest size there is, in units; 0 if there is none. */
  int largest() {
    long topBits = top[0] | top[1];
    if (topBits == 0) {
      return 0;
    }
    int above = highest(topBits);
    int word = (above << BITS) + highest(pair(middle, above, ALL));
    return (word << BITS) + highest(pair(bottom, word, ALL));
  }

  private static int highest(long bits) {
    return Long.SIZE - 1 - Long.numberOfLeadingZeros(bits);
  }

  int checkAndCount() {
    int count = 0;
    for (int word = 0; word < bottom.length; word++) {
      int kind = word & 1;
      for (long bits = bottom[word]; bits != 0; bits &= bits - 1) {
        int units = ((word >> 1) << BITS) + Long.numberOfTrailingZeros(bits);
        int head = lists[2 * units + kind] - BIAS;
        require(head != NOTHING, "list of size", head, units);
        count += blocks.checkAndCountList(head, kind == WHOLE, units);
      }
    }
    for (int kind = PARTS; kind <= WHOLE; kind++) {
      checkAbove(bottom, middle, kind);
      checkAbove(middle, top, kind);
    }
    return count;
  }

  private static void checkAbove(long[] words, long[] above, int kind) {
    for (int word = 0; 2 * word < words.length; word++) {
      boolean isNotEmpty = words[2 * word + kind] != 0;
      require(isSet(above, word, kind) == isNotEmpty, "bit of word", kind, word);
    }
  }

  private static boolean isSet(long[] words, int bit, int kind) {
    return ((words[2 * (bit >> BITS) + kind] >>> bit) & 1) != 0;
  }
}
