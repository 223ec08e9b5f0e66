package io.cuvette.internal.space;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Memory is mapped where blocks are, and never overlaps, against a model. */
class SpaceTest {
  private static final long PAGE = 2L << 20;
  private static final long PAGE_UNITS = PAGE >>> Space.UNIT_SHIFT;
  private static final long BASE = 1L << 40;
  private static final long SEED = Long.getLong("cuvette.seed", 1);
  private static final int SEEDS = Integer.getInteger("cuvette.seeds", 10);
  private static final int OPERATIONS = 100_000;

  private long now;
  private final Space space = space();

  private Space space() {
    return new Space(BASE, 1L << 36, new Pieces(BASE, 1L << 36, PAGE), () -> now);
  }

  @Test
  void block_isPutWhereTheFewestPagesAreNeeded() {
    int first = grow(space, 3 * PAGE_UNITS, 0);
    int second = grow(space, PAGE_UNITS, 0);
    space.give(first, 0, 1, 0);
    Victim victim = space.carve(PAGE_UNITS, OptionalLong.empty());
    assertThat(victim).isNotNull();
    unmap(space, victim);
    // one page of the gap is a hole now; the end of the range would need three
    Place place = space.place(3 * PAGE_UNITS, 0);
    assertThat(place.cost).isEqualTo(PAGE_UNITS);
    assertThat(space.address(place.first)).isEqualTo(BASE);
    assertThat(space.address(second)).isEqualTo(BASE + 3 * PAGE);
    space.assertValid();
  }

  @Test
  void largestFreeOfSeveral_isThatOfAny() {
    Space less = space();
    less.give(grow(less, PAGE_UNITS, 0), 0, 1, 0);
    space.give(grow(space, 2 * PAGE_UNITS, 0), 0, 1, 0);
    for (List<Space> spaces : List.of(List.of(less, space), List.of(space, less))) {
      HeapCensus census = new HeapCensus();
      spaces.forEach(census::add);
      assertThat(census.largestFreeBytes).isEqualTo(2 * PAGE);
      assertThat(census.mappedBytes).isEqualTo(3 * PAGE);
    }
  }

  @Test
  void memoryOfAStream_isForOthersOnceItIsDone() {
    space.addTag(1);
    space.addTag(2);
    int block = grow(space, PAGE_UNITS, 1);
    space.give(block, 1, 7, 0);
    assertThat(space.find(PAGE_UNITS, 2)).isEqualTo(Space.NONE);
    assertThat(space.carve(PAGE_UNITS, OptionalLong.empty())).isNull();
    space.done(1, 6);
    assertThat(space.find(PAGE_UNITS, 2)).isEqualTo(Space.NONE);
    assertThat(space.find(PAGE_UNITS, 1)).isNotEqualTo(Space.NONE);
    space.done(1, 7);
    assertThat(space.find(PAGE_UNITS, 2)).isNotEqualTo(Space.NONE);
  }

  @Test
  void memory_isReleasedOldestFirst_andOnlyIfIdleLongEnough() {
    int first = grow(space, PAGE_UNITS, 0);
    int _ = grow(space, PAGE_UNITS, 0);
    int third = grow(space, PAGE_UNITS, 0);
    now = 5;
    space.give(third, 0, 1, AgeList.NOW);
    now = 9;
    space.give(first, 0, 2, AgeList.NOW);
    assertThat(space.carve(PAGE_UNITS, OptionalLong.of(5))).isNull();
    Victim victim = space.carve(PAGE_UNITS, OptionalLong.of(4));
    assertThat(victim).isNotNull();
    assertThat(victim.address).isEqualTo(BASE + 2 * PAGE);
    space.restore(victim);
    space.assertValid();
  }

  @Test
  void placeThatIsGivenBack_isAsBefore() {
    int first = grow(space, 2 * PAGE_UNITS + 5, 0);
    space.give(first, 0, 1, 0);
    long mapped = space.mappedUnits();
    Growth growth = space.begin(space.place(4 * PAGE_UNITS, 0), 4 * PAGE_UNITS);
    assertThat(growth.holeUnits()).isEqualTo(PAGE_UNITS);
    growth.abort();
    space.assertValid();
    assertThat(space.mappedUnits()).isEqualTo(mapped);
    assertThat(space.largestFree()).isEqualTo(3 * PAGE_UNITS);
  }

