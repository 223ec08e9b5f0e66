package io.cuvette.internal.index;

/**
 * Free and used blocks of one arena (one device and stream). Not thread-safe: the caller holds the
 * arena's lock.
 *
 * <p>A <i>chunk</i> is one allocation from upstream, adopted whole. It is cut into <i>blocks</i>
 * that lie side by side, each in use or free, in multiples of {@value #UNIT_BYTES} bytes:
 *
 * <pre>
 *   chunk 7   │ in use  1024 │ free  512 │ in use  512 │ free  2048 │
 *             0              1024        1536          2048         4096
 * </pre>
 *
 * <p>Always: usedBytes + freeBytes = heldBytes = the sum of the adopted chunks; the blocks of a
 * chunk cover it without gap or overlap; no two neighbours are both free.
 *
 * <p>{@link #take} chooses the smallest free block that fits, over the whole arena, and cuts it
 * exactly: there is no threshold and there are no size classes. Of equal sizes it chooses the block
 * that became free last of all, if it is one of them; else a part of a chunk before a whole chunk,
 * and of those again the one that became free last.
 *
 * <p>A block is a non-negative number. It is valid while the block is in use; afterwards the number
 * may name another block, or none.
 */
public final class BlockArena {
  /** No block. */
  public static final int NONE = BlockTable.NONE;

  /** Sizes are multiples of this. */
  public static final long UNIT_BYTES = 512;

  private static final int UNIT_SHIFT = 9;
  private static final long MAX_BYTES = Long.MAX_VALUE - UNIT_BYTES + 1;

  /** Walk over everything after every change: finds a fault where it happens, at a high price. */
  private static final boolean VALIDATE = Boolean.getBoolean("cuvette.pool.validate");

  private final BlockTable blocks = new BlockTable();
  private final SizeIndex index;

  /**
   * The block that became free last, not yet in the index: most are taken again or merged before
   * another block becomes free, and then the index is never touched.
   */
  private int pending = BlockTable.NOTHING;

  private long heldUnits;
  private long usedUnits;
  private int usedBlocks;
  private int chunks;

  public BlockArena() {
    this(DenseSizes.LIMIT_UNITS);
  }

  /** One that addresses sizes of less than so many units directly at most, a power of 2. */
  public BlockArena(int mostDenseUnits) {
    index = new SizeIndex(blocks, mostDenseUnits);
  }

  /**
   * Rounds up to a multiple of {@value #UNIT_BYTES}.
   *
   * @throws IllegalArgumentException if {@code bytes} is negative or above {@code Long.MAX_VALUE -
   *     511}
   */
  public static long roundUp(long bytes) {
    if (bytes < 0 || bytes > MAX_BYTES) {
      throw new IllegalArgumentException("bytes: " + bytes + " (expected: 0 to " + MAX_BYTES + ")");
    }
    return (bytes + UNIT_BYTES - 1) & -UNIT_BYTES;
  }

  /**
   * Adds a chunk as one block in use.
   *
   * @param bytes a positive multiple of {@value #UNIT_BYTES}
   * @param chunk the caller's non-negative tag of the upstream allocation
   * @return the block
   */
  public int adopt(long address, long bytes, int chunk) {
    int block = add(address, bytes, chunk);
    take(block, bytes);
    return block;
  }

  /**
   * Adds a chunk as one free block. Changes nothing if the Java heap is full.
   *
   * @param bytes a positive multiple of {@value #UNIT_BYTES}
   * @param chunk the caller's non-negative tag of the upstream allocation
   * @return the block, which is valid until the next change
   */
  public int add(long address, long bytes, int chunk) {
    long units = units(bytes);
    if (chunk < 0) {
      throw new IllegalArgumentException("chunk: " + chunk + " (expected: >= 0)");
    }
    if (units > (MAX_BYTES >>> UNIT_SHIFT) - heldUnits) {
      throw new IllegalArgumentException(
          "bytes: %d (expected: <= %d, as %d are held)"
              .formatted(bytes, MAX_BYTES - heldBytes(), heldBytes()));
    }
    index.reserve(units, 1);
    int block = blocks.create(address, units, address, chunk);
    index.insert(block);
    heldUnits += units;
    chunks++;
    assert isValidAround(block);
    return block;
  }

  /**
   * Takes the smallest free block of at least {@code bytes}; what is left of it stays free.
   *
   * @param bytes a positive multiple of {@value #UNIT_BYTES}
   * @return a block of exactly {@code bytes}, or {@link #NONE} if no free block is large enough
   */
  public int take(long bytes) {
    int block = find(bytes);
    if (block != NONE) {
      take(block, bytes);
    }
    return block;
  }

