package io.cuvette.internal.lifetime;

import io.cuvette.internal.base.BargingLock;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.util.concurrent.locks.Condition;

/**
 * Runs the garbage collector for all threads that are short of memory: one collects, the others
 * wait for it. A collection that helped nobody is followed by a rest as long as it took, so that at
 * most half of the time goes into collecting. Thread-safe.
 */
public final class Collector {
  /** There is one collector in the process. */
  public static final Collector PROCESS = new Collector();

  private static final long LONGEST_WAIT_NANOS = 512_000_000;
  private static final long PATIENCE_MILLIS = 200;

  private final BargingLock lock = new BargingLock();
  private final Condition changed = lock.newCondition();
  private final ReferenceQueue<Object> handedOver = new ReferenceQueue<>();
  private long begun;
  private long ended;
  private long restUntil = System.nanoTime();

  private Collector() {}

  /** The number of the last collection that began. */
  public long begun() {
    lock.lock();
    try {
      return begun;
    } finally {
      lock.unlock();
    }
  }

  /** Whether a later collection than one of a number has ended. */
  public boolean hasEndedSince(long number) {
    lock.lock();
    try {
      return ended > number;
    } finally {
      lock.unlock();
    }
  }

  /** A collection found what was missing: the next need not wait. */
  public void helped() {
    lock.lock();
    try {
      restUntil = System.nanoTime();
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Collects, or waits a bounded time for the thread that does, or for a rest to end. */
  public void collectOrJoin() {
    if (mayCollect()) {
      long start = System.nanoTime();
      try {
        collect();
      } finally {
        end(System.nanoTime() - start);
      }
    }
  }

  @SuppressWarnings("WaitNotInLoop") // the caller looks again, whatever woke it
  private boolean mayCollect() {
    boolean interrupted = Thread.interrupted(); // else nobody waits
    lock.lock();
    try {
      long rest = restUntil - System.nanoTime();
      if (begun == ended && rest <= 0) {
        begun++;
        return true;
      }
      long wait = begun == ended ? Math.min(rest, LONGEST_WAIT_NANOS) : LONGEST_WAIT_NANOS;
      changed.awaitNanos(wait);
      return false;
    } catch (InterruptedException e) {
      interrupted = true;
      return false;
    } finally {
      lock.unlock();
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private void end(long nanos) {
    lock.lock();
    try {
      ended = begun;
      restUntil = System.nanoTime() + nanos;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /**
   * Collects, and waits until the references that it cleared are about to be handed over, one by
   * one, by a thread of the JVM. A collector that is switched off clears none.
   */
  private void collect() {
    PhantomReference<Object> canary = new PhantomReference<>(new Object(), handedOver);
    System.gc();
    if (canary.refersTo(null)) {
      awaitHandingOver();
    }
  }

  private void awaitHandingOver() {
    try {
      handedOver.remove(PATIENCE_MILLIS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
