package io.cuvette.internal.index;

import static io.cuvette.internal.index.ArenaCheck.require;
import static io.cuvette.internal.index.BlockTable.NONE;
import static io.cuvette.internal.index.BlockTable.NOTHING;
import static io.cuvette.internal.index.SizeIndex.ALL;
import static io.cuvette.internal.index.SizeIndex.PARTS;
import static io.cuvette.internal.index.SizeIndex.WHOLE;

import java.util.Arrays;

/**
 * The large free blocks, in tries whose nodes branch 64 ways. Not thread-safe.
 *
 * <p>Sizes of 6·h + 1 to 6·(h + 1) bits are in the trie of height h:
 *
 * <pre>
 *   units 300,000 = 1·64³ + 9·64² + 15·64 + 32      height 3
 *   root   bit 1  ─► node   bit 9  ─► node   bit 15  ─► leaf   bit 32 ─► list of blocks
 * </pre>
 *
 * <p>A node has a bitmap of what is below it for each kind of block, and a leaf a list for each
 * size and kind. A bit is set if and only if what hangs below it is not empty; a node without bits
 * is recycled, unless it is a root.
 */
final class SparseSizes {
  private static final int BITS = 6;
  private static final int WAYS = 1 << BITS;
  private static final int HEIGHTS = 11;
  private static final int CHILDREN_SHIFT = BITS + 1;
  private static final int INITIAL_NODES = 4;

  private final BlockTable blocks;
  private final int[] roots = new int[HEIGHTS];

  /** Bit h: the trie of height h holds parts, or whole chunks. */
  private long partHeights;

  private long wholeHeights;

  /** Two bitmaps for each node: below it are parts, below it are whole chunks. */
  private long[] bitmaps = new long[INITIAL_NODES << 1];

  /** For each node: 64 nodes; for a leaf: 64 lists of parts, then 64 lists of whole chunks. */
  private int[] children = new int[INITIAL_NODES << CHILDREN_SHIFT];

  /** For each node: its parent and its place there; a root has none; a recycled node its next. */
  private int[] parents = new int[INITIAL_NODES];

  private int end;
  private int recycled = NONE;
  private int recycledNodes;

  SparseSizes(BlockTable blocks) {
    this.blocks = blocks;
    Arrays.fill(roots, NONE);
  }

  /** Makes room for so many blocks of this size: each level of its trie may need a node. */
  void reserve(long units, int count) {
    while (parents.length - end + recycledNodes < count * (height(units) + 1)) {
      grow();
    }
  }

  private void grow() {
    int[] longerChildren =
        Arrays.copyOf(children, Math.multiplyExact(parents.length, 2 << CHILDREN_SHIFT));
    int[] longerParents = Arrays.copyOf(parents, parents.length << 1);
    bitmaps = Arrays.copyOf(bitmaps, parents.length << 2);
    children = longerChildren;
    parents = longerParents;
  }

  /** Adds a block, in front of those of its size and kind; there is room for it. */
  void insert(int block, long units, int kind) {
    int height = height(units);
    int node = root(height, kind);
    for (int level = height; level > 0; level--) {
      node = descend(node, digit(units, level), kind);
    }
    int digit = digit(units, 0);
    int list = (node << CHILDREN_SHIFT) + (kind << BITS) + digit;
    long bitmap = bitmaps[(node << 1) + kind];
    int head = ((bitmap >>> digit) & 1) == 0 ? NOTHING : children[list];
    bitmaps[(node << 1) + kind] = bitmap | (1L << digit);
    children[list] = block;
    blocks.leaf(block, node);
    blocks.first(block, head);
    blocks.before(head, block);
  }

  private int root(int height, int kind) {
    if (kind == WHOLE) {
      wholeHeights |= 1L << height;
    } else {
      partHeights |= 1L << height;
    }
    int root = roots[height];
    if (root == NONE) {
      root = node(~height);
      roots[height] = root;
    }
    return root;
  }

  private int descend(int node, int digit, int kind) {
    int map = node << 1;
    long bit = 1L << digit;
    boolean exists = ((bitmaps[map] | bitmaps[map + 1]) & bit) != 0;
    bitmaps[map + kind] |= bit;
    int slot = (node << CHILDREN_SHIFT) + digit;
    if (exists) {
      return children[slot];
    }
    int child = node((node << BITS) | digit);
    children[slot] = child;
    return child;
  }

  private int node(int parent) {
    int node = recycled;
    if (node == NONE) {
      node = end++;
    } else {
      recycled = parents[node];
      recycledNodes--;
    }
    parents[node] = parent;
    return node;
  }

  void remove(int block, long units, int kind) {
    int before = blocks.before(block);
    int after = blocks.after(block);
    blocks.before(after, before);
    if (before != NOTHING) {
      blocks.after(before, after);
      return;
    }
    int leaf = blocks.leaf(block);
    int digit = digit(units, 0);
    if (after != NOTHING) {
      children[(leaf << CHILDREN_SHIFT) + (kind << BITS) + digit] = after;
    } else {
      clear(leaf, digit, kind);
    }
  }

  private void clear(int leaf, int leafDigit, int kind) {
    int node = leaf;
    int digit = leafDigit;
    while (true) {
      int map = node << 1;
      long left = bitmaps[map + kind] & ~(1L << digit);
      bitmaps[map + kind] = left;
      if (left != 0) {
        return;
      }
      int parent = parents[node];
      if (parent < 0) {
        clearHeight(~parent, kind);
        return;
      }
      if (bitmaps[map + (kind ^ 1)] == 0) {
        parents[node] = recycled;
        recycled = node;
        recycledNodes++;
      }
      node = parent >> BITS;
      digit = parent & (WAYS - 1);
    }
  }

