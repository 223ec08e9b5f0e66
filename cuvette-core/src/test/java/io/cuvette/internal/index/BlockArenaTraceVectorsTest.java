package io.cuvette.internal.index;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The rules of CuPy's pool as short traces; the numbers are those of its model. */
class BlockArenaTraceVectorsTest {
  private static final long U = BlockArena.UNIT_BYTES;
  private static final long GIB = 1L << 30;

  private final Upstream upstream = new Upstream(Long.MAX_VALUE, Long.MAX_VALUE);
  private final ModelPool pool = new ModelPool(upstream);

  @AfterEach
  void arenaIsValid() {
    pool.arena.assertValid();
  }

  @Test
  void t1_headAndTailAreCutFromOneAllocationAndMergeBack() {
    pool.free(pool.malloc(2048));
    int head = pool.malloc(1024);
    int tail = pool.malloc(1);
    assertThat(pool.arena.offset(head)).isZero();
    assertThat(pool.arena.offset(tail)).isEqualTo(1024);
    assertThat(pool.arena.bytes(tail)).isEqualTo(512);
    pool.assertBytes(1536, 512, 2048);
    assertThat(pool.arena.freeBlocks()).isEqualTo(1);
    assertThat(upstream.calls).isEqualTo(1);

    pool.free(head);
    pool.assertBytes(512, 1536, 2048);
    assertThat(pool.arena.freeBlocks()).isEqualTo(2);
    pool.free(tail);
    assertThat(pool.arena.freeBlocks()).isEqualTo(1);
    assertThat(pool.arena.offset(pool.malloc(2048))).isZero();
  }

  @Test
  void t2_splitAllocationIsNotReleased() {
    pool.free(pool.malloc(4 * U));
    int head = pool.malloc(2 * U);
    pool.free(pool.malloc(2 * U));
    pool.freeAllBlocks();
    pool.assertBytes(1024, 1024, 2048);
    int tail = pool.malloc(2 * U);
    assertThat(pool.arena.offset(tail)).isEqualTo(1024);
    assertThat(pool.arena.chunk(tail)).isEqualTo(pool.arena.chunk(head));
  }

  @Test
  void t3_underALimitFreeAllocationsAreReleasedForALargerOne() {
    ModelPool limited = new ModelPool(new Upstream(6 * U, Long.MAX_VALUE));
    int first = limited.malloc(5 * U);
    int firstChunk = limited.arena.chunk(first);
    limited.free(first);
    int second = limited.malloc(6 * U);
    assertThat(limited.arena.chunk(second)).isNotEqualTo(firstChunk);
    limited.assertBytes(3072, 0, 3072);
  }

  @Test
  void t4_underALimitAFailedAllocationChangesNothing() {
    ModelPool limited = new ModelPool(new Upstream(6 * U, Long.MAX_VALUE));
    limited.malloc(5 * U);
    limited.malloc(U);
    assertThat(limited.malloc(U)).isEqualTo(BlockArena.NONE);
    limited.assertBytes(3072, 0, 3072);
  }

  @Test
  void t5_blocksOfOneStreamAreNotGivenToAnother() {
    ModelPool other = new ModelPool(upstream);
    int first = pool.malloc(4 * U);
    pool.free(first);
    int second = other.malloc(4 * U);
    assertThat(upstream.calls).isEqualTo(2);
    pool.assertBytes(0, 2048, 2048);
    other.assertBytes(2048, 0, 2048);

    other.free(second);
    pool.freeAllBlocks();
    pool.assertBytes(0, 0, 0);
    other.assertBytes(0, 2048, 2048);
    assertThat(other.arena.freeBlocks()).isEqualTo(1);
  }

