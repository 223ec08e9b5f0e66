package io.cuvette.internal.base;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.LongConsumer;
import java.util.function.LongSupplier;

/**
 * Handles of the driver that can be used again by who needs the next one, instead of being
 * destroyed and made. Needs no Java heap. Thread-safe, without a lock.
 */
public final class SpareHandles {
  /** So many are kept. */
  private static final int MOST = 64;

  private final LongSupplier make;
  private final LongConsumer destroy;

  /** The kept ones; 0 where there is none. */
  private final AtomicLongArray handles = new AtomicLongArray(MOST);

  /** None yet; a handle is not 0. */
  public SpareHandles(LongSupplier make, LongConsumer destroy) {
    this.make = make;
    this.destroy = destroy;
  }

  /** One that was used before, or a new one. */
  public long take() {
    for (int i = 0; i < MOST; i++) {
      long kept = handles.get(i);
      if (kept != 0 && handles.compareAndSet(i, kept, 0)) {
        return kept;
      }
    }
    return make.getAsLong();
  }

  /** Gives one back that nobody else knows; it is destroyed if many are kept. */
  public void give(long handle) {
    if (!keep(handle)) {
      destroy.accept(handle);
    }
  }

  private boolean keep(long handle) {
    for (int i = 0; i < MOST; i++) {
      if (handles.get(i) == 0 && handles.compareAndSet(i, 0, handle)) {
        return true;
      }
    }
    return false;
  }

  /** How many are kept. */
  public int count() {
    int count = 0;
    for (int i = 0; i < MOST; i++) {
      count += handles.get(i) == 0 ? 0 : 1;
    }
    return count;
  }

  /** Destroys those that are kept; what the driver refuses to destroy is tried once more. */
  public void destroyAll(Failures failures) {
    for (int i = 0; i < MOST; i++) {
      long handle = handles.getAndSet(i, 0);
      if (handle != 0) {
        destroy(handle, failures);
      }
    }
  }

  private void destroy(long handle, Failures failures) {
    try {
      destroy.accept(handle);
    } catch (RuntimeException | Error e) {
      failures.add(e);
      if (!Once.mayBeDone(e)) {
        destroyAgain(handle, failures);
      }
    }
  }

  /** What is refused again is kept for the next call. */
  private void destroyAgain(long handle, Failures failures) {
    try {
      destroy.accept(handle);
    } catch (RuntimeException | Error e) {
      failures.add(e);
      boolean _ = !Once.mayBeDone(e) && keep(handle);
    }
  }
}
