package io.cuvette.cli.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** How much threads do in a second together. Stateless. */
final class Rate {
  private Rate() {}

  /** What one thread does so often. */
  @FunctionalInterface
  interface Task {
    void run(int turns);
  }

  /** Turns of all threads in a second: the best of some repetitions. */
  static double best(Best how, List<Task> tasks) {
    try (ExecutorService executor = Executors.newFixedThreadPool(tasks.size())) {
      int turns = how.enough(n -> nanos(tasks, n, executor));
      double least = Double.MAX_VALUE;
      for (int i = 0; i <= how.repetitions() / 2; i++) {
        least = Math.min(least, (double) nanos(tasks, turns, executor));
      }
      return tasks.size() * (double) turns * 1e9 / least;
    }
  }

  /** From the moment all threads are ready to the end of the last. */
  private static long nanos(List<Task> tasks, int turns, ExecutorService executor) {
    CountDownLatch ready = new CountDownLatch(tasks.size());
    CountDownLatch go = new CountDownLatch(1);
    List<CompletableFuture<Void>> done = new ArrayList<>();
    for (Task task : tasks) {
      done.add(
          CompletableFuture.runAsync(
              () -> {
                ready.countDown();
                await(go);
                task.run(turns);
              },
              executor));
    }
    await(ready);
    long start = System.nanoTime();
    go.countDown();
    done.forEach(Rate::join);
    return System.nanoTime() - start;
  }

  /** A failure is what the task threw. */
  private static void join(CompletableFuture<Void> task) {
    try {
      task.join();
    } catch (CompletionException e) {
      throw e.getCause() instanceof RuntimeException cause ? cause : e;
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while measuring", e);
    }
  }
}
