package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.base.BargingLock;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Who waits for a lock stands in nobody's way. */
@Timeout(60)
class BargingLockTest {
  private final BargingLock lock = new BargingLock();

  /**
   * In the queue of the lock a virtual thread without a carrier would keep all behind it waiting.
   */
  @Test
  void whoWaits_isNotInTheQueue() throws InterruptedException {
    CountDownLatch begun = new CountDownLatch(1);
    lock.lock();
    Thread waiting =
        Thread.ofPlatform()
            .start(() -> {
              begun.countDown();
              lock.lock();
              lock.unlock();
            });
    begun.await();
    while (waiting.getState() == Thread.State.RUNNABLE) {
      assertThat(lock.hasQueuedThreads()).isFalse();
    }
    assertThat(lock.hasQueuedThreads()).isFalse();
    lock.unlock();
    waiting.join();
  }

  @Test
  void oneThreadAtATimeHasIt() throws InterruptedException {
    AtomicInteger inside = new AtomicInteger();
    AtomicInteger wrong = new AtomicInteger();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 16; i++) {
      threads.add(
          Thread.ofVirtual()
              .start(() -> {
                for (int round = 0; round < 1000; round++) {
                  lock.lock();
                  try {
                    wrong.addAndGet(inside.incrementAndGet() - 1);
                    inside.decrementAndGet();
                  } finally {
                    lock.unlock();
                  }
                }
              }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(wrong).hasValue(0);
  }

  @Test
  void interruptedThread_getsIt_andStaysInterrupted() {
    Thread.currentThread().interrupt();
    lock.lock();
    lock.unlock();
    assertThat(Thread.interrupted()).isTrue();
  }
}
