package io.cuvette.internal.base;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class SpinLockTest {
  private final SpinLock lock = new SpinLock();

  /** Plain fields: only the lock keeps them right. */
  private long left;

  private long right;

  @Test
  void tryLock_failsWhileLocked() {
    assertThat(lock.isLocked()).isFalse();
    assertThat(lock.tryLock()).isTrue();
    assertThat(lock.tryLock()).isFalse();
    assertThat(lock.isLocked()).isTrue();
    lock.unlock();
    assertThat(lock.tryLock()).isTrue();
  }

  @Test
  void platformThreads_excludeEachOther() throws InterruptedException {
    incrementBy(8, 50_000, Thread.ofPlatform().factory());
  }

  @Test
  void thousandsOfVirtualThreads_excludeEachOther() throws InterruptedException {
    incrementBy(4000, 100, Thread.ofVirtual().factory());
  }

  @Test
  void waitingThread_getsTheLockAfterALongHold() throws InterruptedException {
    lock.lock();
    Thread waiter = Thread.ofPlatform().start(this::increment);
    while (waiter.isAlive() && waiter.getState() != Thread.State.TIMED_WAITING) {
      Thread.onSpinWait();
    }
    assertThat(left).isZero();
    lock.unlock();
    waiter.join();
    assertThat(left).isEqualTo(1);
  }

  @Test
  void interruptedWaiter_waitsOnAndStaysInterrupted() throws InterruptedException {
    lock.lock();
    boolean[] interrupted = new boolean[1];
    CountDownLatch started = new CountDownLatch(1);
    Thread waiter =
        Thread.ofVirtual()
            .start(() -> {
              Thread.currentThread().interrupt();
              started.countDown();
              increment();
              interrupted[0] = Thread.currentThread().isInterrupted();
            });
    started.await();
    left = 10;
    lock.unlock();
    waiter.join();
    assertThat(left).isEqualTo(11);
    assertThat(interrupted[0]).isTrue();
  }

  private void incrementBy(int threads, int times, ThreadFactory factory)
      throws InterruptedException {
    List<Thread> running = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      Thread thread =
          factory.newThread(() -> {
            for (int j = 0; j < times; j++) {
              increment();
            }
          });
      thread.start();
      running.add(thread);
    }
    for (Thread thread : running) {
      thread.join();
    }
    assertThat(left).isEqualTo((long) threads * times);
    assertThat(right).isEqualTo(-left);
    assertThat(lock.isLocked()).isFalse();
  }

  private void increment() {
    if (!lock.tryLock()) {
      lock.lock();
    }
    left++;
    right--;
    lock.unlock();
  }
}
