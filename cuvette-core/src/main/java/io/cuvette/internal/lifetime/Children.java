package io.cuvette.internal.lifetime;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What a {@code Cuda} has made and not yet taken back, closed last made first, but what pools have
 * lent before all others. Their memory is not among that: it was made and ends like any other.
 * Thread-safe.
 */
public final class Children {
  private static final long LENT = 1L << 62;

  private final Map<Runnable, Long> open = new ConcurrentHashMap<>();
  private final AtomicLong made = new AtomicLong();

  /**
   * Remembers a pool by the step that ends its buffers: these and their views end before the memory
   * under them.
   */
  public void addPool(Runnable endLent) {
    open.put(endLent, LENT + made.getAndIncrement());
  }

  /** Remembers a child by the step that ends it. */
  public void add(Runnable end) {
    open.put(end, made.getAndIncrement());
  }

  public void remove(Runnable end) {
    open.remove(end);
  }

  /** Ends all, and then what was made meanwhile, such as the event that marks a stream's end. */
  public void close(Failures failures) {
    while (!open.isEmpty()) {
      List<Map.Entry<Runnable, Long>> last = new ArrayList<>(open.entrySet());
      last.sort(Map.Entry.<Runnable, Long>comparingByValue(Comparator.reverseOrder()));
      for (var child : last) {
        close(child.getKey(), failures);
      }
    }
  }

  /** With a full stack no other would end either: these are left for the next try. */
  private void close(Runnable child, Failures failures) {
    try {
      child.run();
    } catch (StackOverflowError e) {
      throw e;
    } catch (RuntimeException | Error e) {
      failures.add(e);
      closeAgain(child, e);
    }
    open.remove(child);
  }

  /** At once, as long as there is what it belongs to: nobody else tries what the driver refused. */
  private static void closeAgain(Runnable child, Throwable failure) {
    if (Once.mayBeDone(failure)) {
      return;
    }
    try {
      child.run();
    } catch (RuntimeException | OutOfMemoryError e) {
      Failures.joined(failure, e);
    }
  }
}
