package io.cuvette.pool;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class SizeIndexTest {
  private static final int STEPS = 1000;

  @Test
  void sizesUpToTheWholeLongRange_areFoundInOrder() {
    Seeds.forEach(15, random -> new Run(random, 54).run());
  }

  @Test
  void denseSizes_areFoundInOrder() {
    Seeds.forEach(15, random -> new Run(random, 9).run());
  }

  @Test
  void emptiedIndex_keepsNoNodesButTheRoots() {
    BlockTable blocks = new BlockTable();
    SizeIndex index = new SizeIndex(blocks);
    SplittableRandom random = new SplittableRandom(1);
    for (int round = 0; round < 50; round++) {
      int[] added = new int[200];
      for (int i = 0; i < added.length; i++) {
        added[i] = blocks.create(0, random.nextLong(1, 1L << 40), 0, 0);
        index.insert(added[i]);
      }
      for (int block : added) {
        index.remove(block);
        blocks.recycle(block);
      }
    }
    assertThat(index.nodes()).isLessThanOrEqualTo(7);
    assertThat(index.checkAndCount()).isZero();
    assertThat(blocks.end()).isEqualTo(200);
  }

  /** Random insertions and removals, beside a sorted map of stacks. */
  private static final class Run {
    final BlockTable blocks = new BlockTable();
    final SizeIndex index = new SizeIndex(blocks);
    final TreeMap<Long, Deque<Integer>> model = new TreeMap<>();
    final SplittableRandom random;
    final int bits;

    Run(SplittableRandom random, int bits) {
      this.random = random;
      this.bits = bits;
    }

    void run() {
      for (int step = 0; step < STEPS; step++) {
        if (random.nextInt(100) < (step < STEPS / 2 ? 60 : 40) || model.isEmpty()) {
          insert(nextUnits());
        } else {
          removeFrom(model.ceilingEntry(Math.min(nextUnits(), model.lastKey())));
        }
        check(nextUnits());
      }
    }

    private long nextUnits() {
      return Math.max(1, random.nextLong(1L << random.nextInt(1, bits + 1)));
    }

    private void insert(long units) {
      int block = blocks.create(0, units, 0, 0);
      index.insert(block);
      model.computeIfAbsent(units, key -> new ArrayDeque<>()).push(block);
    }

    private void removeFrom(Map.Entry<Long, Deque<Integer>> entry) {
      Deque<Integer> stack = entry.getValue();
      int block = random.nextBoolean() ? stack.pop() : stack.removeLast();
      index.remove(block);
      blocks.recycle(block);
      if (stack.isEmpty()) {
        model.remove(entry.getKey());
      }
    }

    private void check(long units) {
      Map.Entry<Long, Deque<Integer>> expected = model.ceilingEntry(units);
      int found = index.atLeast(units, SizeIndex.ALL);
      assertThat(found).isEqualTo(expected == null ? BlockTable.NONE : expected.getValue().peek());
      assertThat(index.atLeast(units, SizeIndex.WHOLE_ONLY)).isEqualTo(found);
      assertThat(index.largest()).isEqualTo(model.isEmpty() ? 0 : model.lastKey());
      if (random.nextInt(10) == 0) {
        int expectedCount = model.values().stream().mapToInt(Deque::size).sum();
        assertThat(index.checkAndCount()).isEqualTo(expectedCount);
      }
    }
  }
}
