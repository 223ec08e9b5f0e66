package io.cuvette.sim.internal.share;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;

class SharedRingTest {
  private final ProcessId recorder = new ProcessId(17, 4);
  private final SharedRing ring = new SharedRing(Arena.ofAuto().allocate(SharedRing.BYTES, 8));

  @Test
  void recordThatNeverWas_isDone() {
    assertThat(ring.newest()).isZero();
    assertThat(ring.isDone(0)).isTrue();
    assertThat(ring.isDone(1 - SharedRing.ENTRIES)).isTrue();
  }

  @Test
  void record_isDoneOnceItIsSaid_orItsEntryIsAnothers() {
    long number = ring.begin();
    ring.publish(number, recorder);
    assertThat(ring.isDone(number)).isFalse();
    assertThat(ring.recorder(number)).isEqualTo(recorder);
    ring.done(number);
    assertThat(ring.isDone(number)).isTrue();

    long later = number + SharedRing.ENTRIES;
    ring.publish(later, new ProcessId(18, 5));
    assertThat(ring.isDone(later)).isFalse();
    assertThat(ring.isDone(number)).isTrue();
  }

  @Test
  void recordThatIsPublishedLate_isNotTheNewest() {
    long first = ring.begin();
    long second = ring.begin();
    ring.publish(second, recorder);
    ring.publish(first, recorder);
    assertThat(ring.newest()).isEqualTo(second);
  }

  @Test
  void newest_isTheHighestNumberThatWasPublished() {
    long[] numbers = new long[4];
    for (int i = 0; i < 4; i++) {
      numbers[i] = ring.begin();
      assertThat(numbers[i]).isEqualTo(i + 1);
    }
    long highest = 0;
    for (int each : new int[] {1, 0, 3, 2}) {
      ring.publish(numbers[each], recorder);
      highest = Math.max(highest, numbers[each]);
      assertThat(ring.newest()).isEqualTo(highest);
    }
    for (long number : numbers) {
      assertThat(ring.isDone(number)).isFalse();
      ring.done(number);
      assertThat(ring.isDone(number)).isTrue();
    }
  }
}
