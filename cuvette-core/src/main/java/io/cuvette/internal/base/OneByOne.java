package io.cuvette.internal.base;

import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.function.Supplier;

/**
 * Lets threads do what is about the same thing one by one. The lock itself is never held across a
 * call of the driver. Thread-safe, not reentrant.
 *
 * @param <K> the identity of a thing
 */
public final class OneByOne<K> {
  private final BargingLock lock = new BargingLock();
  private final Condition changed = lock.newCondition();
  private final Set<K> taken = new HashSet<>();

  /** Does something while no other thread does anything about the same thing. */
  public <R> R alone(K thing, Supplier<R> work) {
    begin(thing);
    try {
      return work.get();
    } finally {
      end(thing);
    }
  }

  /** As {@link #alone(Object, Supplier)}. */
  public void alone(K thing, Runnable work) {
    begin(thing);
    try {
      work.run();
    } finally {
      end(thing);
    }
  }

  private void begin(K thing) {
    lock.lock();
    try {
      while (!taken.add(thing)) {
        changed.awaitUninterruptibly();
      }
    } finally {
      lock.unlock();
    }
  }

  private void end(K thing) {
    lock.lock();
    try {
      taken.remove(thing);
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }
}
