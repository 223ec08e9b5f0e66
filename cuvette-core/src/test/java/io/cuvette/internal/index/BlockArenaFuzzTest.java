package io.cuvette.internal.index;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.function.LongUnaryOperator;
import org.junit.jupiter.api.Test;

class BlockArenaFuzzTest {
  private static final int SEEDS = 12;
  private static final int STEPS = 600;

  @Test
  void smallSizes_behaveAsThePlainModel() {
    Seeds.forEach(SEEDS, random -> new Run(random, r -> random.nextLong(1, 40), 60).run());
  }

  @Test
  void sizesOverManyMagnitudes_behaveAsThePlainModel() {
    Seeds.forEach(
        SEEDS,
        random -> new Run(random, r -> random.nextLong(1L << random.nextInt(1, 36)), 40).run());
  }

  @Test
  void fewRepeatedSizes_behaveAsThePlainModel() {
    long[] sizes = {1, 2, 3, 63, 64, 65, 4095, 4096, 4097, 262_144};
    Seeds.forEach(
        SEEDS, random -> new Run(random, r -> sizes[random.nextInt(sizes.length)], 80).run());
  }

  @Test
  void growingAndShrinking_endsWithWholeChunksOnly() {
    Seeds.forEach(
        10,
        random -> {
          Run run = new Run(random, r -> random.nextLong(1, 500), 300);
          run.run();
          run.giveAll();
          assertThat(run.arena.freeBlocks()).isEqualTo(run.arena.chunks());
          assertThat(run.arena.releasableBytes()).isEqualTo(run.arena.heldBytes());
          run.releaseAll();
          assertThat(run.arena.heldBytes()).isZero();
          assertThat(run.arena.largestFreeBytes()).isZero();
        });
  }

  /** One sequence of random operations on an arena and on the model. */
  private static final class Run {
    final BlockArena arena = new BlockArena();
    final PlainArena model = new PlainArena();
    final List<Integer> live = new ArrayList<>();
    final SplittableRandom random;
    final LongUnaryOperator nextUnits;
    final int targetLive;
    long nextAddress = 1 << 20;
    int nextChunk;

    Run(SplittableRandom random, LongUnaryOperator nextUnits, int targetLive) {
      this.random = random;
      this.nextUnits = nextUnits;
      this.targetLive = targetLive;
    }

    void run() {
      for (int step = 0; step < STEPS; step++) {
        step();
        check();
      }
    }

    private void step() {
      int choice = random.nextInt(100);
      if (choice < 4) {
        takeWhole(nextBytes());
      } else if (choice < 8) {
        release(WholeChunks.take(arena, BlockArena.UNIT_BYTES));
      } else if (choice < 14 && !live.isEmpty()) {
        cut(live.get(random.nextInt(live.size())));
      } else if (choice < 20 && !live.isEmpty()) {
        split(live.get(random.nextInt(live.size())));
      } else if (random.nextInt(2 * targetLive) >= live.size()) {
        take(nextBytes());
      } else {
        give(random.nextInt(live.size()));
      }
    }

    private long nextBytes() {
      return Math.max(1, nextUnits.applyAsLong(0)) * BlockArena.UNIT_BYTES;
    }

    private void take(long bytes) {
      long expected = model.bestFitBytes(bytes);
      int block = arena.take(bytes);
      if (expected < 0) {
        assertThat(block).isEqualTo(BlockArena.NONE);
        block = adopt(bytes * (random.nextInt(4) == 0 ? random.nextInt(1, 5) : 1));
      } else {
        assertThat(block).isNotEqualTo(BlockArena.NONE);
        PlainArena.Piece piece = model.pieceAt(arena.address(block), arena.chunk(block));
        assertThat(piece.used()).isFalse();
        assertThat(piece.bytes()).as("best fit for %d", bytes).isEqualTo(expected);
        assertThat(arena.bytes(block)).isEqualTo(bytes);
        model.take(arena.address(block), bytes, arena.chunk(block));
      }
      live.add(block);
    }

    private int adopt(long bytes) {
      int chunk = nextChunk++;
      // Some chunks touch: they must not merge all the same.
      long address = nextAddress + (random.nextBoolean() ? 0 : BlockArena.UNIT_BYTES);
      nextAddress = address + bytes;
      model.adopt(address, bytes, chunk);
      return arena.adopt(address, bytes, chunk);
    }

