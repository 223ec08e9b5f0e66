package io.cuvette.internal.lifetime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.base.Await;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The end is left to the last use by code outside of Java, and comes once. */
@Timeout(60)
class ForeignUsersTest {
  private static final int TRIES = 10;

  private final ForeignUsers users = new ForeignUsers();
  private final AtomicInteger ends = new AtomicInteger();

  @Test
  void endIsLeft_toTheLastUse_andNoneBeginsAfterIt() {
    users.enter();
    users.enter();
    assertThat(users.leaveEnd(ends::incrementAndGet)).isTrue();
    assertThatThrownBy(users::enter)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("Cuda is closed");
    users.leave();
    assertThat(ends).hasValue(0);
    users.leave();
    assertThat(ends).hasValue(1);
    assertThatThrownBy(users::enter).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void withoutAUse_theEndIsTheCallers() {
    users.enter();
    users.leave();
    assertThat(users.leaveEnd(ends::incrementAndGet)).isFalse();
    assertThatThrownBy(users::enter).isInstanceOf(IllegalStateException.class);
    assertThat(ends).as("the caller ends it").hasValue(0);
  }

  /** What is left of it is a matter of a moment. */
  @Test
  void useThatIsBeingGivenBack_isWaitedFor() throws InterruptedException {
    users.awaitReturns();
    users.enter();
    users.awaitReturns();
    users.beginReturn();
    Thread waiting = waitingThread();
    for (int i = 0; i < TRIES && !waiting.isAlive(); i++) {
      waiting = waitingThread(); // its wait is bounded, and this thread may have looked too late
    }
    assertThat(waiting.isAlive()).isTrue();
    users.leaveReturned();
    waiting.join();
    assertThat(users.leaveEnd(ends::incrementAndGet)).as("it is counted no more").isFalse();
  }

  private Thread waitingThread() {
    Thread waiting = Thread.ofPlatform().start(users::awaitReturns);
    Await.until(() -> waiting.getState() == Thread.State.TIMED_WAITING || !waiting.isAlive());
    return waiting;
  }

  @Test
  void endThatFails_isToldToTheLastUse_whichIsOver() {
    users.enter();
    users.beginReturn();
    Runnable failing =
        () -> {
          ends.incrementAndGet();
          throw new IllegalStateException("on purpose");
        };
    assertThat(users.leaveEnd(failing)).isTrue();
    assertThatThrownBy(users::leaveReturned).hasMessage("on purpose");
    long quickest = Long.MAX_VALUE;
    for (int i = 0; i < TRIES && quickest >= Ending.PATIENCE_NANOS; i++) {
      long start = System.nanoTime();
      users.awaitReturns();
      quickest = Math.min(quickest, System.nanoTime() - start);
    }
    assertThat(quickest).as("nothing is waited for").isLessThan(Ending.PATIENCE_NANOS);
    assertThat(ends).hasValue(1);
  }
}