  /**
   * Finds the block that {@link #take(long)} would take, and makes room in the Java heap for taking
   * it. Changes nothing else.
   *
   * @param bytes a positive multiple of {@value #UNIT_BYTES}
   * @return a free block, which is valid until the next change, or {@link #NONE}
   */
  public int find(long bytes) {
    long units = units(bytes);
    int block = pending;
    if (blocks.units(block) == units) {
      return block;
    }
    block = bestFit(units, SizeIndex.ALL);
    if (block != NONE && blocks.units(block) != units) {
      blocks.reserve();
      makeRoomForPending();
    }
    return block;
  }

  /**
   * Finds the smallest free block of at least {@code minBytes} that is an entire chunk.
   *
   * @param minBytes a positive multiple of {@value #UNIT_BYTES}
   * @return a free block, which is valid until the next change, or {@link #NONE}
   */
  public int findWhole(long minBytes) {
    return bestFit(units(minBytes), SizeIndex.WHOLE_ONLY);
  }

  /**
   * Takes a block that was found, or its first bytes. Allocates nothing in the Java heap.
   *
   * @param block what {@link #find} returned for so many bytes, or what {@link #findWhole} returned
   * @param bytes at most the block's size
   */
  public void take(int block, long bytes) {
    long units = units(bytes);
    unlist(block);
    if (blocks.units(block) != units) {
      list(blocks.cut(block, units, UNIT_SHIFT));
    }
    usedUnits += units;
    usedBlocks++;
    assert isValidAround(block);
  }

  /**
   * Frees a block in use, merging it with its free neighbours. Changes nothing if the Java heap is
   * full.
   *
   * @return the free block that it is now, or is in, which is valid until the next change
   * @throws IllegalStateException if the block is not in use
   */
  public int give(int block) {
    checkInUse(block);
    makeRoomForPending();
    usedUnits -= blocks.units(block);
    usedBlocks--;
    int free = blocks.isWhole(block) ? block : merge(block);
    list(free);
    assert isValidAround(free);
    return free;
  }

  /**
   * Cuts a block in use; both parts are in use. Changes nothing if the Java heap is full.
   *
   * @param bytes of the first part, less than the block has
   * @return the second part
   */
  public int cut(int block, long bytes) {
    checkInUse(block);
    int tail = blocks.cut(block, units(bytes), UNIT_SHIFT);
    usedBlocks++;
    assert isValidAround(tail);
    return tail;
  }

  /**
   * Makes a chunk of its own of a block and what is behind it in its chunk. Takes time for each of
   * these, and no Java heap after {@link #makeRoomForPending}.
   *
   * @param first not the first block of its chunk; if the one before it is free, it is not
   * @param chunk the caller's non-negative tag of the new chunk
   */
  public void split(int first, int chunk) {
    int changed = isFree(first) ? first : blocks.prev(first);
    boolean isListed = isFree(changed); // and may be a whole chunk soon
    if (isListed) {
      unlist(changed);
    }
    blocks.split(first, chunk);
    chunks++;
    if (isListed) {
      list(changed);
    }
    assert isValidAround(first);
  }

  /** Whether a block is what became free last, or what was left of the last one that was cut. */
  public boolean isNewest(int block) {
    return block == pending;
  }

  /** Address of a block. */
  public long address(int block) {
    return blocks.address(block);
  }

  /** Size of a block. */
  public long bytes(int block) {
    return blocks.units(block) << UNIT_SHIFT;
  }

  /** The caller's tag of the chunk that a block is cut from. */
  public int chunk(int block) {
    return blocks.chunk(block);
  }

  /** Bytes from the start of its chunk to a block. */
  public long offset(int block) {
    return blocks.address(block) - blocks.base(block);
  }

  /** The block before another one in its chunk, or {@link #NONE}. */
  public int prev(int block) {
    return blocks.prev(block);
  }

  /** The block behind another one in its chunk, or {@link #NONE}. */
  public int next(int block) {
    return blocks.next(block);
  }

  /** Whether a block is its entire chunk. */
  public boolean isWhole(int block) {
    return blocks.isWhole(block);
  }

  /** Whether a number is that of a free block which is a certain chunk, entire. */
  public boolean isFreeChunk(int block, int chunk) {
    boolean exists = block < blocks.end();
    return exists && isFree(block) && isWhole(block) && blocks.chunk(block) == chunk;
  }

  /**
   * Removes a block in use that is its entire chunk: the chunk is released, or lives elsewhere now.
   *
   * @return the chunk's tag
   * @throws IllegalStateException if the block is not in use or not whole
   */
  public int forget(int block) {
    checkInUse(block);
    if (!blocks.isWhole(block)) {
      throw new IllegalStateException("block: " + block + " (expected: a whole chunk)");
    }
    long units = blocks.units(block);
    int chunk = blocks.chunk(block);
    blocks.recycle(block);
    heldUnits -= units;
    usedUnits -= units;
    usedBlocks--;
    chunks--;
    assert isValidAround(NONE);
    return chunk;
  }

