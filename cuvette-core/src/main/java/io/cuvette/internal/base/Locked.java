package io.cuvette.internal.base;

import java.util.concurrent.locks.Lock;
import java.util.function.Supplier;

/** Runs steps under locks. Stateless. */
public final class Locked {
  private Locked() {}

  /** The result of a step that runs with a lock held. */
  public static <T> T get(Lock lock, Supplier<T> step) {
    lock.lock();
    try {
      return step.get();
    } finally {
      lock.unlock();
    }
  }
}
