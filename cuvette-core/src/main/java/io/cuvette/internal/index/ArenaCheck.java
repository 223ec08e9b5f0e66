package io.cuvette.internal.index;

import static io.cuvette.internal.index.BlockTable.NONE;

import java.util.BitSet;

/** Walks over all records of an arena and names the first that is wrong. Not thread-safe. */
final class ArenaCheck {
  private final BlockArena arena;
  private final BlockTable blocks;
  private final SizeIndex index;
  private final int pending;
  private final BitSet recycled = new BitSet();

  private long usedBytes;
  private long freeBytes;
  private long releasableBytes;
  private long largestFreeBytes;
  private int used;
  private int free;
  private int chunks;

  ArenaCheck(BlockArena arena, BlockTable blocks, SizeIndex index, int pending) {
    this.arena = arena;
    this.blocks = blocks;
    this.index = index;
    this.pending = pending;
  }

  void run() {
    collectRecycled();
    for (int block = 0; block < blocks.end(); block++) {
      if (!recycled.get(block)) {
        checkBlock(block);
      }
    }
    checkTotals();
    int indexed = index.checkAndCount();
    require(
        indexed + (pending == BlockTable.NOTHING ? 0 : 1) == free,
        "blocks in the index",
        indexed,
        free);
  }

  private void collectRecycled() {
    for (int block = blocks.firstRecycled(); block != NONE; block = blocks.next(block)) {
      require(!recycled.get(block), "recycled twice", block, block);
      recycled.set(block);
    }
  }

  private void checkBlock(int block) {
    require(blocks.isListed(block) || blocks.isUnlisted(block), "state of block", block, block);
    long bytes = arena.bytes(block);
    require(bytes > 0, "bytes of block", bytes, block);
    require(arena.offset(block) >= 0, "offset of block", arena.offset(block), block);
    if (blocks.prev(block) == NONE) {
      require(arena.offset(block) == 0, "offset of first block", arena.offset(block), block);
      chunks++;
    } else {
      require(blocks.next(blocks.prev(block)) == block, "prev of block", blocks.prev(block), block);
    }
    if (blocks.next(block) != NONE) {
      checkNeighbours(block, blocks.next(block));
    }
    count(block, bytes);
  }

  private void checkNeighbours(int block, int next) {
    require(!recycled.get(next), "next of block", next, block);
    require(blocks.prev(next) == block, "prev of next of block", blocks.prev(next), block);
    long end = arena.address(block) + arena.bytes(block);
    require(arena.address(next) == end, "address after block", arena.address(next), block);
    require(blocks.base(next) == blocks.base(block), "base after block", next, block);
    require(arena.chunk(next) == arena.chunk(block), "chunk after block", next, block);
    require(!(arena.isFree(block) && arena.isFree(next)), "free neighbour of block", next, block);
  }

  private void count(int block, long bytes) {
    if (!arena.isFree(block)) {
      usedBytes += bytes;
      used++;
      return;
    }
    require(blocks.isListed(block) != (block == pending), "pending block", pending, block);
    freeBytes += bytes;
    free++;
    largestFreeBytes = Math.max(largestFreeBytes, bytes);
    if (arena.isWhole(block)) {
      releasableBytes += bytes;
    }
  }

  private void checkTotals() {
    require(arena.usedBytes() == usedBytes, "usedBytes", arena.usedBytes(), usedBytes);
    require(arena.freeBytes() == freeBytes, "freeBytes", arena.freeBytes(), freeBytes);
    long heldBytes = usedBytes + freeBytes;
    require(arena.heldBytes() == heldBytes, "heldBytes", arena.heldBytes(), heldBytes);
    long releasable = arena.releasableBytes();
    require(releasable == releasableBytes, "releasableBytes", releasable, releasableBytes);
    long largest = arena.largestFreeBytes();
    require(largest == largestFreeBytes, "largestFreeBytes", largest, largestFreeBytes);
    require(arena.usedBlocks() == used, "usedBlocks", arena.usedBlocks(), used);
    require(arena.freeBlocks() == free, "freeBlocks", arena.freeBlocks(), free);
    require(arena.chunks() == chunks, "chunks", arena.chunks(), chunks);
  }

  static void require(boolean holds, String what, long found, long of) {
    if (!holds) {
      throw new AssertionError("%s: %d (expected to agree with %d)".formatted(what, found, of));
    }
  }
}
