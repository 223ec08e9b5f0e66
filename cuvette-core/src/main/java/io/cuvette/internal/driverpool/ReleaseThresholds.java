package io.cuvette.internal.driverpool;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.internal.base.BargingLock;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.Condition;

/**
 * The release thresholds of somebody else's pools, raised as long as they are in use here, so that
 * the pools keep what is freed. The users of a pool are counted: the last one restores the value
 * that was there before, unless somebody has set another one since. Whoever comes while the driver
 * is asked about a pool waits; the lock itself is never held across a call of the driver.
 * Thread-safe.
 */
public final class ReleaseThresholds {
  /** Those of the driver of this machine, whose default pools all {@code Cuda}s share. */
  private static final ReleaseThresholds PROCESS = new ReleaseThresholds();

  private final BargingLock lock = new BargingLock();
  private final Condition changed = lock.newCondition();
  private final Map<Long, Raised> known = new HashMap<>();

  /** A pool in use; guarded by the lock, and while it is busy by the one thread that made it so. */
  private static final class Raised {
    int users;
    boolean busy;

    /** What to restore; the raised value itself if there is nothing to. */
    long before = MemPoolAttribute.KEEP_ALL;
  }

  private ReleaseThresholds() {}

  /** Those for a Cuda; each simulated driver has pools of its own. */
  public static ReleaseThresholds of(boolean simulated) {
    return simulated ? new ReleaseThresholds() : PROCESS;
  }

  /**
   * Counts a user of a pool, and raises its threshold. {@link #restore} must follow.
   *
   * @throws CudaException if the driver refuses; nothing is counted then
   */
  public void raise(CudaDriver driver, long pool) {
    Raised raised = enter(pool);
    int users = 0;
    try {
      long now = driver.pools().memPoolGetAttribute(pool, MemPoolAttribute.RELEASE_THRESHOLD);
      if (now != MemPoolAttribute.KEEP_ALL) {
        driver
            .pools()
            .memPoolSetAttribute(
                pool, MemPoolAttribute.RELEASE_THRESHOLD, MemPoolAttribute.KEEP_ALL);
        raised.before = now;
      }
      users = 1;
    } finally {
      leave(pool, raised, users);
    }
  }

  /**
   * Ends a user's part. The last one restores the threshold, and lets go at once what the pool
   * would by itself at the next synchronisation.
   *
   * @throws CudaException if the driver refuses; the user is counted as before then
   */
  public void restore(CudaDriver driver, long pool) {
    Raised raised = enter(pool);
    int users = 0;
    try {
      if (raised.users == 1) {
        restore(driver, pool, raised.before);
      }
      users = -1;
    } finally {
      leave(pool, raised, users);
    }
  }

  private static void restore(CudaDriver driver, long pool, long before) {
    if (before != MemPoolAttribute.KEEP_ALL
        && driver.pools().memPoolGetAttribute(pool, MemPoolAttribute.RELEASE_THRESHOLD)
            == MemPoolAttribute.KEEP_ALL) {
      driver.pools().memPoolSetAttribute(pool, MemPoolAttribute.RELEASE_THRESHOLD, before);
      driver.pools().memPoolTrimTo(pool, before);
    }
  }

  /** Ends a user's part of a pool that the driver may not have any more, or does not let change. */
  public void forget(long pool) {
    leave(pool, enter(pool), -1);
  }

  /** The bytes that a pool would keep if it was not in use here, as an unsigned number. */
  public long before(long pool) {
    lock.lock();
    try {
      Raised raised = known.get(pool);
      return raised == null ? MemPoolAttribute.KEEP_ALL : raised.before;
    } finally {
      lock.unlock();
    }
  }

  /** Makes a pool busy. */
  private Raised enter(long pool) {
    lock.lock();
    try {
      Raised raised = known.computeIfAbsent(pool, _ -> new Raised());
      while (raised.busy) {
        changed.awaitUninterruptibly();
        raised = known.computeIfAbsent(pool, _ -> new Raised());
      }
      raised.busy = true;
      return raised;
    } finally {
      lock.unlock();
    }
  }

  /** Ends what being busy began, and counts users. */
  private void leave(long pool, Raised raised, int users) {
    lock.lock();
    try {
      raised.users += users;
      raised.busy = false;
      if (raised.users == 0) {
        known.remove(pool);
      }
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }
}
