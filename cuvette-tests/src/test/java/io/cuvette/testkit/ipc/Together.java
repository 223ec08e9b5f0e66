package io.cuvette.testkit.ipc;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Does the same on several threads at once. Stateless. */
final class Together {
  private Together() {}

  /** Lets threads begin together and each do the work a number of times. */
  static void run(int threads, int rounds, Runnable work) throws InterruptedException {
    CyclicBarrier start = new CyclicBarrier(threads);
    List<Future<?>> all = new ArrayList<>();
    try (ExecutorService executor = Executors.newFixedThreadPool(threads)) {
      for (int i = 0; i < threads; i++) {
        all.add(
            executor.submit(() -> {
              start.await();
              for (int round = 0; round < rounds; round++) {
                work.run();
              }
              return null;
            }));
      }
      for (Future<?> one : all) {
        one.get();
      }
    } catch (ExecutionException e) {
      throw new AssertionError(e.getCause());
    }
  }
}
