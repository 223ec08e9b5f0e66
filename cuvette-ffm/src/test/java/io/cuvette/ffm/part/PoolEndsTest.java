package io.cuvette.ffm.part;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Pools end one at a time, beside no wait if that can be had. */
@Timeout(60)
class PoolEndsTest {
  private static final int THREADS = 8;
  private static final int ROUNDS = 2_000;

  private final PoolEnds ends = new PoolEnds();
  private final AtomicInteger waiting = new AtomicInteger();
  private final AtomicInteger ending = new AtomicInteger();
  private final AtomicInteger met = new AtomicInteger();

  @Test
  void poolsThatEnd_meetNeitherEachOtherNorShortWaits() throws Exception {
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      boolean waits = i % 2 == 0;
      threads.add(
          Thread.ofVirtual()
              .start(() -> {
                for (int round = 0; round < ROUNDS; round++) {
                  if (waits) {
                    await();
                  } else {
                    end();
                    make();
                  }
                }
              }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(met).hasValue(0);
  }

  private void await() {
    long stamp = ends.beginWait();
    waiting.incrementAndGet();
    count(ending.get() != 0);
    waiting.decrementAndGet();
    ends.endWait(stamp);
    Thread.yield(); // there is a moment at which nobody waits
  }

  private void end() {
    long stamp = ends.beginDestroying();
    count(stamp != 0 && waiting.get() != 0);
    count(stamp != 0 && ending.incrementAndGet() != 1);
    if (stamp != 0) {
      ending.decrementAndGet();
    }
    ends.endDestroying(stamp);
  }

  private void make() {
    ends.beginMaking();
    count(ending.get() != 0);
    ends.endMaking();
  }

  private void count(boolean wrong) {
    if (wrong) {
      met.incrementAndGet();
    }
  }

  /** Where nobody waits, nobody begins to before the pool is gone. */
  @Test
  void poolThatEnds_isAlone() throws Exception {
    long stamp = ends.beginDestroying();
    assertThat(stamp).isNotZero();
    CountDownLatch begun = new CountDownLatch(1);
    Thread waits =
        Thread.ofPlatform()
            .start(() -> {
              long wait = ends.beginWait();
              begun.countDown();
              ends.endWait(wait);
            });
    while (waits.getState() == Thread.State.RUNNABLE) {
      assertThat(begun.getCount()).isOne();
    }
    assertThat(begun.getCount()).isOne();
    ends.endDestroying(stamp);
    waits.join();
    assertThat(begun.getCount()).isZero();
  }

  @Test
  void waitThatLasts_keepsNoPool_andNoOtherWait() throws Exception {
    long wait = ends.beginWait();
    CountDownLatch destroyed = new CountDownLatch(1);
    Thread other =
        Thread.ofPlatform()
            .start(() -> {
              ends.endDestroying(ends.beginDestroying());
              destroyed.countDown();
            });
    ends.endWait(ends.beginWait()); // while the other one looks for its moment, or after
    assertThat(destroyed.await(30, TimeUnit.SECONDS)).isTrue();
    other.join();
    ends.endWait(wait);
  }

  @Test
  void interruptedThread_destroysAsAnyOther() {
    long wait = ends.beginWait();
    Thread.currentThread().interrupt();
    try {
      ends.endDestroying(ends.beginDestroying());
    } finally {
      ends.endWait(wait);
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  /** Virtual threads that only yield would keep the carriers from the thread they wait for. */
  @Test
  void interruptedVirtualThreads_leaveTheirCarriersToTheOneInside() throws Exception {
    int many = 4 * Runtime.getRuntime().availableProcessors();
    CountDownLatch waiting = new CountDownLatch(many);
    CountDownLatch made = new CountDownLatch(many);
    ends.beginMaking();
    for (int i = 0; i < many; i++) {
      Thread.startVirtualThread(() -> {
        Thread.currentThread().interrupt();
        waiting.countDown();
        ends.beginMaking();
        ends.endMaking();
        made.countDown();
      });
    }
    assertThat(waiting.await(30, TimeUnit.SECONDS)).as("all wait").isTrue();
    Thread.startVirtualThread(ends::endMaking);
    assertThat(made.await(30, TimeUnit.SECONDS)).as("all were let in").isTrue();
  }
}
