package io.cuvette.testkit.races;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Runs pairs of tasks, the two of a pair at once, on the caller's thread and one beside it. Both
 * stay on their processors from pair to pair, which waking a thread for each would not allow.
 */
final class Duel {
  private static final int SPINS = 2_000;

  /**
   * Two tasks.
   *
   * @param offset how many steps the second starts later, or the first if it is negative
   */
  record Pair(Runnable first, Runnable second, int offset) {}

  private final List<Pair> pairs;
  private final AtomicInteger firstAt = new AtomicInteger(-1);
  private final AtomicInteger secondAt = new AtomicInteger(-1);

  private Duel(List<Pair> pairs) {
    this.pairs = pairs;
  }

  /** Runs all pairs, one after the other; returns when all are done. */
  static void run(List<Pair> pairs) throws InterruptedException {
    Duel duel = new Duel(pairs);
    CountDownLatch done = new CountDownLatch(1);
    Thread.ofPlatform()
        .daemon()
        .name("closes beside: " + Thread.currentThread().getName())
        .start(() -> {
          duel.second();
          done.countDown();
        });
    duel.first();
    done.await();
  }

  private void first() {
    for (int i = 0; i < pairs.size(); i++) {
      meet(firstAt, secondAt, i);
      spin(-pairs.get(i).offset);
      pairs.get(i).first.run();
    }
    firstAt.set(pairs.size());
  }

  private void second() {
    for (int i = 0; i < pairs.size(); i++) {
      meet(secondAt, firstAt, i);
      spin(pairs.get(i).offset);
      pairs.get(i).second.run();
    }
    secondAt.set(pairs.size());
  }

  /** Waits until the other is here too. */
  @SuppressWarnings("ThreadPriorityCheck") // there may be fewer processors than threads
  private static void meet(AtomicInteger mine, AtomicInteger other, int at) {
    mine.set(at);
    for (int i = 0; other.get() < at; i++) {
      if (i < SPINS) {
        Thread.onSpinWait();
      } else {
        Thread.yield();
      }
    }
  }

  private static void spin(int steps) {
    for (int i = 0; i < steps; i++) {
      Thread.onSpinWait();
    }
  }
}
