package io.cuvette.ffm;

import io.cuvette.ffm.call.Entry;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Keeps open drivers from calling once the JVM is shutting down. Thread-safe. */
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
