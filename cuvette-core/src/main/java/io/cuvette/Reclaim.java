package io.cuvette;

import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Runs the garbage collector for forgotten buffers, at most twice a second in the whole process.
 * Thread-safe.
 */
final class Reclaim {
  private static final long APART_NANOS = 500_000_000L;
  private static final long PATIENCE_MILLIS = 200;
  private static final long QUIET_MILLIS = 10;
  private static final AtomicLong LAST = new AtomicLong(System.nanoTime() - APART_NANOS);

  private Reclaim() {}

  /** Collects, waits a bounded time for what was found, and takes it back. */
  static void collect(LeakTracker leaks) {
    @Nullable ReferenceQueue<Object> queue = leaks.queue;
    if (queue == null) {
      return;
    }
    long last = LAST.get();
    long now = System.nanoTime();
    if (now - last >= APART_NANOS && LAST.compareAndSet(last, now)) {
      System.gc();
      await(leaks, queue);
    }
    leaks.drain();
  }

  /** References are queued one by one, by a thread of their own, some time after the collection. */
  private static void await(LeakTracker leaks, ReferenceQueue<Object> queue) {
    try {
      Reference<?> next = queue.remove(PATIENCE_MILLIS);
      while (next != null) {
        leaks.found(next);
        next = queue.remove(QUIET_MILLIS);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
