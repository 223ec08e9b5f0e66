package io.cuvette.internal.base;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Waiting for what nobody announces. */
@Timeout(60)
class AwaitTest {
  private final AtomicInteger looks = new AtomicInteger();

  private boolean isThirdLook() {
    return looks.incrementAndGet() == 3;
  }

  @Test
  void condition_isLookedAtUntilItHolds() {
    assertThat(Await.until(this::isThirdLook, Long.MAX_VALUE)).isTrue();
    assertThat(looks).hasValue(3);
    assertThat(Thread.currentThread().isInterrupted()).isFalse();
  }

  @Test
  void withoutPatience_theConditionIsLookedAtOnce() {
    assertThat(Await.until(this::isThirdLook, 0)).isFalse();
    assertThat(looks).hasValue(1);
    assertThat(Await.until(() -> true, 0)).isTrue();
    assertThat(Await.until(() -> false, 1)).isFalse();
  }

  @Test
  void interruptedThread_waitsOn_andKeepsTheInterrupt() {
    Thread.currentThread().interrupt();
    assertThat(Await.until(this::isThirdLook, Long.MAX_VALUE)).isTrue();
    assertThat(Thread.interrupted()).isTrue();
    Thread.currentThread().interrupt();
    assertThat(Await.until(() -> true, 0)).isTrue();
    assertThat(Thread.interrupted()).isTrue();
  }
}
