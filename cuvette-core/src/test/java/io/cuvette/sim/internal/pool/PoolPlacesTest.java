package io.cuvette.sim.internal.pool;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.sim.internal.base.Extent;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Which gap of a pool an allocation gets: the smallest with memory everywhere, if one has. */
class PoolPlacesTest {
  private static final long STEP = 2L << 20;
  private static final long UNIT = 512;

  private final AtomicLong reserved = new AtomicLong();
  private final PoolSpace space =
      new PoolSpace(STEP, 0, Long.MAX_VALUE, _ -> 64 * STEP - reserved.get(), reserved::addAndGet);

  private Extent take(long bytes) {
    Extent place = Objects.requireNonNull(space.find(space.gaps, bytes));
    space.gaps.remove(place);
    return place;
  }

  @Test
  void gapWithMemory_isTakenBeforeASmallerOneWithout() {
    Extent small = take(STEP);
    take(UNIT);
    take(STEP - UNIT);
    Extent large = take(2 * STEP);
    take(UNIT);
    space.gaps.add(small);
    space.trimTo(0);
    assertThat(reserved).hasValue(4 * STEP);
    space.gaps.add(large);
    assertThat(space.find(space.gaps, UNIT)).isEqualTo(new Extent(large.offset(), UNIT));
    assertThat(reserved).as("nothing is new").hasValue(4 * STEP);
  }

  /** Memory at its front alone does not make a gap better than a smaller one. */
  @Test
  void gapWithMemoryAtItsFrontAlone_isNoBetterThanASmallerOneWithout() {
    Extent small = take(STEP);
    take(STEP);
    Extent large = take(STEP + UNIT);
    take(STEP - UNIT);
    take(UNIT);
    space.gaps.add(small);
    space.gaps.add(large);
    space.trimTo(4 * STEP);
    assertThat(reserved).hasValue(4 * STEP);
    assertThat(space.find(space.gaps, UNIT)).isEqualTo(new Extent(small.offset(), UNIT));
  }

  /** What is idle is where the refused allocation would have been, and its gap is the youngest. */
  @Test
  void refusedAllocation_hasTheIdleSteps() {
    Extent first = take(STEP);
    take(60 * STEP);
    space.gaps.add(first);
    assertThat(space.find(space.gaps, 5 * STEP)).isNull();
    space.growInVain(space.gaps, 5 * STEP);
    assertThat(reserved).hasValue(64 * STEP);
    assertThat(space.find(space.gaps, STEP)).isEqualTo(first);
    assertThat(reserved).hasValue(64 * STEP);
    assertThat(space.find(space.gaps, 4 * STEP)).isEqualTo(new Extent(61 * STEP, 4 * STEP));
  }

  /** What lies behind all allocations is the last to be taken, memory or not. */
  @Test
  void gapWithoutMemory_isTakenBeforeTheEnd() {
    Extent first = take(STEP);
    take(UNIT);
    space.gaps.add(first);
    space.trimTo(0);
    assertThat(reserved).hasValue(STEP);
    assertThat(space.find(space.gaps, UNIT)).isEqualTo(new Extent(0, UNIT));
    assertThat(reserved).hasValue(2 * STEP);
  }

  @Test
  void allocationThatTheDeviceHasNoRoomFor_hasNoPlace_andTakesNothing() {
    take(60 * STEP);
    assertThat(space.find(space.gaps, 4 * STEP + 1)).isNull();
    assertThat(reserved).hasValue(60 * STEP);
    take(4 * STEP);
    assertThat(reserved).hasValue(64 * STEP);
    assertThat(space.find(space.gaps, 1)).isNull();
  }

  @Test
  void allocationThatNoAddressesAreFor_hasNoPlace_andTakesNothing() {
    take(UNIT);
    for (long bytes : new long[] {Long.MAX_VALUE / STEP * STEP, Long.MAX_VALUE}) {
      assertThat(space.find(space.gaps, bytes)).isNull();
      space.growInVain(space.gaps, bytes);
      assertThat(reserved).hasValue(STEP);
    }
  }

  /** Sizes are unsigned for a driver: a negative one is as good as none. */
  @Test
  void limit_isTheNextWholeStep_orNone() {
    long most = Long.MAX_VALUE / STEP * STEP;
    long[][] limits = {
      {1, STEP},
      {STEP - 1, STEP},
      {STEP, STEP},
      {STEP + 1, 2 * STEP},
      {most - STEP, most - STEP},
      {Long.MAX_VALUE - STEP, most},
      {Long.MAX_VALUE - STEP + 1, Long.MAX_VALUE},
      {Long.MAX_VALUE, Long.MAX_VALUE},
      {0, Long.MAX_VALUE},
      {-1, Long.MAX_VALUE},
      {Long.MIN_VALUE, Long.MAX_VALUE}
    };
    for (long[] limit : limits) {
      PoolSpace limited = new PoolSpace(STEP, limit[0], 0, _ -> 0, _ -> {});
      assertThat(limited.limitBytes()).as("limit %d", limit[0]).isEqualTo(limit[1]);
    }
  }
}
