package io.cuvette.ffm.toolkit;

import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** What is made when it is first used; a failure is tried again by the next use. Thread-safe. */
final class OnFirstUse<T> {
  private final Supplier<T> maker;
  private final ReentrantLock lock = new ReentrantLock();
  private volatile @Nullable T made;

  OnFirstUse(Supplier<T> maker) {
    this.maker = maker;
  }

  T get() {
    T known = made;
    if (known != null) {
      return known;
    }
    lock.lock();
    try {
      known = made;
      if (known == null) {
        known = maker.get();
        made = known;
      }
      return known;
    } finally {
      lock.unlock();
    }
  }
}
