package io.cuvette.internal.lifetime;

import io.cuvette.internal.base.SpinLock;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * What could not be brought to an end now and is tried again with a later call. Each is in one such
 * list at most, and links it: leaving something needs no Java heap. Thread-safe.
 */
public final class LeftForLater {
  private final SpinLock lock = new SpinLock();
  private volatile @Nullable Ending last;

  public void leave(Ending one) {
    lock.lock();
    try {
      one.next = last;
      last = one;
    } finally {
      lock.unlock();
    }
  }

  public boolean isEmpty() {
    return last == null;
  }

  private @Nullable Ending takeAll() {
    lock.lock();
    try {
      Ending all = last;
      last = null;
      return all;
    } finally {
      lock.unlock();
    }
  }

  /**
   * Takes out what is there now and tries each; if that throws, the rest stays.
   *
   * @return how many returned true
   */
  public int drain(Predicate<? super Ending> step) {
    if (isEmpty()) {
      return 0;
    }
    int done = 0;
    Ending rest = takeAll();
    try {
      while (rest != null) {
        Ending one = rest;
        rest = one.next;
        one.next = null;
        done += step.test(one) ? 1 : 0;
      }
      return done;
    } finally {
      while (rest != null) {
        Ending one = rest;
        rest = one.next;
        leave(one);
      }
    }
  }
}
