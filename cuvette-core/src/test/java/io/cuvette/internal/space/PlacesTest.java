package io.cuvette.internal.space;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Objects;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

/** Where blocks begin beside holes, who may be there, and what is counted of the rest. */
class PlacesTest {
  private static final long PAGE = 2L << 20;
  private static final long PAGE_UNITS = PAGE >>> Space.UNIT_SHIFT;
  private static final long BASE = 1L << 40;
  private static final long BYTES = 1L << 36;

  private final Space space = space();

  private static Space space() {
    Space made = new Space(BASE, BYTES, new Pieces(BASE, BYTES, PAGE), () -> 0);
    made.addTag(1);
    made.addTag(2);
    return made;
  }

  private static int grow(Space space, long units, int tag) {
    return grow(space, space.begin(space.place(units, tag), units));
  }

  private static int grow(Space space, Growth growth) {
    long _ =
        growth.eachHole((at, bytes) -> {
          space.pieces.reserve(at, bytes);
          for (long page = at; page < at + bytes; page += PAGE) {
            space.pieces.add(page, PAGE);
          }
          return bytes;
        });
    space.publish(growth);
    return growth.block();
  }

  /** Makes holes of blocks in use. */
  private static void unmap(Space space, int... blocks) {
    for (int block : blocks) {
      long units = space.units(block);
      space.give(block, Space.DONE, 0, 0);
      Victim victim = Objects.requireNonNull(space.carve(units, OptionalLong.empty()));
      space.pieces.remove(victim.address, victim.bytes);
      space.unmapped(victim);
    }
  }

  /** It needs one page more there; from the start of the hole it would need all of it. */
  @Test
  void blockThatEndsWithFreeMemory_beginsInTheHoleBefore() {
    int hole = grow(space, 3 * PAGE_UNITS, 0);
    int free = grow(space, 2 * PAGE_UNITS, 0);
    int _ = grow(space, PAGE_UNITS, 0);
    unmap(space, hole);
    space.give(free, 1, 1, 0);
    Place place = space.place(3 * PAGE_UNITS, 1);
    assertThat(place.cost).isEqualTo(PAGE_UNITS);
    Growth growth = space.begin(place, 3 * PAGE_UNITS);
    assertThat(growth.address).isEqualTo(BASE + 2 * PAGE);
    assertThat(growth.end()).isEqualTo(BASE + 5 * PAGE);
    assertThat(growth.holeUnits()).isEqualTo(PAGE_UNITS);
    int block = grow(space, growth);
    assertThat(space.address(block)).isEqualTo(BASE + 2 * PAGE);
    assertThat(space.units(block)).isEqualTo(3 * PAGE_UNITS);
    assertThat(space.mappedUnits()).isEqualTo(4 * PAGE_UNITS);
    space.assertValid();
  }

  @Test
  void memoryOfAStream_isPartOfAPlaceForThatStreamAlone() {
    space.give(grow(space, PAGE_UNITS, 1), 1, 7, 0);
    assertThat(space.place(2 * PAGE_UNITS, 1).cost).isEqualTo(PAGE_UNITS);
    assertThat(space.place(2 * PAGE_UNITS, 2).cost).isEqualTo(2 * PAGE_UNITS);
    assertThat(space.place(2 * PAGE_UNITS, 0).cost).isEqualTo(2 * PAGE_UNITS);
  }

  /** What is left of it has a size that no free memory of the stream had before. */
  @Test
  void restOfFreeMemoryThatAPlaceEndsIn_staysWithItsStream() {
    int _ = grow(space, PAGE_UNITS, 0);
    int hole = grow(space, 2 * PAGE_UNITS, 0);
    int free = grow(space, PAGE_UNITS + PAGE_UNITS / 2, 0);
    int _ = grow(space, PAGE_UNITS / 2, 0);
    unmap(space, hole);
    space.give(free, 1, 7, 0);
    int block = grow(space, 3 * PAGE_UNITS, 1);
    assertThat(space.address(block)).isEqualTo(BASE + PAGE);
    assertThat(space.freeUnits(1)).isEqualTo(PAGE_UNITS / 2);
    assertThat(space.freeUnits(Space.DONE)).isZero();
    space.assertValid();
    space.done(1, 6);
    assertThat(space.freeUnits(1)).isEqualTo(PAGE_UNITS / 2);
  }

