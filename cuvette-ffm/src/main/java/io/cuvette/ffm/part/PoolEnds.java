package io.cuvette.ffm.part;

import io.cuvette.ffm.call.CallFrame;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.StampedLock;
import java.util.function.LongSupplier;

/**
 * Keeps what ends pools of the driver apart from each other and from waits: threads that destroy
 * pools beside waits for a stream that they share lock each other out in the driver (580) for ever,
 * or crash it. For all drivers of a process. Nothing here may be called inside a call of the
 * driver: a virtual thread that waits goes on in another thread, which has neither the context nor
 * the capture mode of the call ({@link CallFrame#enter}). Thread-safe.
 */
final class PoolEnds {
  /** How long destroying a pool waits for a moment without waits; then it goes on anyway. */
  private static final long PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

  private static final long ASK_AGAIN_NANOS = 50_000;

  /** Of one process; tests have others. */
  static final PoolEnds HERE = new PoolEnds();

  /**
   * Acquired by the first thread that finds them free: in a queue a virtual thread may wait for a
   * carrier, first.
   */
  private final AtomicBoolean alone = new AtomicBoolean();

  private final StampedLock waits = new StampedLock();

  PoolEnds() {}

  /** Before a wait for work; the result is for {@link #endWait}. */
  long beginWait() {
    return stampWithin(waits::tryReadLock, Long.MAX_VALUE);
  }

  void endWait(long stamp) {
    waits.unlockRead(stamp);
  }

  /** Before a pool is made. */
  void beginMaking() {
    long _ = stampWithin(() -> alone.compareAndSet(false, true) ? 1 : 0, Long.MAX_VALUE);
  }

  void endMaking() {
    alone.set(false);
  }

  /**
   * Before a pool is destroyed. Waits that began before may go on for ever, and those that want to
   * begin meanwhile are not held up by this one.
   *
   * @return for {@link #endDestroying}
   */
  long beginDestroying() {
    beginMaking();
    return stampWithin(waits::tryWriteLock, PATIENCE_NANOS);
  }

  void endDestroying(long stamp) {
    if (stamp != 0) {
      waits.unlockWrite(stamp);
    }
    endMaking();
  }

  /** What comes of trying until it is not 0, or it is at last; keeps an interrupt. */
  private static long stampWithin(LongSupplier trying, long nanos) {
    long start = System.nanoTime();
    boolean interrupted = false;
    long stamp = trying.getAsLong();
    while (stamp == 0 && System.nanoTime() - start < nanos) {
      // Else parking returns at once, and virtual threads occupy all carriers that the thread
      // inside needs.
      interrupted |= Thread.interrupted();
      LockSupport.parkNanos(trying, ASK_AGAIN_NANOS);
      stamp = trying.getAsLong();
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return stamp;
  }
}
