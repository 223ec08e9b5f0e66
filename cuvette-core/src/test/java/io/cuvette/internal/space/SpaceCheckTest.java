package io.cuvette.internal.space;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.OptionalLong;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** What the other tests of a space rely on being found where it is wrong. */
class SpaceCheckTest {
  private static final long PAGE = 2L << 20;
  private static final long PAGE_UNITS = PAGE >>> Space.UNIT_SHIFT;
  private static final long BASE = 1L << 40;
  private static final long BYTES = 1L << 30;

  private final Space space = new Space(BASE, BYTES, new Pieces(BASE, BYTES, PAGE), () -> 0);

  /** A block in use, a hole, another block, a free run, the last block, and a hole again. */
  private final int first = grow(PAGE_UNITS);

  private final int hole = grow(PAGE_UNITS);
  private final int used = grow(2 * PAGE_UNITS);
  private final int free = grow(3 * PAGE_UNITS);

  SpaceCheckTest() {
    int _ = grow(PAGE_UNITS);
    space.give(hole, Space.DONE, 0, 0);
    Victim victim = space.carve(PAGE_UNITS, OptionalLong.empty());
    space.pieces.remove(victim.address, victim.bytes);
    space.unmapped(victim);
    space.give(free, Space.DONE, 0, 0);
  }

  private int grow(long units) {
    Growth growth = space.begin(space.place(units, Space.DONE), units);
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

  private void wrong(String what, Consumer<Space> change) {
    change.accept(space);
    assertThatThrownBy(space::assertValid)
        .isInstanceOf(AssertionError.class)
        .hasMessageStartingWith(what + " ")
        .hasMessageEndingWith(" is wrong");
  }

  @Test
  void spaceThatIsRight_isValid() {
    assertThatCode(space::assertValid).doesNotThrowAnyException();
  }

  @Test
  void firstRunElsewhere_isFound() {
    wrong(
        "the first run",
        of -> {
          of.blocks.recycle(first);
          int _ = of.blocks.create(BASE + PAGE, PAGE_UNITS, 0, of.blocks.chunk(used));
        });
  }

  @Test
  void runWithoutSize_isFound() {
    wrong(
        "the size of run",
        of -> {
          of.blocks.recycle(first);
          int _ = of.blocks.create(BASE, 0, 0, of.blocks.chunk(used));
        });
  }

  @Test
  void neighbourThatDoesNotKnowIt_isFound() {
    wrong(
        "the neighbours of run",
        of -> {
          of.blocks.recycle(of.blocks.create(BASE + 2 * PAGE, PAGE_UNITS, 0, Space.DONE));
          of.blocks.recycle(used);
        });
  }

  @Test
  void neighbourElsewhere_isFound() {
    wrong(
        "the end of run",
        of -> {
          int _ = of.blocks.cut(used, 1, 0);
        });
  }

  @Test
  void neighboursThatWereNotMerged_areFound() {
    wrong(
        "the merging of run",
        of -> {
          int _ = of.blocks.cut(free, PAGE_UNITS, Space.UNIT_SHIFT);
        });
  }

  @Test
  void holeThatIsNotInItsPlace_isFound() {
    wrong("the place of hole", of -> of.blocks.base(hole, 5));
  }

  @Test
  void holeWithMemory_isFound() {
    wrong("hole", of -> of.pieces.add(BASE + PAGE, PAGE));
  }

  @Test
  void holeThatIsNotListed_isFound() {
    wrong("the number of holes", of -> of.holes.remove(of.hole(of.holes() - 1)));
  }

  @Test
  void freeRunThatIsNotCounted_isFound() {
    wrong("the free units of tag", of -> of.blocks.chunk(first, Space.DONE));
  }

  @Test
  void freeRunThatIsNotIndexed_isFound() {
    wrong("the index of tag", of -> of.index(Space.DONE).remove(free));
  }

  @Test
  void freeRunThatHasNoAge_isFound() {
    wrong("the list by age", of -> of.aged.remove(free));
  }

  @Test
  void freeRunWithoutMemory_isFound() {
    wrong("the memory of free run", of -> of.pieces.remove(BASE + 5 * PAGE, PAGE));
  }
}
