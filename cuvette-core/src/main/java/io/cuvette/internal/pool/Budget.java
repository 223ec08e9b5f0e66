package io.cuvette.internal.pool;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.SpinLock;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;

/**
 * The bytes that a pool holds from upstream, which its limit counts. They are in an arena or in
 * transit: requested from upstream, on their way from one arena to another, or being freed. Always:
 * held = in arenas + in transit. Thread-safe.
 */
public final class Budget {
  /** A free can wait for the device, and upstream's for the thread that waits here. */
  private static final long PATIENCE_NANOS = 10_000_000_000L;

  /** Enough for some calls of the driver, and not for a hook, which may be what waits here. */
  private static final long MOVING_NANOS = 500_000_000;

  private final SpinLock lock = new SpinLock();
  private volatile long limit;
  private volatile long held;

  private volatile long inTransit;

  /** The part of it that upstream is getting back. */
  private volatile long beingFreed;

  private long peak;
  private long reservations;

  /** Whether the pool was torn down. */
  private boolean over;

  public Budget(long limit) {
    this.limit = limit;
  }

  public long limit() {
    return limit;
  }

  public void setLimit(long bytes) {
    limit = bytes;
  }

  public long held() {
    return held;
  }

  /** What the limit leaves; below 0 if more is held than a limit that was lowered. */
  public long room() {
    return limit - held;
  }

  /** The bytes that threads are giving back to upstream. */
  public long beingFreed() {
    return beingFreed;
  }

  /** Whether threads are giving memory back to upstream: there will be room. */
  public boolean isBeingFreed() {
    return beingFreed > 0;
  }

  /** Waits until there is room, at the latest until nothing is being freed, or a few seconds. */
  public void awaitRoom(long bytes) {
    boolean _ = Await.until(() -> bytes <= room() || !isBeingFreed(), PATIENCE_NANOS);
  }

  /** The same, after a short wait for threads that move memory: a part of it may be left over. */
  public void awaitRoom(long bytes, BooleanSupplier isStill) {
    boolean _ = Await.until(isStill, MOVING_NANOS);
    awaitRoom(bytes);
  }

  /** Counts bytes to be requested from upstream; false if the limit forbids them. */
  public boolean reserve(long bytes) {
    lock.lock();
    try {
      if (bytes > limit - held) {
        return false;
      }
      add(bytes, bytes, 0);
      reservations++;
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** How often bytes were reserved so far. */
  public long reservations() {
    lock.lock();
    try {
      return reservations;
    } finally {
      lock.unlock();
    }
  }

  /** Upstream did not give the bytes. */
  public void unreserve(long bytes) {
    change(-bytes, -bytes, 0);
  }

  /** An arena has the bytes. To be called under its lock. */
  public void enterArena(long bytes) {
    change(0, -bytes, 0);
  }

  /** The bytes are on their way from one arena to another. To be called under the first's lock. */
  public void leaveArena(long bytes) {
    change(0, bytes, 0);
  }

  /** The bytes will be freed, and are in no arena any more. To be called under its lock. */
  public void leaveForGood(long bytes) {
    change(0, bytes, bytes);
  }

  /** Upstream has the bytes. */
  public void freed(long bytes) {
    change(-bytes, -bytes, -bytes);
  }

  private void change(long heldBytes, long transitBytes, long freeingBytes) {
    lock.lock();
    try {
      add(heldBytes, transitBytes, freeingBytes);
    } finally {
      lock.unlock();
    }
  }

  /** Under the lock. */
  @SuppressWarnings("NonAtomicVolatileUpdate")
  private void add(long heldBytes, long transitBytes, long freeingBytes) {
    if (!over) {
      held += heldBytes;
      inTransit += transitBytes;
      beingFreed += freeingBytes;
    }
  }

  /** Takes note of a growth. */
  public void grown() {
    lock.lock();
    try {
      peak = Math.max(peak, held);
    } finally {
      lock.unlock();
    }
  }

  public long peak() {
    lock.lock();
    try {
      return peak;
    } finally {
      lock.unlock();
    }
  }

  public void resetPeak() {
    lock.lock();
    try {
      peak = held;
    } finally {
      lock.unlock();
    }
  }

  /** Nothing is held any more, whatever other threads still take note of. */
  public void end() {
    lock.lock();
    try {
      over = true;
      held = 0;
      inTransit = 0;
      beingFreed = 0;
    } finally {
      lock.unlock();
    }
  }

  /**
   * Compares the books with the bytes in arenas, and with upstream's if none is in transit.
   *
   * @param upstream sums the bytes of all that upstream provided
   * @param all whether these are all arenas; called while nothing can enter or leave one
   * @return false if they are not
   * @throws AssertionError if a byte is lost, or counted twice
   */
  public boolean assertConsistent(long arenaBytes, LongSupplier upstream, BooleanSupplier all) {
    lock.lock();
    try {
      if (over) {
        return true;
      }
      if (!all.getAsBoolean()) {
        return false;
      }
      require(held == arenaBytes + inTransit && inTransit >= 0, "in arenas", arenaBytes);
      long given = upstream.getAsLong();
      require(inTransit != 0 || held == given, "in chunks of upstream", given);
      return true;
    } finally {
      lock.unlock();
    }
  }

  private void require(boolean holds, String where, long bytes) {
    if (!holds) {
      throw new AssertionError(
          "held=%d, in transit=%d (expected: to agree with %d bytes %s)"
              .formatted(held, inTransit, bytes, where));
    }
  }
}
