package io.cuvette.internal.index;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Field;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class SizeIndexTest {
  private static final int STEPS = 1000;

  @Test
  void sizesUpToTheWholeLongRange_areFoundInOrder() {
    Seeds.forEach(15, random -> new Run(random, 54).run());
  }

  @Test
  void sizesAroundTheLimitOfTheDenseOnes_areFoundInOrder() {
    Seeds.forEach(15, random -> new Run(random, 18).run());
  }

  @Test
  void manyBlocksOfFewSizes_areFoundInOrder() {
    Seeds.forEach(15, random -> new Run(random, 4).run());
  }

  /** Lists of many blocks, on both sides of the limit of the dense sizes and far above it. */
  @Test
  void manyBlocksOfFewLargeSizes_areFoundInOrder() {
    long limit = DenseSizes.LIMIT_UNITS;
    long[] sizes = {limit - 1, limit, limit + 1, limit + 77, limit * 64, limit * 64 + 63};
    Seeds.forEach(15, random -> new Run(random, _ -> sizes[random.nextInt(sizes.length)]).run());
  }

  /** What comes and goes for days would take all the Java heap else. */
  @Test
  void roomForNodes_staysAsItIs_howeverOftenTheyAreUsedAgain() throws ReflectiveOperationException {
    BlockTable blocks = new BlockTable();
    SparseSizes sparse = new SparseSizes(blocks);
    Field parents = SparseSizes.class.getDeclaredField("parents");
    parents.setAccessible(true);
    for (int kind : new int[] {SizeIndex.PARTS, SizeIndex.WHOLE}) {
      for (int i = 0; i < 1000; i++) {
        long units = 1 << (10 + i % 10);
        int block = blocks.create(0, units, 0, 0);
        sparse.reserve(units, 1);
        sparse.insert(block, units, kind);
        sparse.remove(block, units, kind);
        blocks.recycle(block);
      }
    }
    assertThat((int[]) parents.get(sparse)).hasSizeLessThanOrEqualTo(16);
    assertThat(sparse.end()).isLessThanOrEqualTo(8);
  }

  @Test
  void emptiedIndex_recyclesItsNodes() {
    BlockTable blocks = new BlockTable();
    SizeIndex index = new SizeIndex(blocks, DenseSizes.LIMIT_UNITS);
    SplittableRandom random = new SplittableRandom(1);
    int nodesAfterFirstRounds = 0;
    for (int round = 0; round < 200; round++) {
      int[] added = new int[100];
      for (int i = 0; i < added.length; i++) {
        added[i] = blocks.create(0, random.nextLong(1, 1L << 40), 0, 0);
        index.reserve(blocks.units(added[i]), 1);
        index.insert(added[i]);
      }
      for (int block : added) {
        index.remove(block);
        blocks.recycle(block);
      }
      nodesAfterFirstRounds = round == 100 ? index.nodes() : nodesAfterFirstRounds;
    }
    assertThat(index.nodes()).isLessThanOrEqualTo(nodesAfterFirstRounds + 20).isBetween(1, 600);
    assertThat(index.checkAndCount()).isZero();
    assertThat(blocks.end()).isEqualTo(100);
  }

  /** A list of direct addresses takes 8 bytes of heap for each size below. */
  @Test
  void directAddresses_areForSizesOfWhichThereAreMany() {
    for (int size : new int[] {1 << 12, (1 << 13) - SizeIndex.MANY - 1, 50_000}) {
      BlockTable blocks = new BlockTable();
      SizeIndex index = new SizeIndex(blocks, DenseSizes.LIMIT_UNITS);
      for (int i = 0; i <= SizeIndex.MANY; i++) {
        assertThat(index.limitUnits()).isEqualTo(1 << 12);
        int units = size + SizeIndex.MANY - i; // at last the size itself
        int block = blocks.create(0, units, 0, 0);
        index.reserve(units, 1);
        index.insert(block);
      }
      assertThat(index.limitUnits()).isEqualTo(size == 50_000 ? 1 << 16 : 1 << 13);
      assertThat(index.checkAndCount()).isEqualTo(SizeIndex.MANY + 1);
    }
  }

  @Test
  void sizesOfWhichThereAreNoLongerMany_haveNoDirectAddresses() {
    BlockTable blocks = new BlockTable();
    SizeIndex index = new SizeIndex(blocks, DenseSizes.LIMIT_UNITS);
    for (int i = 0; i < 3 * SizeIndex.MANY; i++) {
      int block = blocks.create(0, 50_000 + i, 0, 0);
      index.reserve(50_000 + i, 1);
      index.insert(block);
      index.remove(block);
      blocks.recycle(block);
    }
    assertThat(index.limitUnits()).isEqualTo(1 << 12);
  }

  /** Those that got direct addresses are not among the others any more. */
  @Test
  void largerSizes_getDirectAddresses_onceThereAreManyOfThoseToo() {
    BlockTable blocks = new BlockTable();
    SizeIndex index = new SizeIndex(blocks, DenseSizes.LIMIT_UNITS);
    for (int i = 0; i <= SizeIndex.MANY; i++) {
      index.reserve(5_000, 1);
      index.insert(blocks.create(0, 5_000, 0, 0));
    }
    assertThat(index.limitUnits()).isEqualTo(1 << 13);
    for (int i = 0; i < SizeIndex.MANY; i++) {
      index.reserve(50_000, 1);
      index.insert(blocks.create(0, 50_000, 0, 0));
      assertThat(index.limitUnits()).isEqualTo(1 << 13);
    }
    index.reserve(50_000, 1);
    assertThat(index.limitUnits()).isEqualTo(1 << 16);
    assertThat(index.checkAndCount()).isEqualTo(2 * SizeIndex.MANY + 1);
  }

  /** Each needs nodes of its own on every level, and there are none but those made before. */
  @Test
  void blocksThatThereIsRoomFor_areInserted_howeverLargeAndMany() {
    SplittableRandom random = new SplittableRandom(1);
    for (int bits = 1; bits <= 54; bits++) {
      for (int count = 1; count <= 24; count++) {
        BlockTable blocks = new BlockTable();
        SizeIndex index = new SizeIndex(blocks, DenseSizes.LIMIT_UNITS);
        long most = (1L << bits) - 1;
        index.reserveUpTo(most, count);
        for (int i = 0; i < count; i++) {
          index.insert(blocks.create(0, most - random.nextLong((most + 1) / 2), 0, 0));
        }
        assertThat(index.checkAndCount()).isEqualTo(count);
      }
    }
  }

  /** Random insertions and removals, beside a sorted map of stacks for each kind. */
  private static final class Run {
    final BlockTable blocks = new BlockTable();
    final SizeIndex index = new SizeIndex(blocks, DenseSizes.LIMIT_UNITS);
    final TreeMap<Long, Deque<Integer>> parts = new TreeMap<>();
    final TreeMap<Long, Deque<Integer>> whole = new TreeMap<>();
    final SplittableRandom random;
    final ToLongFunction<SplittableRandom> sizes;

    Run(SplittableRandom random, int bits) {
      this(random, from -> Math.max(1, from.nextLong(1L << from.nextInt(1, bits + 1))));
    }

    Run(SplittableRandom random, ToLongFunction<SplittableRandom> sizes) {
      this.random = random;
      this.sizes = sizes;
    }

    void run() {
      for (int step = 0; step < STEPS; step++) {
        boolean isWhole = random.nextBoolean();
        TreeMap<Long, Deque<Integer>> model = isWhole ? whole : parts;
        if (random.nextInt(100) < (step < STEPS / 2 ? 60 : 40) || model.isEmpty()) {
          insert(nextUnits(), isWhole);
        } else {
          removeFrom(model, model.ceilingKey(Math.min(nextUnits(), model.lastKey())));
        }
        check(nextUnits());
      }
    }

    private long nextUnits() {
      return sizes.applyAsLong(random);
    }

    private void insert(long units, boolean isWhole) {
      int block = blocks.create(0, isWhole ? units : units + 1, 0, 0);
      if (!isWhole) {
        blocks.cut(block, units, 9);
      }
      index.reserve(blocks.units(block), 1);
      index.insert(block);
      TreeMap<Long, Deque<Integer>> model = isWhole ? whole : parts;
      model.computeIfAbsent(units, _ -> new ArrayDeque<>()).push(block);
    }

    private void removeFrom(TreeMap<Long, Deque<Integer>> model, long units) {
      Deque<Integer> stack = model.get(units);
      int block = random.nextBoolean() ? stack.pop() : stack.removeLast();
      index.remove(block);
      if (!blocks.isWhole(block)) {
        blocks.absorbNext(block);
      }
      blocks.recycle(block);
      if (stack.isEmpty()) {
        model.remove(units);
      }
    }

    private void check(long units) {
      Map.Entry<Long, Deque<Integer>> part = parts.ceilingEntry(units);
      Map.Entry<Long, Deque<Integer>> chunk = whole.ceilingEntry(units);
      boolean isPartFirst = part != null && (chunk == null || part.getKey() <= chunk.getKey());
      assertThat(index.atLeast(units, SizeIndex.ALL)).isEqualTo(first(isPartFirst ? part : chunk));
      assertThat(index.atLeast(units, SizeIndex.WHOLE_ONLY)).isEqualTo(first(chunk));
      assertThat(index.largest()).isEqualTo(Math.max(last(parts), last(whole)));
      if (random.nextInt(20) == 0) {
        assertThat(index.checkAndCount()).isEqualTo(count(parts) + count(whole));
        assertThat(index.wholeUnits()).isEqualTo(units(whole));
      }
    }

    private static int first(Map.@Nullable Entry<Long, Deque<Integer>> entry) {
      return entry == null ? BlockTable.NONE : entry.getValue().element();
    }

    private static long last(TreeMap<Long, Deque<Integer>> model) {
      return model.isEmpty() ? 0 : model.lastKey();
    }

    private static int count(TreeMap<Long, Deque<Integer>> model) {
      return model.values().stream().mapToInt(Deque::size).sum();
    }

    private static long units(TreeMap<Long, Deque<Integer>> model) {
      return model.entrySet().stream().mapToLong(e -> e.getKey() * e.getValue().size()).sum();
    }
  }
}