  private void clearHeight(int height, int kind) {
    if (kind == WHOLE) {
      wholeHeights &= ~(1L << height);
    } else {
      partHeights &= ~(1L << height);
    }
  }

  /** The smallest block of a set with at least so many units, or NONE. */
  int atLeast(long units, long set) {
    long heights = (partHeights & set) | wholeHeights;
    int height = height(units);
    int turn = NONE;
    int turnLevel = 0;
    long turnBits = 0;
    if (((heights >>> height) & 1) != 0) {
      int node = roots[height];
      for (int level = height; ; level--) {
        int digit = digit(units, level);
        long bits = bits(node, set);
        long larger = bits & (-2L << digit);
        if (larger != 0) {
          turn = node;
          turnLevel = level;
          turnBits = larger;
        }
        if (((bits >>> digit) & 1) == 0) {
          break;
        }
        if (level == 0) {
          return head(node, digit, set);
        }
        node = children[(node << CHILDREN_SHIFT) + digit];
      }
    }
    if (turn != NONE) {
      return lowest(turn, turnLevel, turnBits, set);
    }
    long above = heights & (-2L << height);
    if (above == 0) {
      return NONE;
    }
    int next = Long.numberOfTrailingZeros(above);
    return lowest(roots[next], next, bits(roots[next], set), set);
  }

  private int lowest(int start, int startLevel, long startBits, long set) {
    int node = start;
    int digit = Long.numberOfTrailingZeros(startBits);
    for (int level = startLevel; level > 0; level--) {
      node = children[(node << CHILDREN_SHIFT) + digit];
      digit = Long.numberOfTrailingZeros(bits(node, set));
    }
    return head(node, digit, set);
  }

  /** The largest size in the index, in units; 0 if it is empty. */
  long largest() {
    long heights = partHeights | wholeHeights;
    if (heights == 0) {
      return 0;
    }
    int height = highest(heights);
    int node = roots[height];
    int digit = highest(bits(node, ALL));
    for (int level = height; level > 0; level--) {
      node = children[(node << CHILDREN_SHIFT) + digit];
      digit = highest(bits(node, ALL));
    }
    return blocks.units(head(node, digit, ALL));
  }

  private long bits(int node, long set) {
    int map = node << 1;
    return (bitmaps[map] & set) | bitmaps[map + 1];
  }

  /** Parts come first, so that whole chunks stay whole and can be released. */
  private int head(int leaf, int digit, long set) {
    int kind = (((bitmaps[leaf << 1] & set) >>> digit) & 1) != 0 ? PARTS : WHOLE;
    return children[(leaf << CHILDREN_SHIFT) + (kind << BITS) + digit];
  }

  /** One more than the highest node ever used. */
  int end() {
    return end;
  }

  int checkAndCount() {
    int count = 0;
    for (int height = 0; height < HEIGHTS; height++) {
      int root = roots[height];
      boolean parts = ((partHeights >>> height) & 1) != 0;
      boolean whole = ((wholeHeights >>> height) & 1) != 0;
      require(root != NONE || !(parts || whole), "root of height", root, height);
      if (root != NONE) {
        require(parents[root] == ~height, "height of root", ~parents[root], height);
        require(parts == (bitmaps[root << 1] != 0), "parts of height", root, height);
        require(whole == (bitmaps[(root << 1) + 1] != 0), "whole of height", root, height);
        count += checkNode(root, height, 0);
      }
    }
    return count;
  }

  private int checkNode(int node, int level, long unitsAbove) {
    int count = 0;
    for (int digit = 0; digit < WAYS; digit++) {
      long units = (unitsAbove << BITS) | digit;
      boolean parts = ((bitmaps[node << 1] >>> digit) & 1) != 0;
      boolean whole = ((bitmaps[(node << 1) + 1] >>> digit) & 1) != 0;
      int slot = (node << CHILDREN_SHIFT) + digit;
      if (level == 0) {
        count += parts ? checkList(node, children[slot], PARTS, units) : 0;
        count += whole ? checkList(node, children[slot + WAYS], WHOLE, units) : 0;
      } else if (parts || whole) {
        int child = children[slot];
        require(parents[child] == ((node << BITS) | digit), "parent of node", child, node);
        require(parts == (bitmaps[child << 1] != 0), "parts of node", child, digit);
        require(whole == (bitmaps[(child << 1) + 1] != 0), "whole of node", child, digit);
        count += checkNode(child, level - 1, units);
      }
    }
    return count;
  }

  private int checkList(int leaf, int head, int kind, long units) {
    for (int block = head; block != NOTHING; block = blocks.after(block)) {
      require(blocks.leaf(block) == leaf, "leaf of block", blocks.leaf(block), leaf);
    }
    return blocks.checkAndCountList(head, kind == WHOLE, units);
  }

  private static int height(long units) {
    return (63 - Long.numberOfLeadingZeros(units)) / BITS;
  }

  private static int digit(long units, int level) {
    return (int) (units >>> (level * BITS)) & (WAYS - 1);
  }

  private static int highest(long bits) {
    return 63 - Long.numberOfLeadingZeros(bits);
  }
}
