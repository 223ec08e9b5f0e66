package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.session.HoldsAndFrees;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Callbacks that hold streams and calls that wait for all streams, one after the other. */
@Timeout(60)
class HoldsAndFreesTest {
  private static final long LONG_NANOS = TimeUnit.HOURS.toNanos(1);
  private static final long SHORT_NANOS = TimeUnit.MILLISECONDS.toNanos(2);
  private static final long HALF_A_SECOND_NANOS = TimeUnit.MILLISECONDS.toNanos(500);
  private static final int TRIES = 10;

  private final HoldsAndFrees holds = new HoldsAndFrees();
  private final AtomicInteger calls = new AtomicInteger();

  /** Whether each of several begins, of which a slow machine can delay some, takes no time. */
  private boolean beginsAtOnce() {
    for (int i = 0; i < TRIES; i++) {
      long start = System.nanoTime();
      holds.beginHold(false, LONG_NANOS);
      long nanos = System.nanoTime() - start;
      holds.endHold();
      if (nanos < HALF_A_SECOND_NANOS) {
        return true;
      }
    }
    return false;
  }

  @Test
  void call_isNotMade_asLongAsAnyCallbackHolds_howeverManyThereAre() {
    for (int holding = 1; holding <= 3; holding++) {
      holds.beginHold(holding > 1, LONG_NANOS);
      assertThat(holds.areHolding()).isTrue();
      assertThat(holds.hasGapWithin(SHORT_NANOS)).isFalse();
      assertThat(holds.free(calls::incrementAndGet, SHORT_NANOS)).isFalse();
    }
    for (int holding = 3; holding > 0; holding--) {
      assertThat(holds.free(calls::incrementAndGet, SHORT_NANOS)).isFalse();
      assertThat(calls).hasValue(0);
      holds.endHold();
    }
    assertThat(holds.areHolding()).isFalse();
    assertThat(holds.hasGapWithin(SHORT_NANOS)).isTrue();
    assertThat(holds.free(calls::incrementAndGet, SHORT_NANOS)).isTrue();
    assertThat(calls).hasValue(1);
  }

  /** Who asked for a gap wants none any more. */
  @Test
  void callback_waitsForNothing_onceNobodyWantsAGap() {
    assertThat(beginsAtOnce()).isTrue();
    assertThat(holds.free(calls::incrementAndGet, LONG_NANOS)).isTrue();
    assertThat(beginsAtOnce()).as("after a call").isTrue();
    assertThat(holds.hasGapWithin(LONG_NANOS)).isTrue();
    assertThat(beginsAtOnce()).as("after a question").isTrue();
    holds.beginHold(true, LONG_NANOS);
    assertThat(holds.free(calls::incrementAndGet, SHORT_NANOS)).isFalse();
    assertThat(holds.hasGapWithin(SHORT_NANOS)).isFalse();
    assertThat(beginsAtOnce()).as("after both were in vain").isTrue();
    holds.endHold();
    assertThat(calls).hasValue(1);
  }

  /** A call that fails is over as well. */
  @Test
  void callThatFails_holdsNobodyUp() {
    IllegalStateException failure = new IllegalStateException("refused");
    assertThat(
            catchThrowable(() -> {
              boolean _ =
                  holds.free(
                      () -> {
                        throw failure;
                      },
                      LONG_NANOS);
            }))
        .isSameAs(failure);
    assertThat(beginsAtOnce()).isTrue();
    assertThat(holds.areHolding()).isFalse();
  }

  /** Within the call itself a callback waits for it, but no longer than it may. */
  @Test
  void callbackThatBeginsDuringACall_waitsSoLongAtMost_andHoldsAllTheSame() {
    boolean isMade =
        holds.free(
            () -> {
              long start = System.nanoTime();
              holds.beginHold(false, 2 * SHORT_NANOS);
              assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(2 * SHORT_NANOS);
              assertThat(holds.areHolding()).isTrue();
              holds.beginHold(true, LONG_NANOS); // it waits for none
              holds.endHold();
              holds.endHold();
              calls.incrementAndGet();
            },
            LONG_NANOS);
    assertThat(isMade).isTrue();
    assertThat(calls).hasValue(1);
    assertThat(holds.areHolding()).isFalse();
  }

  /** Only for one that is still waiting is a second enough. */
  @Test
  void callbackWaitsForACallThatIsMade_longerThanForOneThatWaits() throws InterruptedException {
    Thread[] begins = new Thread[1];
    boolean isMade =
        holds.free(
            () -> {
              begins[0] = Thread.ofPlatform().start(() -> holds.beginHold(false, LONG_NANOS));
              boolean isHeld = Await.until(holds::areHolding, Ending.PATIENCE_NANOS * 5 / 4);
              assertThat(isHeld).as("while the call is made").isFalse();
            },
            LONG_NANOS);
    assertThat(isMade).isTrue();
    begins[0].join();
    assertThat(holds.areHolding()).isTrue();
    holds.endHold();
  }

  /** Not when its patience is at an end. */
  @Test
  void callThatWaitsForAGap_isMadeOnceTheLastCallbackHasReturned() throws InterruptedException {
    holds.beginHold(false, 0);
    Thread call =
        Thread.ofPlatform()
            .daemon()
            .start(() -> assertThat(holds.free(calls::incrementAndGet, LONG_NANOS)).isTrue());
    Await.until(() -> call.getState() == Thread.State.TIMED_WAITING);
    holds.endHold();
    assertThat(call.join(Duration.ofSeconds(30))).isTrue();
    assertThat(calls).hasValue(1);
  }

  /** Whoever waits for callbacks to return finds its interrupt afterwards. */
  @Test
  void interrupt_outlivesTheWaitForAGap() {
    holds.beginHold(false, 0);
    Thread.currentThread().interrupt();
    assertThat(holds.hasGapWithin(TimeUnit.MILLISECONDS.toNanos(100))).isFalse();
    assertThat(Thread.interrupted()).isTrue();
    holds.endHold();
    assertThat(holds.hasGapWithin(0)).isTrue();
  }
}
