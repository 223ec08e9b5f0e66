package io.cuvette.sim.internal.pool;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.Gaps;
import io.cuvette.sim.internal.queue.SimDevice;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What is left of frees, which others take pieces of. */
class PoolFreesTest {
  private static final long UNIT = 512;

  private final SimDevice device = new SimDevice(0, 1, 0, 1024);
  private final PoolFrees frees = new PoolFrees();
  private final PoolFree first = free(0, 2);
  private final PoolFree next = free(2, 2);
  private final PoolFree apart = free(8, 4);

  private PoolFree free(int from, int units) {
    return new PoolFree(device.legacy(), at(from, units));
  }

  private static Extent at(int from, int units) {
    return new Extent(from * UNIT, units * UNIT);
  }

  @BeforeEach
  void add() {
    frees.add(first);
    frees.add(next);
    frees.add(apart);
  }

  @Test
  void smallestPieceThatFits_isFound() {
    assertThat(frees.find(UNIT, _ -> true)).isEqualTo(at(0, 1));
    assertThat(frees.find(2 * UNIT, _ -> true)).isEqualTo(at(0, 2));
    assertThat(frees.find(2 * UNIT, free -> free != first)).isEqualTo(at(2, 2));
    assertThat(frees.find(3 * UNIT, _ -> true)).as("two frees").isEqualTo(at(0, 3));
    assertThat(frees.find(3 * UNIT, free -> free != first)).isEqualTo(at(8, 3));
    assertThat(frees.find(5 * UNIT, _ -> true)).isNull();
  }

  /** A free beside what is taken keeps all of its own. */
  @Test
  void freesNextToWhatIsTaken_areWhole() {
    assertThat(frees.take(at(0, 2))).isEqualTo(2 * UNIT);
    assertThat(frees.find(2 * UNIT, _ -> true)).isEqualTo(at(2, 2));
    assertThat(frees.take(at(4, 4))).as("nothing of a free").isZero();
    assertThat(frees.of(at(4, 4))).isEmpty();
    assertThat(frees.of(at(3, 6))).containsExactly(next, apart);
    assertThat(frees.settle(_ -> true)).containsExactly(at(8, 4), at(2, 2));
  }

  @Test
  void middleOfAFree_leavesBothEnds() {
    assertThat(frees.take(at(9, 1))).isEqualTo(UNIT);
    assertThat(apart.byteSize()).isEqualTo(3 * UNIT);
    assertThat(frees.of(at(8, 4))).as("once, though of two pieces").containsExactly(apart);
    assertThat(frees.find(2 * UNIT, free -> free == apart)).isEqualTo(at(10, 2));
    assertThat(frees.find(UNIT, free -> free == apart)).isEqualTo(at(8, 1));
    assertThat(frees.with(new Gaps(Gaps.UNBOUNDED), free -> free == apart).all())
        .containsExactly(at(8, 1), at(10, 2));
    assertThat(frees.settle(free -> free == apart)).containsExactly(at(8, 1), at(10, 2));
  }

  @Test
  void placeOverSeveralFrees_isTakenOfEach() {
    assertThat(frees.of(at(1, 2))).containsExactly(first, next);
    assertThat(frees.take(at(1, 2))).isEqualTo(2 * UNIT);
    assertThat(first.byteSize()).isEqualTo(UNIT);
    assertThat(next.byteSize()).isEqualTo(UNIT);
    assertThat(frees.settle(_ -> true)).containsExactly(at(8, 4), at(3, 1), at(0, 1));
  }

  /** It was allocated again, and freed again on another stream perhaps. */
  @Test
  void partOfAFree_thatIsInALaterOne_isOfTheLaterOneAlone() {
    assertThat(frees.take(at(8, 2))).isEqualTo(2 * UNIT);
    PoolFree later = free(8, 2);
    frees.add(later);
    assertThat(frees.find(UNIT, free -> free == apart)).isEqualTo(at(10, 1));
    assertThat(frees.find(2 * UNIT, free -> free == apart)).isEqualTo(at(10, 2));
    assertThat(frees.find(2 * UNIT, free -> free == later)).isEqualTo(at(8, 2));
    assertThat(frees.settle(free -> free == apart)).containsExactly(at(10, 2));
    assertThat(frees.of(at(8, 4))).containsExactly(later);
    assertThat(frees.settle(free -> free == later)).containsExactly(at(8, 2));
  }

  @Test
  void freeThatIsSettled_orTakenWhole_isNotAskedAboutAgain() {
    assertThat(frees.settle(free -> free == first)).containsExactly(at(0, 2));
    assertThat(frees.take(at(8, 4))).isEqualTo(4 * UNIT);
    AtomicInteger asked = new AtomicInteger();
    assertThat(frees.settle(_ -> asked.incrementAndGet() > 9)).isEmpty();
    assertThat(asked).as("one is left").hasValue(1);
    assertThat(frees.of(at(0, 2))).isEmpty();
  }
}
