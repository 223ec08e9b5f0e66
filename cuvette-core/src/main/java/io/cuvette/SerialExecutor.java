package io.cuvette;

import io.cuvette.internal.UserFailures;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Runs tasks one after the other, in order, on virtual threads that live only while there is work.
 * Tasks may block. Thread-safe.
 */
final class SerialExecutor implements Executor {
  private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
  private final AtomicInteger waiting = new AtomicInteger();

  @Override
  public void execute(Runnable task) {
    tasks.add(task);
    if (waiting.getAndIncrement() == 0) {
      Thread.ofVirtual().name("cuvette-callbacks").start(this::drain);
    }
  }

  private void drain() {
    do {
      Runnable task = tasks.poll();
      if (task != null) {
        run(task);
      }
    } while (waiting.decrementAndGet() > 0);
  }

  private static void run(Runnable task) {
    try {
      task.run();
    } catch (Throwable e) { // the user's code: the tasks behind it come all the same
      UserFailures.uncaught(e);
    }
  }
}
