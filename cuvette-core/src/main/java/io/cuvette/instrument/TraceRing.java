package io.cuvette.instrument;

import java.util.ArrayDeque;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * Keeps the last calls of a traced driver and drops the oldest ones beyond its size. Thread-safe.
 */
public final class TraceRing implements Consumer<TracedCall> {
  private final int capacity;
  private final ReentrantLock lock = new ReentrantLock();
  private final ArrayDeque<TracedCall> calls = new ArrayDeque<>();
  private long dropped;

  /**
   * An empty ring.
   *
   * @param capacity how many calls it keeps
   * @throws IllegalArgumentException if the capacity is not positive
   */
  public TraceRing(int capacity) {
    if (capacity < 1) {
      throw new IllegalArgumentException("capacity: " + capacity + " (expected: >= 1)");
    }
    this.capacity = capacity;
  }

  @Override
  public void accept(TracedCall call) {
    Objects.requireNonNull(call, "call");
    lock.lock();
    try {
      if (calls.size() == capacity) {
        calls.removeFirst();
        dropped++;
      }
      calls.addLast(call);
    } finally {
      lock.unlock();
    }
  }

  /** {@return the calls kept, in the order they finished} */
  public List<TracedCall> calls() {
    lock.lock();
    try {
      return List.copyOf(calls);
    } finally {
      lock.unlock();
    }
  }

  /** {@return the number of calls dropped for lack of room} */
  public long dropped() {
    lock.lock();
    try {
      return dropped;
    } finally {
      lock.unlock();
    }
  }
}