  @Test
  void memoryOfTheStreamItself_isTakenFirst_ifItFitsAsWell() {
    space.addTag(1);
    int done = grow(space, PAGE_UNITS, 0);
    int _ = grow(space, PAGE_UNITS, 0);
    int own = grow(space, PAGE_UNITS, 0);
    int _ = grow(space, PAGE_UNITS, 0);
    int large = grow(space, 2 * PAGE_UNITS, 0);
    space.give(done, 0, 1, 0);
    space.give(own, 1, 2, 0);
    space.give(large, 1, 3, 0);
    assertThat(space.address(space.find(PAGE_UNITS, 1))).isEqualTo(BASE + 2 * PAGE);
    space.take(space.find(PAGE_UNITS, 1), PAGE_UNITS);
    assertThat(space.address(space.find(PAGE_UNITS, 1))).isEqualTo(BASE);
  }

  @Test
  void freeMemoryThatJoins_isDoneWithTheLastOfIt() {
    for (long before : new long[] {7, 9}) {
      Space joining = space();
      joining.addTag(1);
      int first = grow(joining, PAGE_UNITS, 1);
      int second = grow(joining, PAGE_UNITS, 1);
      int third = grow(joining, PAGE_UNITS, 1);
      joining.give(first, 1, before, 0);
      joining.give(third, 1, 8, 0);
      joining.give(second, 1, 6, 0);
      joining.done(1, Math.max(before, 8) - 1);
      assertThat(joining.freeUnits(1)).isEqualTo(3 * PAGE_UNITS);
      joining.done(1, Math.max(before, 8));
      assertThat(joining.freeUnits(1)).isZero();
    }
  }

  @Test
  void memoryInAPlaceThatIsGivenBack_isDoneWhenItWasToBe() {
    space.addTag(1);
    space.give(grow(space, PAGE_UNITS, 1), 1, 7, 0);
    space.begin(space.place(2 * PAGE_UNITS, 1), 2 * PAGE_UNITS).abort();
    space.done(1, 6);
    assertThat(space.freeUnits(1)).isEqualTo(PAGE_UNITS);
    space.done(1, 7);
    assertThat(space.freeUnits(1)).isZero();
  }

  @Test
  void restOfFreeMemory_isIdleAsLongAsAllOfItWas() {
    now = 5;
    space.give(grow(space, 3 * PAGE_UNITS, 0), 0, 1, AgeList.NOW);
    now = 9;
    space.take(space.find(PAGE_UNITS, 0), PAGE_UNITS);
    assertThat(space.carve(PAGE_UNITS, OptionalLong.of(5))).isNull();
    assertThat(space.carve(PAGE_UNITS, OptionalLong.of(4))).isNotNull();
  }

  /** It begins in the middle of a piece. */
  @Test
  void restOfWhatWasUnmappedInPart_isIdleAsLongAsAllOfItWas() {
    now = 5;
    int _ = grow(space, PAGE_UNITS / 2, 0);
    space.give(grow(space, 3 * PAGE_UNITS, 0), 0, 1, AgeList.NOW);
    now = 9;
    for (int page = 1; page <= 2; page++) {
      Victim victim = space.carve(PAGE_UNITS, OptionalLong.of(4));
      assertThat(victim).isNotNull();
      assertThat(victim.address).isEqualTo(BASE + page * PAGE);
    }
  }

  @Test
  void whatIsUnmapped_countsItsPieces() {
    space.give(grow(space, 6 * PAGE_UNITS, 0), 0, 1, 0);
    Victim victim = space.carve(6 * PAGE_UNITS, OptionalLong.empty());
    assertThat(victim).isNotNull();
    assertThat(victim.bytes).isEqualTo(6 * PAGE);
    assertThat(victim.pieces).isEqualTo(3);
  }

  @Test
  void memoryInNoWholePiece_isLeft_andTheNextOldestIsReleased() {
    int block = grow(space, 4 * PAGE_UNITS, 0);
    int _ = grow(space, PAGE_UNITS, 0);
    int other = grow(space, PAGE_UNITS, 0);
    now = 5;
    space.give(space.cut(block, PAGE_UNITS), 0, 1, AgeList.NOW); // in a piece of four pages
    now = 9;
    space.give(other, 0, 2, AgeList.NOW);
    Victim victim = space.carve(PAGE_UNITS, OptionalLong.empty());
    assertThat(victim).isNotNull();
    assertThat(victim.address).isEqualTo(BASE + 5 * PAGE);
  }