  @Test
  void t6_smallestBlockThatFitsIsCut() {
    int[] blocks = {pool.malloc(8 * U), pool.malloc(3 * U), pool.malloc(5 * U)};
    int chunkOfFive = pool.arena.chunk(blocks[2]);
    for (int block : blocks) {
      pool.free(block);
    }
    assertThat(pool.arena.chunk(pool.malloc(4 * U))).isEqualTo(chunkOfFive);
    assertThat(pool.arena.freeBlocks()).isEqualTo(3);
    assertThat(pool.arena.largestFreeBytes()).isEqualTo(8 * U);
    assertThat(pool.arena.releasableBytes()).isEqualTo(11 * U);
    assertThat(pool.arena.freeBytes()).isEqualTo(12 * U);
    assertThat(pool.arena.heldBytes()).isEqualTo(8192);
  }

  @Test
  void t7_freedNeighboursMergeAndAreCutFromTheirStart() {
    pool.free(pool.malloc(6 * U));
    int first = pool.malloc(2 * U);
    int second = pool.malloc(4 * U);
    long address = pool.arena.address(first);
    pool.free(second);
    assertThat(pool.arena.largestFreeBytes()).isEqualTo(4 * U);
    pool.free(first);
    assertThat(pool.arena.largestFreeBytes()).isEqualTo(6 * U);
    int third = pool.malloc(U);
    assertThat(pool.arena.address(third)).isEqualTo(address);
    assertThat(pool.arena.freeBytes()).isEqualTo(5 * U);
  }

  @Test
  void t8_splitAllocationsStrandMemory() {
    ModelPool device = new ModelPool(new Upstream(Long.MAX_VALUE, 8 * GIB));
    device.malloc(GIB);
    device.free(device.malloc(4 * GIB));
    int part = device.malloc(GIB);
    assertThat(device.arena.isWhole(part)).isFalse();
    device.malloc(GIB);
    assertThat(device.malloc(4 * GIB)).isEqualTo(BlockArena.NONE);
    device.assertBytes(3 * GIB, 2 * GIB, 5 * GIB);
  }

  /** A base allocator with a limit on what pools may hold and with the memory of a device. */
  private static final class Upstream {
    final long limitBytes;
    final long deviceBytes;
    long heldBytes;
    long nextAddress = 1L << 40;
    int calls;

    Upstream(long limitBytes, long deviceBytes) {
      this.limitBytes = limitBytes;
      this.deviceBytes = deviceBytes;
    }

    boolean hasRoom(long bytes) {
      return bytes <= Math.min(limitBytes, deviceBytes) - heldBytes;
    }

    long allocate(long bytes) {
      long address = nextAddress;
      nextAddress += bytes + (1 << 20);
      heldBytes += bytes;
      calls++;
      return address;
    }
  }

  /** The least of a pool around one arena: search, then upstream, then release and upstream. */
  private static final class ModelPool {
    final BlockArena arena = new BlockArena();
    final Upstream upstream;

    ModelPool(Upstream upstream) {
      this.upstream = upstream;
    }

    int malloc(long requestedBytes) {
      long bytes = BlockArena.roundUp(requestedBytes);
      int block = arena.take(bytes);
      if (block != BlockArena.NONE) {
        return block;
      }
      if (!upstream.hasRoom(bytes)) {
        freeAllBlocks();
      }
      return upstream.hasRoom(bytes)
          ? arena.adopt(upstream.allocate(bytes), bytes, upstream.calls)
          : BlockArena.NONE;
    }

    void free(int block) {
      arena.give(block);
    }

    void freeAllBlocks() {
      for (int b = WholeChunks.take(arena, BlockArena.UNIT_BYTES);
          b != BlockArena.NONE;
          b = WholeChunks.take(arena, BlockArena.UNIT_BYTES)) {
        upstream.heldBytes -= arena.bytes(b);
        arena.forget(b);
      }
    }

    void assertBytes(long used, long free, long total) {
      assertThat(arena.usedBytes()).isEqualTo(used);
      assertThat(arena.freeBytes()).isEqualTo(free);
      assertThat(arena.heldBytes()).isEqualTo(total);
    }
  }
}
