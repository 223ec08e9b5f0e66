package io.cuvette;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What a {@link Cuda} has made and not yet taken back, closed last made first, but pools before all
 * others. Thread-safe.
 */
final class Children {
  private static final long POOLS = 1L << 62;

  private final Map<Runnable, Long> open = new ConcurrentHashMap<>();
  private final AtomicLong made = new AtomicLong();

  /** Pools end first: their buffers and the views of these end before the memory under them. */
  void addPool(Runnable end) {
    open.put(end, POOLS + made.getAndIncrement());
  }

  /** Remembers a child by the step that ends it. */
  void add(Runnable end) {
    open.put(end, made.getAndIncrement());
  }

  void remove(Runnable end) {
    open.remove(end);
  }

  /** Ends all, and then what was made meanwhile, such as the event that marks a stream's end. */
  void close() {
    Failures failures = new Failures();
    while (!open.isEmpty()) {
      List<Map.Entry<Runnable, Long>> last = new ArrayList<>(open.entrySet());
      last.sort(Map.Entry.<Runnable, Long>comparingByValue(Comparator.reverseOrder()));
      for (var child : last) {
        failures.run(child.getKey());
        open.remove(child.getKey());
      }
    }
    failures.throwFirst();
  }
}
