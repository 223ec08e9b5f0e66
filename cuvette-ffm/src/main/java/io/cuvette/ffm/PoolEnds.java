package io.cuvette.ffm;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.StampedLock;

/**
 * Keeps what ends pools of the driver apart from each other and from waits: threads that destroy
 * pools beside waits for a stream that they share lock each other out in the driver (580) for ever,
 * or crash it. For all drivers of a process. Thread-safe.
 */
final class PoolEnds {
  /** So long a pool waits for a moment at which nobody waits; after that it is destroyed anyhow. */
  private static final long PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

  private static final long ASK_AGAIN_NANOS = 50_000;

  /** Of one process; tests have others. */
  static final PoolEnds HERE = new PoolEnds();

  private final Lock oneByOne = new ReentrantLock();
  private final StampedLock waits = new StampedLock();

  PoolEnds() {}

  /** Before a wait for work; the result is for {@link #endWait}. */
  long beginWait() {
    return waits.readLock();
  }

  void endWait(long stamp) {
    waits.unlockRead(stamp);
  }

  /** Before a pool is made. */
  void beginMaking() {
    oneByOne.lock();
  }

  void endMaking() {
    oneByOne.unlock();
  }

  /**
   * Before a pool is destroyed. Waits that began before may go on for ever, and those that want to
   * begin meanwhile are not held up by this one.
   *
   * @return for {@link #endDestroying}
   */
  long beginDestroying() {
    oneByOne.lock();
    long until = System.nanoTime() + PATIENCE_NANOS;
    long stamp = waits.tryWriteLock();
    while (stamp == 0 && System.nanoTime() < until) {
      LockSupport.parkNanos(this, ASK_AGAIN_NANOS);
      stamp = waits.tryWriteLock();
    }
    return stamp;
  }

  void endDestroying(long stamp) {
    if (stamp != 0) {
      waits.unlockWrite(stamp);
    }
    oneByOne.unlock();
  }
}
