package io.cuvette;

import io.cuvette.internal.base.Await;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.IntConsumer;

/** Runs work on several threads at once. Stateless. */
final class OnThreads {
  private OnThreads() {}

  /** Runs work on as many threads, each with its number, and throws what the first threw. */
  static void run(int count, IntConsumer work) {
    Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      int number = i;
      threads.add(
          Thread.ofPlatform()
              .start(() -> {
                try {
                  work.accept(number);
                } catch (RuntimeException | Error e) {
                  failures.add(e);
                }
              }));
    }
    threads.forEach(thread -> Await.until(() -> !thread.isAlive()));
    Throwable first = failures.peek();
    if (first != null) {
      throw new AssertionError("a thread failed: " + first, first);
    }
  }
}