  @Test
  void memoryTakenOut_isAHoleOnceItIsUnmapped_andFreeIfItIsNot() {
    int first = grow(space, 2 * PAGE_UNITS, 0);
    int _ = grow(space, PAGE_UNITS, 0);
    space.give(first, 0, 1, 0);
    Victim kept = space.carve(2 * PAGE_UNITS, OptionalLong.empty());
    assertThat(kept).isNotNull();
    kept.end();
    assertThat(space.find(2 * PAGE_UNITS, 0)).isEqualTo(first);
    Victim gone = space.carve(2 * PAGE_UNITS, OptionalLong.empty());
    assertThat(gone).isNotNull();
    space.pieces.remove(gone.address, gone.bytes);
    gone.unmapped();
    gone.end();
    assertThat(space.find(PAGE_UNITS, 0)).isEqualTo(Space.NONE);
    assertThat(space.address(space.place(2 * PAGE_UNITS, 0).first)).isEqualTo(BASE);
    space.assertValid();
  }

  @Test
  void endOfTheAddresses_isTheLastPlace_alsoWhereAGapIsLarger() {
    Space small = new Space(BASE, 8 * PAGE, new Pieces(BASE, 8 * PAGE, PAGE), () -> now);
    int first = grow(small, 4 * PAGE_UNITS, 0);
    int _ = grow(small, PAGE_UNITS, 0);
    small.give(first, 0, 1, 0);
    Victim victim = small.carve(4 * PAGE_UNITS, OptionalLong.empty());
    assertThat(victim).isNotNull();
    unmap(small, victim);
    assertThat(small.address(small.place(PAGE_UNITS, 0).first)).isEqualTo(BASE);
  }

  @Test
  void blockThatIsFree_isRefused() {
    int block = grow(space, 1, 0);
    space.give(block, 0, 1, 0);
    assertThatThrownBy(() -> space.give(block, 0, 2, 0))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("expected: a run in use");
  }

  /** However many there are: the last is the end of some array at times. */
  @Test
  void runThatIsNotThere_isRefused() {
    int rest = grow(space, 80 * PAGE_UNITS, 0);
    int last = 0;
    for (int parts = 2; parts <= 80; parts++) {
      last = Math.max(last, space.cut(rest, space.units(rest) - PAGE_UNITS));
      if (parts < 10) {
        continue; // numbers of runs that have been
      }
      for (int none : new int[] {-1, last + 1, Integer.MAX_VALUE}) {
        assertThatThrownBy(() -> space.give(none, 0, 1, 0))
            .isInstanceOf(IllegalStateException.class)
            .hasMessage("run: " + none + " (expected: a run in use)");
      }
    }
  }

  /** Each is a free run by itself, and nothing was taken from a free one before. */
  @Test
  void partsOfOneBlock_areFreedInAnyOrder_andComeTogether() {
    List<Integer> parts = new ArrayList<>();
    parts.add(grow(space, 100 * PAGE_UNITS, 0));
    while (parts.size() < 100) {
      int first = parts.getFirst();
      parts.add(space.cut(first, space.units(first) - PAGE_UNITS));
    }
    for (int odd = 99; odd > 0; odd -= 2) {
      now = odd;
      space.give(parts.get(odd), 0, odd, AgeList.NOW);
    }
    space.assertValid();
    assertThat(space.find(2 * PAGE_UNITS, 0)).as("no two are beside each other").isNegative();
    for (int even = 0; even < 100; even += 2) {
      space.give(parts.get(even), 0, even, AgeList.NOW);
    }
    space.assertValid();
    assertThat(space.find(100 * PAGE_UNITS, 0)).isNotEqualTo(Space.NONE);
  }

