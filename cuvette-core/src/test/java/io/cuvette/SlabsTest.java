package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.block.Memory;
import io.cuvette.internal.index.BlockArena;
import io.cuvette.internal.index.Seeds;
import io.cuvette.internal.pool.Slabs;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Random work on slabs of one arena, beside a map of what is in use; the Java heap may be full. */
class SlabsTest {
  private static final int SEEDS = 50;
  private static final int STEPS = 2_000;
  private static final long UNIT = BlockArena.UNIT_BYTES;

  /** An arena that has no room now and then. */
  private static final class FullSource implements Slabs.Source {
    final BlockArena arena = new BlockArena();
    final SplittableRandom random;
    int percent;

    FullSource(SplittableRandom random) {
      this.random = random;
    }

    private void mayBeFull() {
      if (random.nextInt(100) < percent) {
        throw new OutOfMemoryError("of this test");
      }
    }

    @Override
    public void take(int block, long bytes) {
      mayBeFull();
      arena.take(block, bytes);
    }

    @Override
    public int cut(int block, long bytes) {
      mayBeFull();
      return arena.cut(block, bytes);
    }

    @Override
    public void give(int block, long bytes, long time) {
      assertThat(arena.bytes(block)).isEqualTo(bytes);
      assertThat(arena.isFree(block)).isFalse();
      mayBeFull();
      int _ = arena.give(block);
    }
  }

  /** Two users of one arena, as stripes are. */
  private static final class Work {
    private final SplittableRandom random;
    private final FullSource source;
    private final List<Slabs> slabs = new ArrayList<>();
    private final List<List<Integer>> live = new ArrayList<>();

    /** Address and bytes of all that is in use. */
    private final TreeMap<Long, Long> used = new TreeMap<>();

    private final Map<Integer, Memory> chunks = new HashMap<>();

    Work(SplittableRandom random, List<Memory> memory) {
      this.random = random;
      this.source = new FullSource(random);
      for (Memory chunk : memory) {
        int number = chunks.size();
        chunks.put(number, chunk);
        int _ = source.arena.add(chunk.address(), chunk.byteSize(), number);
      }
      for (int i = 0; i < 2; i++) {
        slabs.add(new Slabs(source));
        live.add(new ArrayList<>());
      }
    }

    void run() {
      for (int i = 0; i < STEPS; i++) {
        source.percent = i % 100 < 50 ? 0 : 30;
        int who = random.nextInt(2);
        try {
          step(slabs.get(who), live.get(who));
        } catch (OutOfMemoryError e) {
          assertThat(e).hasMessage("of this test");
        }
        if (i % 16 == 0) {
          check();
        }
      }
      source.percent = 0;
      releaseAll();
      assertThat(source.arena.usedBytes()).isEqualTo(sum());
      for (int who = 0; who < 2; who++) {
        live.get(who).forEach(slabs.get(who)::give);
      }
      used.clear();
      releaseAll();
      assertThat(source.arena.usedBytes()).isZero();
      assertThat(source.arena.releasableBytes()).isEqualTo(source.arena.heldBytes());
      check();
    }

    private void releaseAll() {
      slabs.forEach(each -> {
        boolean _ = each.releaseAll(0);
      });
    }

    private long sum() {
      return used.values().stream().mapToLong(each -> each).sum();
    }

    private void step(Slabs own, List<Integer> parts) {
      int what = random.nextInt(100);
      if (what < 50) {
        take(own, parts, UNIT * random.nextLong(1, 40));
      } else if (what < 90 && !parts.isEmpty()) {
        int part = parts.remove(random.nextInt(parts.size()));
        assertThat(used.remove(own.address(part))).isNotNull();
        own.give(part);
      } else if (what < 97) {
        release(own, UNIT * random.nextLong(1, 40));
      } else {
        boolean _ = own.releaseAll(0);
      }
    }

    private void take(Slabs own, List<Integer> parts, long bytes) {
      int part = own.find(bytes);
      if (part == Slabs.NONE) {
        int block = source.arena.find(bytes);
        if (block == BlockArena.NONE) {
          return;
        }
        long slab = Math.min(source.arena.bytes(block), Math.max(bytes, 64 * UNIT));
        Memory chunk = chunks.get(source.arena.chunk(block));
        own.add(block, slab, chunk, source.arena.address(block));
        part = own.find(bytes);
      }
      long address = own.address(part);
      Memory chunk = own.chunk(part);
      assertThat(address).isBetween(chunk.address(), chunk.address() + chunk.byteSize() - bytes);
      own.take(part, bytes);
      var before = used.lowerEntry(address + bytes);
      assertThat(before == null || before.getKey() + before.getValue() <= address).isTrue();
      used.put(address, bytes);
      parts.add(part);
    }

    private void release(Slabs own, long bytes) {
      long best = own.bestFitBytes(bytes);
      long usedBefore = source.arena.usedBytes();
      assertThat(own.release(bytes, 0)).isEqualTo(best > 0);
      assertThat(source.arena.usedBytes()).isEqualTo(usedBefore - best);
    }

    private void check() {
      source.arena.assertValid();
      int parts = source.arena.usedBlocks();
      for (Slabs each : slabs) {
        each.assertValid();
        parts += each.blocksBeside();
      }
      assertThat(parts).isEqualTo(used.size());
    }
  }

  @Test
  void parts_areEachInUseOnce_andNothingIsLost() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      List<Memory> memory = new ArrayList<>();
      for (int i = 1; i <= 4; i++) {
        memory.add(((BufferBase) cuda.allocate(i * 100 * UNIT)).memory());
      }
      Seeds.forEach(SEEDS, random -> new Work(random, memory).run());
    }
  }

  /** Half of it, at most, is lost to whoever takes it whole. */
  @Test
  void blockOfTwiceTheSize_isClose_andALargerOneIsNot() {
    assertThat(Slabs.isClose(UNIT, UNIT)).isTrue();
    assertThat(Slabs.isClose(2 * UNIT, UNIT)).isTrue();
    assertThat(Slabs.isClose(2 * UNIT + 1, UNIT)).isFalse();
  }

  /** Else what comes and goes takes more and more room. */
  @Test
  void numberOfASlabThatWentBack_isThatOfTheNext() throws ReflectiveOperationException {
    Field room = Slabs.class.getDeclaredField("blocks");
    room.setAccessible(true);
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      Memory memory = ((BufferBase) cuda.allocate(100 * UNIT)).memory();
      FullSource source = new FullSource(new SplittableRandom(1));
      int _ = source.arena.add(memory.address(), memory.byteSize(), 0);
      Slabs slabs = new Slabs(source);
      int most = ((int[]) room.get(slabs)).length;
      for (int round = 0; round < 100; round++) {
        for (int i = 0; i < most; i++) {
          int block = source.arena.find(4 * UNIT);
          slabs.add(block, 4 * UNIT, memory, source.arena.address(block));
        }
        slabs.assertValid();
        assertThat(slabs.releaseAll(0)).isTrue();
        assertThat(source.arena.usedBytes()).isZero();
      }
      assertThat((int[]) room.get(slabs)).hasSize(most);
    }
  }
}