    private void give(int index) {
      int block = live.set(index, live.getLast());
      live.removeLast();
      long address = arena.address(block);
      int chunk = arena.chunk(block);
      model.give(address, chunk);
      int free = arena.give(block);
      assertThat(arena.isFree(free)).isTrue();
      assertThat(arena.isNewest(free)).isTrue();
      assertThat(arena.chunk(free)).isEqualTo(chunk);
      PlainArena.Piece piece = model.pieceAt(arena.address(free), chunk);
      assertThat(piece.bytes()).isEqualTo(arena.bytes(free));
      assertThat(address).isBetween(piece.address(), piece.end() - 1);
    }

    private void cut(int block) {
      long units = arena.bytes(block) / BlockArena.UNIT_BYTES;
      if (units > 1) {
        long bytes = random.nextLong(1, units) * BlockArena.UNIT_BYTES;
        model.cut(arena.address(block), bytes, arena.chunk(block));
        live.add(arena.cut(block, bytes));
      }
    }

    private void split(int block) {
      if (arena.prev(block) != BlockArena.NONE) {
        model.split(arena.address(block), arena.chunk(block), nextChunk);
        arena.makeRoomForPending();
        arena.split(block, nextChunk++);
      }
    }

    private void takeWhole(long bytes) {
      long expected = model.bestWholeBytes(bytes);
      int block = WholeChunks.take(arena, bytes);
      assertThat(block == BlockArena.NONE).isEqualTo(expected < 0);
      if (block != BlockArena.NONE) {
        assertThat(arena.bytes(block)).as("whole chunk for %d", bytes).isEqualTo(expected);
        model.take(arena.address(block), expected, arena.chunk(block));
        if (random.nextBoolean()) {
          live.add(block);
        } else {
          forget(block);
        }
      }
    }

    private void release(int block) {
      assertThat(block == BlockArena.NONE).isEqualTo(model.bestWholeBytes(1) < 0);
      if (block != BlockArena.NONE) {
        long address = arena.address(block);
        model.take(address, arena.bytes(block), arena.chunk(block));
        forget(block);
      }
    }

    private void forget(int block) {
      assertThat(arena.isWhole(block)).isTrue();
      int expected = arena.chunk(block);
      int chunk = arena.forget(block);
      assertThat(chunk).isEqualTo(expected);
      assertThat(model.pieces(chunk)).isEqualTo(1);
      model.forget(chunk);
    }

    void giveAll() {
      while (!live.isEmpty()) {
        give(random.nextInt(live.size()));
        check();
      }
    }

    void releaseAll() {
      for (int left = arena.chunks(); left > 0; left--) {
        release(WholeChunks.take(arena, BlockArena.UNIT_BYTES));
        check();
      }
    }

    private void check() {
      arena.assertValid();
      assertThat(arena.heldBytes()).isEqualTo(arena.usedBytes() + arena.freeBytes());
      assertThat(arena.usedBlocks()).isEqualTo(live.size());
      List<Long> found =
          List.of(
              arena.usedBytes(),
              arena.freeBytes(),
              (long) arena.usedBlocks(),
              (long) arena.freeBlocks(),
              (long) arena.chunks(),
              arena.releasableBytes(),
              arena.largestFreeBytes());
      assertThat(found).isEqualTo(model.totals());
      if (random.nextInt(60) == 0) {
        checkFreeChunks();
      }
      checkOneLive();
    }

    /** Also of numbers that are no block's. */
    private void checkFreeChunks() {
      Set<Integer> found = new TreeSet<>();
      for (int block = 0; block < 2 * arena.records(); block++) {
        for (int chunk = 0; chunk < nextChunk; chunk++) {
          if (arena.isFreeChunk(block, chunk)) {
            found.add(chunk);
          }
        }
      }
      assertThat(found).isEqualTo(model.freeChunks());
    }

    private void checkOneLive() {
      if (!live.isEmpty()) {
        int block = live.get(random.nextInt(live.size()));
        PlainArena.Piece piece = model.pieceAt(arena.address(block), arena.chunk(block));
        assertThat(piece.used()).isTrue();
        assertThat(piece.bytes()).isEqualTo(arena.bytes(block));
        assertThat(model.pieces(arena.chunk(block)) == 1).isEqualTo(arena.isWhole(block));
        assertThat(arena.offset(block))
            .isEqualTo(piece.address() - model.start(arena.chunk(block)));
        for (int beside : new int[] {arena.prev(block), arena.next(block)}) {
          if (beside != BlockArena.NONE) {
            long at = arena.address(beside);
            assertThat(model.pieceAt(at, arena.chunk(block)).bytes())
                .isEqualTo(arena.bytes(beside));
            assertThat(at == piece.end() || at + arena.bytes(beside) == piece.address()).isTrue();
          }
        }
      }
    }
  }
}
