package io.cuvette.internal.index;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class BlockArenaTest {
  private static final long U = BlockArena.UNIT_BYTES;
  private static final long MAX = Long.MAX_VALUE - 511;

  private final BlockArena arena = new BlockArena();

  @AfterEach
  void arenaIsValid() {
    arena.assertValid();
  }

  @Test
  void roundUp_givesTheNextMultipleOf512() {
    assertThat(BlockArena.roundUp(0)).isZero();
    assertThat(BlockArena.roundUp(1)).isEqualTo(512);
    assertThat(BlockArena.roundUp(512)).isEqualTo(512);
    assertThat(BlockArena.roundUp(513)).isEqualTo(1024);
    assertThat(BlockArena.roundUp(MAX)).isEqualTo(MAX);
    assertThat(BlockArena.roundUp(MAX - 1)).isEqualTo(MAX);
  }

  @Test
  void roundUp_refusesWhatHasNoMultiple() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> BlockArena.roundUp(-5))
        .withMessage("bytes: -5 (expected: 0 to 9223372036854775296)");
    assertThatIllegalArgumentException().isThrownBy(() -> BlockArena.roundUp(MAX + 1));
  }

  @Test
  void adoptedChunk_isOneBlockInUse() {
    int block = arena.adopt(4096, 3 * U, 7);
    assertThat(arena.address(block)).isEqualTo(4096);
    assertThat(arena.bytes(block)).isEqualTo(3 * U);
    assertThat(arena.chunk(block)).isEqualTo(7);
    assertThat(arena.offset(block)).isZero();
    assertThat(arena.isWhole(block)).isTrue();
    assertThat(arena.usedBytes()).isEqualTo(3 * U);
    assertThat(arena.take(U)).isEqualTo(BlockArena.NONE);
  }

  @Test
  void partOfAChunk_knowsItsOffsetAndIsNotWhole() {
    arena.give(arena.adopt(1 << 20, 8 * U, 3));
    int head = arena.take(3 * U);
    int tail = arena.take(2 * U);
    assertThat(arena.offset(head)).isZero();
    assertThat(arena.offset(tail)).isEqualTo(3 * U);
    assertThat(arena.chunk(tail)).isEqualTo(3);
    assertThat(arena.isWhole(head)).isFalse();
    assertThat(arena.isWhole(tail)).isFalse();
  }

  @Test
  void bestFit_isExactAmongSizesOfOneMagnitude() {
    int[] blocks = new int[200];
    for (int i = 0; i < blocks.length; i++) {
      blocks[i] = arena.adopt((i + 1L) << 40, (5000 + 3 * i) * U, i);
    }
    for (int block : blocks) {
      arena.give(block);
    }
    int fit = arena.take(5298 * U);
    assertThat(arena.chunk(fit)).isEqualTo(100);
  }

  @Test
  void oneUnit_mayBeCutFromTheLargestChunk() {
    arena.give(arena.adopt(0, MAX, 0));
    int block = arena.take(U);
    assertThat(arena.address(block)).isZero();
    assertThat(arena.largestFreeBytes()).isEqualTo(MAX - U);
    arena.give(block);
    assertThat(arena.take(MAX)).isNotEqualTo(BlockArena.NONE);
  }

  @Test
  void neighbouringChunks_doNotMerge() {
    int left = arena.adopt(0, 2 * U, 0);
    int right = arena.adopt(2 * U, 2 * U, 1);
    arena.give(left);
    arena.give(right);
    assertThat(arena.freeBlocks()).isEqualTo(2);
    assertThat(arena.take(4 * U)).isEqualTo(BlockArena.NONE);
  }

  @Test
  void amongEqualSizes_thePartIsTakenBeforeTheWholeChunk() {
    arena.give(arena.adopt(1 << 20, 4 * U, 0));
    int guard = arena.take(2 * U);
    int whole = arena.adopt(1 << 21, 2 * U, 1);
    arena.give(whole);
    int displacing = arena.adopt(1 << 22, U, 2);
    arena.give(displacing);
    assertThat(arena.chunk(arena.take(2 * U))).isZero();
    assertThat(arena.releasableBytes()).isEqualTo(3 * U);
    arena.give(guard);
  }

  @Test
  void bestFitBytes_isTheSizeThatTakeWouldCut() {
    assertThat(arena.bestFitBytes(U)).isZero();
    int large = arena.adopt(0, 9 * U, 0);
    int small = arena.adopt(1 << 20, 4 * U, 1);
    arena.give(large);
    assertThat(arena.bestFitBytes(U)).isEqualTo(9 * U);
    arena.give(small);
    assertThat(arena.bestFitBytes(U)).isEqualTo(4 * U);
    assertThat(arena.bestFitBytes(5 * U)).isEqualTo(9 * U);
    assertThat(arena.bestFitBytes(10 * U)).isZero();
    arena.take(4 * U);
    assertThat(arena.bestFitBytes(U)).isEqualTo(9 * U);
  }

  @Test
  void findWhole_takesTheLastFreedChunkThatFitsExactly() {
    arena.give(arena.adopt(1 << 20, 5 * U, 1));
    assertThat(arena.bestFitBytes(5 * U)).isEqualTo(5 * U);
    assertThat(WholeChunks.take(arena, 6 * U)).isEqualTo(BlockArena.NONE);
    assertThat(arena.chunk(WholeChunks.take(arena, 5 * U))).isEqualTo(1);
  }

  /** Of equal size, exact or not: what was used last may still be in the caches of the device. */
  @Test
  void ofChunksThatFitAlike_theLastFreedIsTaken() {
    for (long wanted : new long[] {5 * U, 4 * U, U}) {
      BlockArena two = new BlockArena();
      int first = two.adopt(1 << 20, 5 * U, 1);
      int second = two.adopt(1 << 21, 5 * U, 2);
      two.give(first);
      two.give(second);
      assertThat(two.chunk(two.findWhole(wanted))).isEqualTo(2);
      assertThat(two.chunk(two.bestFit(wanted))).isEqualTo(2);
      assertThat(two.chunk(two.take(wanted))).isEqualTo(2);
    }
  }

  @Test
  void remove_takesAFreeChunkAway() {
    arena.give(arena.adopt(1 << 20, 5 * U, 7));
    assertThat(arena.remove(arena.findWhole(U))).isEqualTo(7);
    assertThat(arena.chunks()).isZero();
    assertThat(arena.heldBytes()).isZero();
    arena.assertValid();
  }

  @Test
  void findWhole_skipsPartsAndDoesNotCut() {
    arena.give(arena.adopt(1 << 20, 10 * U, 0));
    arena.take(U);
    arena.give(arena.adopt(1 << 21, 20 * U, 1));
    arena.give(arena.adopt(1 << 22, 30 * U, 2));
    int block = WholeChunks.take(arena, 5 * U);
    assertThat(arena.chunk(block)).isEqualTo(1);
    assertThat(arena.bytes(block)).isEqualTo(20 * U);
    assertThat(arena.chunk(WholeChunks.take(arena, 5 * U))).isEqualTo(2);
    assertThat(WholeChunks.take(arena, 5 * U)).isEqualTo(BlockArena.NONE);
  }

  @Test
  void findWhole_ofOneUnit_reachesEveryFreeChunkAndNothingElse() {
    for (int chunk = 0; chunk < 100; chunk++) {
      arena.give(arena.adopt((chunk + 1L) << 30, (1L + chunk * chunk) * U, chunk));
    }
    int used = arena.take(9802 * U);
    int released = 0;
    for (int b = WholeChunks.take(arena, BlockArena.UNIT_BYTES);
        b != BlockArena.NONE;
        b = WholeChunks.take(arena, BlockArena.UNIT_BYTES)) {
      arena.forget(b);
      released++;
    }
    assertThat(released).isEqualTo(99);
    assertThat(arena.chunks()).isEqualTo(1);
    assertThat(arena.heldBytes()).isEqualTo(arena.usedBytes()).isEqualTo(9802 * U);
    assertThat(arena.isWhole(used)).isTrue();
  }

  @Test
  void forget_returnsTheTagAndRefusesPartsAndFreeBlocks() {
    int whole = arena.adopt(1 << 20, 4 * U, 42);
    assertThat(arena.forget(whole)).isEqualTo(42);
    assertThat(arena.heldBytes()).isZero();
    assertThatIllegalStateException().isThrownBy(() -> arena.forget(whole));
    arena.give(arena.adopt(1 << 20, 4 * U, 42));
    int part = arena.take(U);
    assertThatIllegalStateException()
        .isThrownBy(() -> arena.forget(part))
        .withMessage("block: " + part + " (expected: a whole chunk)");
  }

  @Test
  void give_refusesABlockThatIsNotInUse() {
    int block = arena.adopt(1 << 20, U, 0);
    arena.give(block);
    assertThatIllegalStateException()
        .isThrownBy(() -> arena.give(block))
        .withMessage("block: " + block + " (expected: a block in use)");
    assertThatIllegalStateException().isThrownBy(() -> arena.give(BlockArena.NONE));
    assertThatIllegalStateException().isThrownBy(() -> arena.give(1_000_000));
  }

  /** Also where there is no record for it yet. */
  @Test
  void numberBehindTheLast_isNoBlockInUse() {
    for (int count = 0; count < 70; count++) {
      int next = count;
      assertThatIllegalStateException()
          .isThrownBy(() -> arena.give(next))
          .withMessage("block: " + next + " (expected: a block in use)");
      assertThatIllegalStateException().isThrownBy(() -> arena.cut(next, U));
      assertThatIllegalStateException().isThrownBy(() -> arena.forget(next));
      assertThat(arena.adopt((count + 1L) << 20, 2 * U, count)).isEqualTo(next);
    }
  }

  @Test
  void cut_refusesABlockThatIsNotInUse() {
    int block = arena.adopt(1 << 20, 4 * U, 0);
    arena.give(block);
    assertThatIllegalStateException()
        .isThrownBy(() -> arena.cut(block, U))
        .withMessage("block: " + block + " (expected: a block in use)");
    assertThatIllegalStateException().isThrownBy(() -> arena.cut(BlockArena.NONE, U));
  }

  @Test
  void sizesThatAreNotRounded_areRefused() {
    for (long bytes : new long[] {0, -512, 1, 511, 513, Long.MIN_VALUE, Long.MAX_VALUE}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> arena.take(bytes))
          .withMessage("bytes: " + bytes + " (expected: a positive multiple of 512)");
      assertThatIllegalArgumentException().isThrownBy(() -> WholeChunks.take(arena, bytes));
      assertThatIllegalArgumentException().isThrownBy(() -> arena.adopt(0, bytes, 0));
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() -> arena.adopt(0, U, -1))
        .withMessage("chunk: -1 (expected: >= 0)");
  }

  @Test
  void chunksThatOverflowTheTotal_areRefused() {
    arena.adopt(0, MAX - U, 0);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> arena.adopt(0, 2 * U, 1))
        .withMessage("bytes: 1024 (expected: <= 512, as 9223372036854774784 are held)");
    arena.adopt(0, U, 1);
    assertThat(arena.heldBytes()).isEqualTo(MAX);
  }

  @Test
  void hundredThousandSizesInTurn_needNoMoreMemoryThanOne() {
    for (int i = 1; i <= 100_000; i++) {
      int block = arena.adopt(1L << 40, i * 7919L * U, 0);
      arena.give(block);
      arena.forget(WholeChunks.take(arena, BlockArena.UNIT_BYTES));
    }
    assertThat(arena.records()).isBetween(1, 64);
  }

  /** Records of blocks are in segments of 4096. */
  @Test
  void tenThousandBlocksOfOneChunk_areAllApart_andOneAgainInTheEnd() {
    int count = 10_000;
    arena.give(arena.adopt(1 << 20, count * U, 3));
    int[] blocks = new int[count];
    for (int i = 0; i < count; i++) {
      blocks[i] = arena.take(U);
    }
    for (int i = 0; i < count; i++) {
      assertThat(arena.offset(blocks[i])).isEqualTo(i * U);
    }
    arena.assertValid();
    for (int i = 0; i < count; i++) {
      arena.give(blocks[i * 7 % count]);
    }
    assertThat(arena.isWhole(arena.take(count * U))).isTrue();
  }

  /** Whether one of the blocks beside the cut is free, or none. */
  @Test
  void chunkThatIsSplit_isTwo_withTheBlocksThatItHad() {
    for (int free = -1; free < 2; free++) {
      BlockArena split = new BlockArena();
      int _ = split.add(1 << 20, 4 * U, 3);
      int[] blocks = {split.take(U), split.take(U), split.take(2 * U)};
      if (free >= 0) {
        int _ = split.give(blocks[free]);
      }
      split.split(blocks[1], 8);
      split.assertValid();
      assertThat(split.chunks()).isEqualTo(2);
      assertThat(split.chunk(blocks[0])).isEqualTo(3);
      assertThat(split.chunk(blocks[1])).isEqualTo(8);
      assertThat(split.chunk(blocks[2])).isEqualTo(8);
      assertThat(split.offset(blocks[2])).isEqualTo(U);
      assertThat(split.freeBlocks()).isEqualTo(free < 0 ? 0 : 1);
      assertThat(split.releasableBytes()).isEqualTo(free == 0 ? U : 0);
      for (int block = 0; block < blocks.length; block++) {
        assertThat(split.isFree(blocks[block])).isEqualTo(block == free);
        if (block != free) {
          int _ = split.give(blocks[block]);
          split.assertValid();
        }
      }
      assertThat(split.releasableBytes()).isEqualTo(4 * U);
      assertThat(split.freeBlocks()).isEqualTo(2);
    }
  }
}