  @Test
  void holes_areAsManyAsThereAreGaps() {
    int count = 40;
    int[] blocks = new int[2 * count];
    for (int i = 0; i < blocks.length; i++) {
      blocks[i] = grow(space, PAGE_UNITS, 0);
    }
    for (int i = 0; i < blocks.length; i += 2) {
      unmap(space, blocks[i]);
    }
    assertThat(space.holes()).isEqualTo(count + 1);
    space.assertValid();
    for (int i = 0; i < count; i++) {
      assertThat(space.address(grow(space, PAGE_UNITS, 0))).isLessThan(BASE + 2 * count * PAGE);
    }
    assertThat(space.holes()).isEqualTo(1);
    space.assertValid();
  }

  /** However many runs there are: each number of records is the last for which there is room. */
  @Test
  void freeMemoryThatIsUnmappedInPart_isListedInTwo() {
    for (int blocks = 0; blocks < 40; blocks++) {
      Space of = space();
      int _ = grow(of, PAGE_UNITS / 2, 1);
      int free = grow(of, 3 * PAGE_UNITS + PAGE_UNITS / 2, 1);
      int _ = grow(of, PAGE_UNITS, 0);
      of.give(free, 0, 1, 0);
      for (int i = 0; i < blocks; i++) {
        int _ = grow(of, PAGE_UNITS, 0);
      }
      Victim victim = Objects.requireNonNull(of.carve(PAGE_UNITS, OptionalLong.empty()));
      assertThat(victim.address).isEqualTo(BASE + PAGE);
      of.pieces.remove(victim.address, victim.bytes);
      of.unmapped(victim);
      of.assertValid();
      assertThat(of.freeRuns()).as("beside %d blocks", blocks).isEqualTo(2);
    }
  }

  @Test
  void whatIsFree_isCountedByItself_andByWhatCanBeReleased() {
    int first = grow(space, 2 * PAGE_UNITS, 0);
    int _ = grow(space, PAGE_UNITS, 0);
    int second = grow(space, 3 * PAGE_UNITS, 0);
    assertThat(space.freeRuns()).isZero();
    space.give(first, 1, 7, 0);
    assertThat(space.freeRuns()).isEqualTo(1);
    assertThat(space.releasableUnits()).as("a stream may use it").isZero();
    space.give(second, 0, 1, 0);
    assertThat(space.freeRuns()).isEqualTo(2);
    assertThat(space.releasableUnits()).isEqualTo(3 * PAGE_UNITS);

    HeapCensus census = new HeapCensus();
    census.add(space);
    census.add(2 * PAGE, true);
    census.add(PAGE, false);
    assertThat(census.freeRuns).isEqualTo(2);
    assertThat(census.largestFreeBytes).isEqualTo(3 * PAGE);
    assertThat(census.releasableBytes).isEqualTo(3 * PAGE);
    assertThat(census.doneBytes).isEqualTo(3 * PAGE);
    assertThat(census.mappedBytes).isEqualTo(6 * PAGE);
    assertThat(census.orderedBytes).isEqualTo(3 * PAGE);
    assertThat(census.graphBytes).isEqualTo(2 * PAGE);

    space.take(space.find(3 * PAGE_UNITS, 0), 3 * PAGE_UNITS);
    assertThat(space.freeRuns()).isEqualTo(1);
    assertThat(space.releasableUnits()).isZero();
  }

  /** The first page is used by another block too: it cannot be released. */
  @Test
  void pageThatIsFreeInPart_cannotBeReleased() {
    int _ = grow(space, PAGE_UNITS / 2, 0);
    space.give(grow(space, 2 * PAGE_UNITS, 0), 0, 1, 0);
    assertThat(space.freeUnits(Space.DONE)).isEqualTo(2 * PAGE_UNITS + PAGE_UNITS / 2);
    assertThat(space.releasableUnits()).isEqualTo(2 * PAGE_UNITS);
  }

  @Test
  void whatIsNoBlockInUse_isRefused() {
    int used = grow(space, PAGE_UNITS, 0);
    int guard = space.guard();
    int end = space.blocks.end();
    int hole = space.hole(0);
    for (int run : new int[] {Space.NONE, -3, guard, hole, end, end + 1000}) {
      assertThatThrownBy(() -> space.give(run, 0, 1, 0))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("run: %d (expected: a run in use)", run);
    }
    space.give(used, 0, 1, 0);
    space.assertValid();
  }

  @Test
  void tagThatIsNotInUse_isRefused_andChangesNothing() {
    int used = grow(space, PAGE_UNITS, 0);
    for (int tag : new int[] {3, 4, 5, 7, 8, 9, 100}) {
      assertThatThrownBy(() -> space.give(used, tag, 1, 0))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("tag: %d (expected: a tag in use)", tag);
      assertThat(space.freeUnits(tag)).isZero();
    }
    space.give(used, 1, 1, 0);
    space.assertValid();
  }
}
