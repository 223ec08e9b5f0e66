package io.cuvette.sim.internal.base;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Free ranges, and those of a file, against a set of all that is free. */
class GapsTest {
  private static final int UNITS = 64;
  private static final int STEPS = 400;
  private static final long PAGE = FileExtents.PAGE;

  private static Extent range(Random random) {
    int from = random.nextInt(UNITS);
    return new Extent(from, 1 + random.nextInt(UNITS - from));
  }

  private static BitSet set(List<Extent> extents) {
    BitSet set = new BitSet();
    extents.forEach(each -> set.set((int) each.offset(), (int) each.end()));
    return set;
  }

  @Test
  void whatOfARangeIsFree_isThatAlone_inOrder() {
    Random random = new Random(5);
    for (long boundary : new long[] {Gaps.UNBOUNDED, 8}) {
      Gaps gaps = new Gaps(boundary);
      BitSet free = new BitSet();
      for (int step = 0; step < STEPS; step++) {
        Extent range = range(random);
        gaps.remove(range);
        free.clear((int) range.offset(), (int) range.end());
        if (random.nextBoolean()) {
          Extent whole = boundary == 8 ? new Extent(range.offset(), 1) : range;
          gaps.add(whole);
          free.set((int) whole.offset(), (int) whole.end());
        }
        assertThat(set(gaps.all())).isEqualTo(free);
        Extent asked = range(random);
        BitSet inside = free.get(0, (int) asked.end());
        inside.clear(0, (int) asked.offset());
        List<Extent> found = gaps.in(asked);
        assertThat(set(found)).isEqualTo(inside);
        assertThat(found)
            .allMatch(each -> each.byteSize() > 0)
            .isSortedAccordingTo((one, other) -> Long.compare(one.offset(), other.offset()));
        assertThat(found.stream().mapToLong(Extent::byteSize).sum())
            .isEqualTo(inside.cardinality());
      }
    }
  }

  @Test
  void smallestThatIsLargeEnough_isTaken_theOldestOfSeveral() {
    Gaps gaps = new Gaps(Gaps.UNBOUNDED);
    for (Extent each :
        List.of(new Extent(0, 9), new Extent(40, 4), new Extent(20, 4), new Extent(50, 2))) {
      gaps.add(each);
    }
    assertThat(gaps.largest()).isEqualTo(9);
    assertThat(gaps.smallest(3)).isEqualTo(new Extent(40, 4));
    assertThat(gaps.smallest(3, each -> each.offset() < 40)).isEqualTo(new Extent(20, 4));
    assertThat(gaps.take(3)).isEqualTo(new Extent(40, 3));
    assertThat(gaps.take(10)).isNull();
    Gaps copy = gaps.copy();
    gaps.remove(new Extent(0, UNITS));
    assertThat(gaps.all()).isEmpty();
    assertThat(gaps.largest()).isZero();
    assertThat(copy.take(9)).isEqualTo(new Extent(0, 9));
  }

  @Test
  void rangesOfAFile_areUsedAgain_andItEndsWithTheLastThatIsUsed() {
    FileExtents extents = new FileExtents();
    Extent first = extents.reserve(1);
    Extent second = extents.reserve(PAGE + 1);
    Extent third = extents.reserve(PAGE);
    assertThat(List.of(first, second, third))
        .containsExactly(
            new Extent(0, PAGE), new Extent(PAGE, 2 * PAGE), new Extent(3 * PAGE, PAGE));
    assertThat(extents.release(second)).as("the last is used").isEqualTo(4 * PAGE);
    assertThat(extents.largestFree()).isEqualTo(2 * PAGE);
    assertThat(extents.reserve(PAGE)).isEqualTo(new Extent(PAGE, PAGE));
    assertThat(extents.reserve(2 * PAGE)).isEqualTo(new Extent(4 * PAGE, 2 * PAGE));
    assertThat(extents.release(new Extent(4 * PAGE, 2 * PAGE))).isEqualTo(4 * PAGE);
    assertThat(extents.release(third)).as("with the gap before it").isEqualTo(2 * PAGE);
    assertThat(extents.largestFree()).isZero();
    assertThat(extents.release(first)).isEqualTo(2 * PAGE);
    assertThat(extents.release(new Extent(PAGE, PAGE))).isZero();
    assertThat(Objects.requireNonNull(extents.reserve(9)).offset()).isZero();
  }

  @Test
  void neighboursOnBothSidesOfABoundary_areTwo_whicheverComesFirst() {
    Extent below = new Extent(80, 20);
    Extent above = new Extent(100, 20);
    for (List<Extent> ranges : List.of(List.of(below, above), List.of(above, below))) {
      Gaps bounded = new Gaps(100);
      ranges.forEach(range -> assertThat(bounded.add(range)).isEqualTo(range));
      assertThat(bounded.all()).containsExactly(below, above);
      assertThat(bounded.largest()).isEqualTo(20);
    }
  }
}
