package io.cuvette;

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
        task.run();
      }
    } while (waiting.decrementAndGet() > 0);
  }
}
