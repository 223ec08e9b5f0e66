package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.lifetime.LeakTracker;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** What is remembered of an allocation, and that what comes back is known to come. */
class LeakTrackerTest {
  /** One of 128 is remembered: none of so many would be once in 10^34 runs. */
  private static final int MANY = 10_000;

  private static LeakTracker tracker(LeakLevel level) {
    return new LeakTracker(level, _ -> {}, () -> {});
  }

  @Test
  void sites_areRememberedFromTheLevelSampledOn() {
    for (LeakLevel level : LeakLevel.values()) {
      LeakTracker tracker = tracker(level);
      int remembered = 0;
      for (int i = 0; i < MANY; i++) {
        remembered += tracker.site() == null ? 0 : 1;
      }
      boolean isAny = level == LeakLevel.SAMPLED || level == LeakLevel.FULL;
      assertThat(tracker.remembersSites()).as("%s", level).isEqualTo(isAny);
      assertThat(remembered > 0).as("%s: %d", level, remembered).isEqualTo(isAny);
      assertThat(remembered == MANY).as("%s", level).isEqualTo(level == LeakLevel.FULL);
    }
  }

  /** Another thread that is short of memory waits for it. */
  @Test
  void whatIsBeingTakenBack_isKnownAsLongAsThatLasts() {
    LeakTracker tracker = tracker(LeakLevel.COUNT);
    List<Boolean> seen = new ArrayList<>();
    Ending ending =
        new Ending(new Object(), null, null) {
          @Override
          public String describe() {
            return "a thing";
          }

          @Override
          public void release() {
            seen.add(tracker.isTakingBack());
          }
        };
    assertThat(tracker.isTakingBack()).isFalse();
    assertThat(tracker.found(ending)).isTrue();
    assertThat(seen).containsExactly(true);
    assertThat(tracker.isTakingBack()).isFalse();
    assertThat(tracker.found(ending)).as("once").isFalse();
    assertThat(tracker.found()).isEqualTo(1);
  }

  private static Ending thing(boolean isLeak) {
    return new Ending(new Object(), null, null) {
      @Override
      public String describe() {
        return "a thing";
      }

      @Override
      public void release() {}

      @Override
      public boolean isLeak() {
        return isLeak;
      }
    };
  }

  @Test
  void whatIsInUse_isReportedOnce_whenItHasEnded() {
    List<LeakReport> reports = new ArrayList<>();
    LeakTracker tracker = new LeakTracker(LeakLevel.COUNT, reports::add, () -> {});
    Ending ending = thing(true);
    ending.hold();
    assertThat(tracker.found(ending)).isFalse();
    assertThat(tracker.drain()).isZero();
    assertThat(tracker.found()).isZero();
    assertThat(reports).isEmpty();
    ending.unhold();
    assertThat(tracker.drain()).isEqualTo(1);
    assertThat(tracker.drain()).isZero();
    assertThat(tracker.found()).isEqualTo(1);
    assertThat(reports).hasSize(1);
  }

  @Test
  void whatIsNoLeak_isTakenBack_andNotReported() {
    List<LeakReport> reports = new ArrayList<>();
    LeakTracker tracker = new LeakTracker(LeakLevel.COUNT, reports::add, () -> {});
    Ending ending = thing(false);
    assertThat(tracker.found(ending)).isTrue();
    assertThat(ending.ended()).isTrue();
    assertThat(tracker.found()).isZero();
    assertThat(reports).isEmpty();
  }

  @Test
  void whatCouldNotBeReleased_isReleasedByTheNextDrain_once() {
    LeakTracker tracker = tracker(LeakLevel.OFF);
    AtomicInteger released = new AtomicInteger();
    Ending ending =
        new Ending(new Object(), null, null) {
          @Override
          public String describe() {
            return "a thing";
          }

          @Override
          public void release() {
            released.incrementAndGet();
          }
        };
    assertThat(ending.end()).isTrue();
    tracker.failed(ending);
    assertThat(tracker.drain()).isZero();
    assertThat(tracker.drain()).isZero();
    assertThat(released).hasValue(1);
  }

  /** Each is reported all the same, the next ones after a listener that threw too. */
  @Test
  void failureOfTheListener_isThrown_andOthersAreReported() {
    List<LeakReport> reports = new ArrayList<>();
    LeakTracker tracker =
        new LeakTracker(
            LeakLevel.COUNT,
            report -> {
              reports.add(report);
              if (reports.size() == 1) {
                throw new IllegalArgumentException("listener");
              }
            },
            () -> {});
    assertThatThrownBy(() -> tracker.found(thing(true))).hasMessage("listener");
    assertThat(tracker.found(thing(true))).isTrue();
    assertThat(tracker.found(thing(true))).isTrue();
    assertThat(reports).hasSize(3);
    assertThat(tracker.found()).isEqualTo(3);
  }

  @Test
  void failureOfTheRelease_isThrown_andTheObjectIsALeakAllTheSame() {
    List<LeakReport> reports = new ArrayList<>();
    LeakTracker tracker = new LeakTracker(LeakLevel.COUNT, reports::add, () -> {});
    Ending ending =
        new Ending(new Object(), null, null) {
          @Override
          public String describe() {
            return "a thing";
          }

          @Override
          public void release() {
            throw new IllegalArgumentException("release");
          }
        };
    assertThatThrownBy(() -> tracker.found(ending)).hasMessage("release");
    assertThat(reports).hasSize(1);
    assertThat(tracker.isTakingBack()).isFalse();
  }

  /** As the collector does: each that it has found is one, and none twice. */
  @Test
  void drain_takesEachBackThatWasFound_andGivesTheirNumber() {
    List<LeakReport> reports = new ArrayList<>();
    LeakTracker tracker = new LeakTracker(LeakLevel.FULL, reports::add, () -> {});
    assertThat(tracker.drain()).isZero();
    List<Ending> all = new ArrayList<>();
    for (int i = 0; i < 5; i++) {
      all.add(found(tracker));
    }
    assertThat(all.getFirst().close(this)).as("by its owner, before").isTrue();
    all.get(1).hold();
    assertThat(tracker.drain()).isEqualTo(3);
    assertThat(tracker.found()).isEqualTo(3);
    assertThat(tracker.drain()).as("while it is in use").isZero();
    all.get(1).unhold();
    assertThat(tracker.drain()).isEqualTo(1);
    assertThat(tracker.drain()).isZero();
    assertThat(tracker.found()).isEqualTo(4);
    assertThat(reports).hasSize(4);
    assertThat(all).allMatch(Ending::ended);
  }

  private static Ending found(LeakTracker tracker) {
    Ending found =
        new Ending(new Object(), tracker.queue, tracker.site()) {
          @Override
          public String describe() {
            return "a thing";
          }

          @Override
          public void release() {}
        };
    assertThat(found.enqueue()).isTrue();
    return found;
  }
}
