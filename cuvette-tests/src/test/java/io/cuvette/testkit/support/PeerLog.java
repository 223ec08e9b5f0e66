package io.cuvette.testkit.support;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** The last lines that a second JVM printed. Thread-safe. */
final class PeerLog {
  private static final int LINES = 400;
  private static final long QUIET_MILLIS = 300;

  private final Deque<String> lines = new ArrayDeque<>();
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition added = lock.newCondition();

  void drain(BufferedReader reader) {
    try (reader) {
      reader.lines().forEach(this::add);
    } catch (IOException | UncheckedIOException e) {
      add(e.toString());
    }
  }

  void add(String line) {
    lock.lock();
    try {
      lines.add(line);
      if (lines.size() > LINES) {
        lines.remove();
      }
      added.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** The lines, once no more come for a moment. */
  String settled() {
    lock.lock();
    try {
      boolean more = true;
      for (int i = 0; i < LINES && more; i++) {
        more = added.await(QUIET_MILLIS, TimeUnit.MILLISECONDS);
      }
      return String.join("\n", lines);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return String.join("\n", lines);
    } finally {
      lock.unlock();
    }
  }
}