  /**
   * Removes a free block that is its entire chunk.
   *
   * @param block what {@link #add} or {@link #findWhole} returned
   * @return the chunk's tag
   */
  public int remove(int block) {
    take(block, bytes(block));
    return forget(block);
  }

  public long usedBytes() {
    return usedUnits << UNIT_SHIFT;
  }

  public long heldBytes() {
    return heldUnits << UNIT_SHIFT;
  }

  public long freeBytes() {
    return (heldUnits - usedUnits) << UNIT_SHIFT;
  }

  /** Bytes in free blocks that are entire chunks. */
  public long releasableBytes() {
    boolean isPendingWhole = pending != BlockTable.NOTHING && blocks.isWhole(pending);
    return (index.wholeUnits() + (isPendingWhole ? blocks.units(pending) : 0)) << UNIT_SHIFT;
  }

  public long largestFreeBytes() {
    return Math.max(index.largest(), blocks.units(pending)) << UNIT_SHIFT;
  }

  /** The smallest free block of at least {@code minBytes}, or {@link #NONE}. */
  public int bestFit(long minBytes) {
    return bestFit(units(minBytes), SizeIndex.ALL);
  }

  /** Size of the smallest free block of at least {@code minBytes}; 0 if there is none. */
  public long bestFitBytes(long minBytes) {
    return bytes(bestFit(minBytes));
  }

  public int freeBlocks() {
    return blocks.live() - usedBlocks;
  }

  public int usedBlocks() {
    return usedBlocks;
  }

  public int chunks() {
    return chunks;
  }

  /**
   * Walks over every block and checks all that this class promises.
   *
   * @throws AssertionError naming the first thing found wrong
   */
  public void assertValid() {
    new ArenaCheck(this, blocks, index, pending).run();
  }

  /** Records of blocks and nodes of the index that exist, used and recycled ones: what it costs. */
  int records() {
    return blocks.end() + index.nodes();
  }

  private int bestFit(long units, long set) {
    int best = index.atLeast(units, set);
    long excess = blocks.units(best) - units;
    long pendingExcess = blocks.units(pending) - units;
    boolean isPendingBest = pendingExcess >= 0 && Long.compareUnsigned(pendingExcess, excess) <= 0;
    return isPendingBest && (set == SizeIndex.ALL || blocks.isWhole(pending)) ? pending : best;
  }

  /** Joins a block to be freed with its free neighbours. */
  private int merge(int block) {
    int merged = block;
    int prev = blocks.prev(block);
    int next = blocks.next(block);
    if (isFree(prev)) {
      unlist(prev);
      blocks.absorbNext(prev);
      merged = prev;
    }
    if (isFree(next)) {
      unlist(next);
      blocks.absorbNext(merged);
    }
    return merged;
  }

  /**
   * The next block to be freed displaces the pending one, which then needs its place in the index.
   */
  public void makeRoomForPending() {
    if (pending != BlockTable.NOTHING) {
      index.reserve(blocks.units(pending), 1);
    }
  }

  /** Makes a block the pending one; what was pending is indexed. */
  private void list(int block) {
    int displaced = pending;
    pending = block;
    if (displaced != BlockTable.NOTHING) {
      index.insert(displaced);
    }
  }

  private void unlist(int block) {
    if (block == pending) {
      pending = BlockTable.NOTHING;
    } else {
      index.remove(block);
    }
  }

  /** Whether a block is free. */
  public boolean isFree(int block) {
    return blocks.isListed(block) || block == pending;
  }

  private void checkInUse(int block) {
    if (block < 0 || block >= blocks.end() || !blocks.isUnlisted(block) || block == pending) {
      throw new IllegalStateException("block: " + block + " (expected: a block in use)");
    }
  }

  private static long units(long bytes) {
    if (bytes <= 0 || (bytes & (UNIT_BYTES - 1)) != 0) {
      throw new IllegalArgumentException(
          "bytes: " + bytes + " (expected: a positive multiple of " + UNIT_BYTES + ")");
    }
    return bytes >>> UNIT_SHIFT;
  }

  /** What can be checked in constant time after a change; all of it on request. */
  private boolean isValidAround(int block) {
    if (VALIDATE) {
      assertValid();
    }
    if (block == NONE) {
      return true;
    }
    int prev = blocks.prev(block);
    int next = blocks.next(block);
    return (prev == NONE ? offset(block) == 0 : areNeighbours(prev, block))
        && (next == NONE || areNeighbours(block, next))
        && usedUnits >= 0
        && usedUnits <= heldUnits
        && (freeBlocks() == 0) == (usedUnits == heldUnits);
  }

  private boolean areNeighbours(int block, int next) {
    return blocks.next(block) == next
        && blocks.prev(next) == block
        && address(next) == address(block) + bytes(block)
        && blocks.base(next) == blocks.base(block)
        && !(isFree(block) && isFree(next));
  }
}
