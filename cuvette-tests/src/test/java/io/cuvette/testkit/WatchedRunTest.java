package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What is said of a run that does not end in time. */
@Tag("simulated")
class WatchedRunTest {
  private static final Duration LIMIT = Duration.ofMillis(50);

  private final CountDownLatch waiting = new CountDownLatch(1);
  private final CountDownLatch end = new CountDownLatch(1);
  private final ThreadGroup group = new ThreadGroup("watched");

  private void waitForTheEnd() {
    waiting.countDown();
    try {
      end.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void ignoreInterrupts() {
    waiting.countDown();
    while (end.getCount() > 0) {
      boolean _ = Thread.interrupted();
      Thread.onSpinWait();
    }
  }

  /** The limit is over as soon as the run waits. */
  private boolean isOver(Thread run, Duration limit) throws InterruptedException {
    if (limit.equals(LIMIT)) {
      waiting.await();
      return false;
    }
    return run.join(limit);
  }

  @Test
  void runThatHangs_isDescribedOnce_withTheOtherThreadsInTheLibrary() throws Exception {
    CountDownLatch besides = new CountDownLatch(1);
    Thread beside =
        Thread.ofPlatform()
            .daemon()
            .name("beside")
            .start(() -> ignoreInterruptsUntilTheEnd(besides));
    besides.await();

    WatchedRun.Outcome outcome = WatchedRun.of(this::waitForTheEnd, group, LIMIT, this::isOver);
    end.countDown();
    beside.join();

    String hung = String.valueOf(outcome.hung());
    assertThat(outcome.thrown()).isNull();
    assertThat(hung)
        .startsWith("no end within 50 ms, ended when interrupted\n\"watched\" ")
        .containsOnlyOnce("\"watched\" ")
        .contains("\"beside\" ", "WatchedRunTest.ignoreInterruptsUntilTheEnd")
        .doesNotContain("\"" + Thread.currentThread().getName() + "\" ")
        .doesNotContain("\"Finalizer\" ", "\"Reference Handler\" ");
  }

  private void ignoreInterruptsUntilTheEnd(CountDownLatch begun) {
    begun.countDown();
    while (end.getCount() > 0) {
      Thread.onSpinWait();
    }
  }

  @Test
  void runThatIgnoresInterrupts_isLeft() throws Exception {
    AtomicBoolean isAsked = new AtomicBoolean();
    WatchedRun.Outcome outcome =
        WatchedRun.of(
            this::ignoreInterrupts,
            new ThreadGroup("ignoring"),
            LIMIT,
            (run, limit) -> {
              isAsked.set(!limit.equals(LIMIT));
              return isAsked.get() ? false : isOver(run, limit);
            });
    end.countDown();
    assertThat(isAsked).isTrue();
    assertThat(outcome.hung()).startsWith("no end within 50 ms, ignores interrupts\n");
  }

  @Test
  void runThatFails_hasItsError() throws Exception {
    IllegalStateException failure = new IllegalStateException("wrong");
    WatchedRun.Outcome outcome =
        WatchedRun.of(
            () -> {
              throw failure;
            },
            group,
            Duration.ofSeconds(60),
            Thread::join);
    assertThat(outcome.thrown()).isSameAs(failure);
    assertThat(outcome.hung()).isNull();
  }
}
