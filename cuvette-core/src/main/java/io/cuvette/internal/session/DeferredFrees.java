package io.cuvette.internal.session;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.lifetime.Ending;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;

/**
 * Frees that wait for all streams of a device: made while no callback holds a stream, else deferred
 * until there is such a gap. Thread-safe.
 */
public final class DeferredFrees {
  private final Session session;
  private final HoldsAndFrees holds = new HoldsAndFrees();

  /** Memory that could not be freed, for callbacks left no gap. */
  private final ConcurrentLinkedQueue<Runnable> left = new ConcurrentLinkedQueue<>();

  private volatile long patienceNanos = TimeUnit.SECONDS.toNanos(10);

  public DeferredFrees(Session session) {
    this.session = session;
  }

  /** How long a callback waits for work of a device, and others for a callback. */
  public long patienceNanos() {
    return patienceNanos;
  }

  public void setPatienceNanos(long nanos) {
    patienceNanos = nanos;
  }

  /** A callback is about to hold a stream; {@link #endHold} follows. */
  public void beginHold() {
    holds.beginHold(session.isInsideCallback(), patienceNanos);
  }

  /** The stream goes on. */
  public void endHold() {
    holds.endHold();
  }

  /** Whether some callback holds a stream, so that {@link #free} would wait. */
  public boolean areHolding() {
    return holds.areHolding();
  }

  /** Whether {@link #putOff} may put anything off now. */
  public boolean mayPutOff() {
    return session.isInsideCallback() || areHolding();
  }

  /**
   * Puts the release of memory off that waits for all streams: inside a callback until that has
   * returned, and as long as others leave no gap for it.
   *
   * @param waits whether the release waits for callbacks
   * @return false if it can be released now
   */
  public boolean putOff(boolean waits, Runnable release) {
    RunningCallback inside = session.state().callback;
    if (inside != null) {
      inside.after(waits ? () -> freeSoon(release) : release);
      return true;
    }
    boolean isBusy = waits && !holds.hasGapWithin(Ending.PATIENCE_NANOS);
    if (isBusy) {
      left.add(release);
    }
    return isBusy;
  }

  /** On a thread of a callback that has returned, which waits for no other. */
  private void freeSoon(Runnable release) {
    if (areHolding()) {
      left.add(release);
    } else {
      release.run();
    }
  }

  /**
   * Frees memory by a call of the driver that waits for all streams, when no callback holds one.
   *
   * @param release what to do later instead if they leave no gap
   */
  public void free(Runnable call, Runnable release) {
    if (!free(call)) {
      left.add(release);
    }
  }

  /**
   * Makes a call of the driver that waits for all streams, while no callback holds one: what the
   * driver locks meanwhile could be what that callback waits for.
   *
   * @return false if the callbacks left no gap, so that it was not made
   */
  public boolean free(Runnable call) {
    return holds.free(call, 2 * Ending.PATIENCE_NANOS);
  }

  /**
   * Waits for the work of all streams of a device, whoever made them, and lets captures go on.
   *
   * @return false if there is no memory to free for that, or no gap between callbacks
   */
  public boolean awaitWork(Device device) {
    boolean[] waited = new boolean[1];
    return free(() -> waited[0] = device.awaitWork()) && waited[0];
  }

  /** Whether something found no gap so far. */
  public boolean isAnyLeft() {
    return !left.isEmpty();
  }

  /** Frees what found no gap before, if there is one now or soon. */
  public boolean freeLeft() {
    return !session.isInsideCallback()
        && isAnyLeft()
        && holds.free(() -> {}, Ending.PATIENCE_NANOS)
        && freeLeftNow();
  }

  /** The same for a thread of a callback that has returned: frees it if there is a gap now. */
  public void freeLeftInGap() {
    if (!areHolding()) {
      boolean _ = freeLeftNow();
    }
  }

  /** What fails is tried again later, and reported when the Cuda is closed. */
  private boolean freeLeftNow() {
    Failures failures = new Failures();
    boolean found = false;
    for (int i = left.size(); i > 0; i--) {
      Runnable release = left.poll();
      if (release != null) {
        failures.run(release);
        found = true;
      }
    }
    return found;
  }

  /** Forgets what is left: who ends the Cuda frees it. */
  public void clear() {
    left.clear();
  }
}