  @Test
  void anyProgram_keepsItsPromises() {
    for (long seed = SEED; seed < SEED + SEEDS; seed++) {
      Model model = new Model(new SplittableRandom(seed));
      try {
        for (int i = 0; i < OPERATIONS; i++) {
          model.step();
          if (i % 128 == 0) {
            model.check();
          }
        }
      } catch (AssertionError | RuntimeException e) {
        throw new AssertionError(
            "rerun with -Dcuvette.seed=%d -Dcuvette.seeds=1".formatted(seed), e);
      }
    }
  }

  private static int grow(Space space, long units, int tag) {
    Growth growth = space.begin(space.place(units, tag), units);
    map(space, growth);
    space.publish(growth);
    return growth.block();
  }

  private static void map(Space space, Growth growth) {
    long _ =
        growth.eachHole((at, bytes) -> {
          space.pieces.reserve(at, bytes);
          for (long piece = at; piece < at + bytes; ) {
            long size = at + bytes - piece >= 4 * PAGE ? 4 * PAGE : PAGE;
            space.pieces.add(piece, size);
            piece += size;
          }
          return bytes;
        });
  }

  private static void unmap(Space space, Victim victim) {
    space.pieces.remove(victim.address, victim.bytes);
    space.unmapped(victim);
  }

  /** What is in use, and which tag each piece of free memory may have. */
  private static final class Model {
    private static final int TAGS = 4;

    private final Space space =
        new Space(BASE, 1L << 36, new Pieces(BASE, 1L << 36, PAGE), () -> 0);
    private final SplittableRandom random;
    private final List<Integer> live = new ArrayList<>();
    private final TreeMap<Long, Long> used = new TreeMap<>();
    private final long[] sequences = new long[TAGS];
    private long sequence;

    Model(SplittableRandom random) {
      this.random = random;
      for (int tag = 1; tag < TAGS; tag++) {
        space.addTag(tag);
      }
    }

    void step() {
      int choice = random.nextInt(100);
      if (choice < 45) {
        allocate();
      } else if (choice < 90) {
        free();
      } else if (choice < 95) {
        int tag = 1 + random.nextInt(TAGS - 1);
        space.done(tag, sequences[tag] - random.nextInt(3));
      } else {
        release();
      }
    }

    private long units() {
      int kind = random.nextInt(10);
      return 1 + random.nextLong(kind < 6 ? 200 : kind < 9 ? PAGE_UNITS : 9 * PAGE_UNITS);
    }

    private void allocate() {
      long units = units();
      int tag = random.nextInt(TAGS);
      int run = space.find(units, tag);
      if (run != Space.NONE) {
        space.take(run, units);
      } else {
        Growth growth = space.begin(space.place(units, tag), units);
        if (random.nextInt(8) == 0) {
          growth.abort();
          return;
        }
        map(space, growth);
        space.publish(growth);
        run = growth.block();
      }
      long from = space.address(run);
      long to = from + (units << Space.UNIT_SHIFT);
      assertThat(space.units(run)).isEqualTo(units);
      var before = used.lowerEntry(to);
      assertThat(before == null || before.getValue() <= from).as("no overlap").isTrue();
      used.put(from, to);
      live.add(run);
    }

    private void free() {
      if (live.isEmpty()) {
        return;
      }
      int at = random.nextInt(live.size());
      int run = live.get(at);
      live.set(at, live.getLast());
      live.removeLast();
      used.remove(space.address(run));
      int tag = random.nextInt(TAGS);
      sequences[tag] = ++sequence;
      space.give(run, tag, sequence, AgeList.NOW);
    }

    private void release() {
      Victim victim = space.carve(1 + random.nextLong(8 * PAGE_UNITS), OptionalLong.empty());
      if (victim == null) {
        return;
      }
      var before = used.lowerEntry(victim.address + victim.bytes);
      assertThat(before == null || before.getValue() <= victim.address).as("unused").isTrue();
      if (random.nextInt(4) == 0) {
        space.restore(victim);
      } else {
        unmap(space, victim);
      }
    }

    void check() {
      space.assertValid();
      long units = 0;
      for (var block : used.entrySet()) {
        units += (block.getValue() - block.getKey()) >>> Space.UNIT_SHIFT;
      }
      for (int tag = 0; tag < TAGS; tag++) {
        units += space.freeUnits(tag);
      }
      assertThat(units).as("used + free = mapped").isEqualTo(space.mappedUnits());
    }
  }
}
