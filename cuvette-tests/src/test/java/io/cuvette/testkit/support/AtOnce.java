package io.cuvette.testkit.support;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.function.IntConsumer;

/** Runs something on several threads at once, and keeps what they throw. Thread-safe. */
public final class AtOnce {
  private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();

  /** Starts one thread. */
  public Thread start(Runnable body) {
    return Thread.ofPlatform()
        .start(() -> {
          try {
            body.run();
          } catch (Throwable e) {
            failures.add(e);
          }
        });
  }

  /** Runs on as many threads, each with its number, until all have ended; none may throw. */
  public void run(int threads, IntConsumer body) throws InterruptedException {
    CountDownLatch begin = new CountDownLatch(1);
    List<Thread> all = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      int number = i;
      all.add(
          start(() -> {
            Latches.await(begin);
            body.accept(number);
          }));
    }
    begin.countDown();
    for (Thread thread : all) {
      thread.join();
    }
    assertNoFailures();
  }

  /** No thread has thrown so far. */
  public void assertNoFailures() {
    assertThat(failures).isEmpty();
  }
}
