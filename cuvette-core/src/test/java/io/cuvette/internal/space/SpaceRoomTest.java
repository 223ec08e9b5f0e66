package io.cuvette.internal.space;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

/** The books of a space have room for each step, however full they were before it. */
class SpaceRoomTest {
  private static final long PAGE = 2L << 20;
  private static final int PAGE_UNITS = (int) (PAGE >>> Space.UNIT_SHIFT);
  private static final long BASE = 1L << 40;
  private static final long BYTES = 1L << 36;
  private static final int RECORDS = 70;

  private static Space space(int records) {
    Space space = new Space(BASE, BYTES, new Pieces(BASE, BYTES, PAGE), () -> 0);
    space.addTag(1);
    int last = grow(space, PAGE_UNITS, Space.DONE);
    for (int i = 0; i < records; i++) {
      last = space.cut(last, 1);
    }
    return space;
  }

  private static int grow(Space space, long units, int tag) {
    Growth growth = space.begin(space.place(units, tag), units);
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

  private static void unmap(Space space, Victim victim) {
    space.pieces.remove(victim.address, victim.bytes);
    victim.unmapped();
    victim.end();
  }

  /** The free memory before the block, or behind it, is listed anew. */
  @Test
  void blockBetweenFreeMemory_leavesTheRest_howeverManyRecordsThereAre() {
    for (int records = 0; records < RECORDS; records++) {
      Space space = space(records);
      int done = grow(space, 3L * PAGE_UNITS, Space.DONE);
      int own = grow(space, 2L * PAGE_UNITS, 1);
      space.give(own, 1, 1, 0);
      space.give(done, Space.DONE, 0, 0);
      Place place = space.place(4L * PAGE_UNITS, 1);
      assertThat(place.cost).isZero();
      Growth growth = space.begin(place, 4L * PAGE_UNITS);
      assertThat(space.freeUnits(Space.DONE) + space.freeUnits(1)).isEqualTo(PAGE_UNITS);
      if (records % 2 == 0) {
        space.publish(growth);
      } else {
        growth.abort();
        assertThat(space.freeUnits(Space.DONE) + space.freeUnits(1)).isEqualTo(5 * PAGE_UNITS);
      }
      space.assertValid();
    }
  }

  /** What is left before and behind it has sizes that nothing had before. */
  @Test
  void pagesInTheMiddleOfFreeMemory_areTakenOut_whateverIsLeftOfIt() {
    for (int before = 1; before < PAGE_UNITS; before += before) {
      for (int pages : new int[] {1, 2, 3, 63, 64, 65, 129}) {
        Space space = space(0);
        int first = grow(space, PAGE_UNITS, Space.DONE);
        int rest = space.cut(first, PAGE_UNITS - before);
        int free = grow(space, (pages + 1L) * PAGE_UNITS, Space.DONE);
        space.give(free, Space.DONE, 0, 0);
        space.give(rest, Space.DONE, 0, 0);
        Victim victim = space.carve(PAGE_UNITS, OptionalLong.empty());
        assertThat(victim).isNotNull();
        assertThat(victim.address).isEqualTo(BASE + 2 * PAGE);
        assertThat(space.freeUnits(Space.DONE)).isEqualTo(before + (long) pages * PAGE_UNITS);
        unmap(space, victim);
        space.assertValid();
      }
    }
  }

  @Test
  void holes_areAsManyAsWasUnmapped_alsoIfAllOfItWasTakenOutBefore() {
    Space space = space(0);
    List<Integer> blocks = new ArrayList<>();
    for (int i = 0; i < RECORDS; i++) {
      blocks.add(grow(space, PAGE_UNITS, Space.DONE));
      int _ = grow(space, PAGE_UNITS, Space.DONE);
    }
    int before = space.holes();
    List<Victim> victims = new ArrayList<>();
    for (int block : blocks) {
      space.give(block, Space.DONE, 0, 0);
      victims.add(Objects.requireNonNull(space.carve(PAGE_UNITS, OptionalLong.empty())));
    }
    victims.forEach(victim -> unmap(space, victim));
    assertThat(space.holes()).isEqualTo(before + RECORDS);
    space.assertValid();
  }

  @Test
  void workOfAStreamThatFreedNothing_isDoneWithoutAnyChange() {
    Space space = space(0);
    for (int tag : new int[] {Space.DONE, 1, 2, 3, 4, 1000}) {
      space.done(tag, Long.MAX_VALUE);
    }
    space.assertValid();
    assertThat(space.freeRuns()).isZero();
  }
}
