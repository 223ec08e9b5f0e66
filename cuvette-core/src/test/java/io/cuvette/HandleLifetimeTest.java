package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Whom a thread waits for that needs a handle to be used by nobody else. */
@Timeout(60)
class HandleLifetimeTest {
  private final HandleLifetime handle =
      new HandleLifetime(new Object(), null, null) {
        @Override
        String describe() {
          return "handle";
        }

        @Override
        void release() {}
      };

  /** A capture that began before it is there would be spoilt by its call. */
  @Test
  void threadThatIsAboutToWaitForTheDevice_hasAMomentToComeIntoTheDriver() {
    AtomicLong nanos = new AtomicLong();
    handle.hold();
    handle.await(() -> {
      long start = System.nanoTime();
      handle.awaitOperations(0);
      nanos.set(System.nanoTime() - start);
    });
    handle.unhold();
    assertThat(nanos.get()).isGreaterThanOrEqualTo(TimeUnit.MILLISECONDS.toNanos(10));
    assertThat(handle.waiting()).isZero();
  }
}
