package io.cuvette.ffm;

import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.part.HostThreads;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Keeps open drivers from calling once the JVM is shutting down, and the driver's threads from
 * keeping it from its end. Thread-safe.
 */
final class Shutdown {
  private static final Set<Entry> OPEN = ConcurrentHashMap.newKeySet();
  private static volatile boolean begun;

  static {
    try {
      Runtime.getRuntime().addShutdownHook(new Thread(Shutdown::begin, "cuvette-shutdown"));
    } catch (IllegalStateException e) {
      begun = true; // it has begun already
    }
  }

  private Shutdown() {}

  private static void begin() {
    begun = true;
    OPEN.forEach(Entry::shutDown);
    HostThreads.detach();
  }

  /** Shuts a driver down with the JVM, at once if that shuts down already. */
  static void watch(Entry entry) {
    OPEN.add(entry);
    if (begun) {
      entry.shutDown();
    }
  }

  /** Stops watching a driver. */
  static void forget(Entry entry) {
    OPEN.remove(entry);
  }
}
