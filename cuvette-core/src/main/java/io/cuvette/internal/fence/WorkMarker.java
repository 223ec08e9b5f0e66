package io.cuvette.internal.fence;

import io.cuvette.EventOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.lifetime.ShutdownGate;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.EventFlags;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;

/**
 * Knows when the work is done that a stream had queued at one moment. It is an event, recorded at
 * once if that is possible and else at the first question after it became so (not while the stream
 * is capturing); for the per-thread stream of another thread in the null stream, which waits for
 * it. Thread-safe.
 */
public final class WorkMarker implements Fence {
  /**
   * More captures than can begin and end about one marker by chance: the driver refuses for good.
   */
  private static final int MOST_REFUSALS = 1_000;

  private static final Set<CudaStatus> OF_CAPTURE =
      EnumSet.range(CudaStatus.STREAM_CAPTURE_UNSUPPORTED, CudaStatus.STREAM_CAPTURE_WRONG_THREAD);

  private final MarkedStream stream;
  private final boolean deviceWide;

  /** Whether its event is one of those that the device keeps. */
  private final boolean isSpare;

  /** How often the device had been waited for. */
  private final long made;

  private final ShutdownGate gate;

  /** The Cuda is closed: it has waited for all work, and the event can no longer be queried. */
  private final Runnable end = this::finish;

  /**
   * Held by the one thread that talks to the driver about this marker; the others do not wait for
   * it. Who finds the marker done without it leaves the event to that thread: it may be about to
   * make it, or to record or query it, and given back it is somebody else's.
   */
  private final AtomicBoolean asking = new AtomicBoolean();

  private boolean recorded;
  private int refusals;
  private final AtomicBoolean created = new AtomicBoolean();
  private long event;
  private volatile boolean done;

  private WorkMarker(MarkedStream stream, boolean deviceWide, boolean isSpare) {
    this.stream = stream;
    this.deviceWide = deviceWide;
    this.isSpare = isSpare;
    this.made = stream.device.waits();
    this.gate = stream.session.gate();
  }

  /** A marker that is not recorded yet. */
  public static WorkMarker of(MarkedStream stream) {
    return new WorkMarker(stream, false, false);
  }

  /** The same for who makes many, one after the other: they record the same events. */
  public static WorkMarker oneOfMany(MarkedStream stream) {
    return new WorkMarker(stream, false, true);
  }

  /**
   * A marker for a stream that cannot be queried: done when all work of the device was waited for.
   */
  public static WorkMarker ofDevice(MarkedStream stream) {
    return new WorkMarker(stream, true, false);
  }

  /**
   * Records the event now if possible. A failure is thrown, and the marker still works: it records
   * later, which waits for more than it has to and never for less.
   */
  public void record() {
    if (gate.tryEnterAgain()) {
      try {
        recordNow();
      } finally {
        gate.leave();
      }
    }
  }

  private void recordNow() {
    if (asking.compareAndSet(false, true)) {
      try {
        if (!done) { // else nobody asks again, and the event would be left
          recordIfPossible();
        }
      } finally {
        endOfAsking();
      }
    }
  }

  private void endOfAsking() {
    asking.set(false);
    letGoIfDone();
  }

  /** Whoever comes last: the one who asked, or the one who found it done meanwhile. */
  private void letGoIfDone() {
    while (done && created.get() && asking.compareAndSet(false, true)) {
      try {
        letGo(isSpare && !stream.isExposed()); // else a graph may have it
      } finally {
        asking.set(false);
      }
    }
  }

  public Device on() {
    return stream.device;
  }

  /** Asks without waiting. False also while another thread is asking. */
  @Override
  public boolean isDone() {
    if (done || !gate.tryEnterAgain()) {
      return done;
    }
    try {
      return isDoneNow();
    } finally {
      gate.leave();
    }
  }

  private boolean isDoneNow() {
    if (!asking.compareAndSet(false, true)) {
      return done;
    }
    try {
      if (!done && (isIdle() || (recordIfPossible() ? isReached() : isStreamOver()))) {
        finish();
      }
    } finally {
      endOfAsking();
    }
    return done;
  }

  /** Whether all is done before it could be recorded: an event would take a moment, even then. */
  private boolean isIdle() {
    return !recorded && !deviceWide && stream.isIdleNow();
  }

  /**
   * Makes another stream, which cannot be captured, wait for the work. For who alone has the
   * marker.
   *
   * @return false, and nothing was queued, if the work could not be marked because of a capture
   */
  public boolean precede(MarkedStream follower) {
    return done
        || (recorded
            && unlessCaptured(() -> {
              if (!driver().events().eventQuery(stream.device.id(), event)) {
                driver().streams().streamWaitEvent(follower.device.id(), follower.handle, event);
              }
              return true;
            }));
  }

  /** Whether the work is marked; not so while the stream captures a graph. */
  public boolean isRecorded() {
    return recorded;
  }

  /**
   * Waits until the work is done; returns at once if that cannot be waited for, on a capturing
   * stream, inside a callback, which it may wait for, or if the Cuda has ended, which frees what
   * waits.
   */
  @Override
  public void await() {
    if (!stream.session.isInsideCallback() && gate.tryEnterAgain()) {
      try {
        awaitNow();
      } finally {
        gate.leave();
      }
    }
  }

  private void awaitNow() {
    Await.until(() -> asking.compareAndSet(false, true));
    try {
      if (!done && waitForWork()) {
        finish();
      }
    } finally {
      endOfAsking();
    }
  }

  private boolean isReached() {
    return unlessCaptured(() -> driver().events().eventQuery(stream.device.id(), event));
  }

  /**
   * Asks for the event. Nobody can be kept from capturing the stream at the moment between a look
   * and the record: an event that a graph has, which is over by now, is recorded again.
   */
  private boolean unlessCaptured(BooleanSupplier question) {
    try {
      return question.getAsBoolean();
    } catch (CudaException e) {
      if (!stream.isExposed() || !Capture.hasTheRecord(e) || ++refusals > MOST_REFUSALS) {
        throw e;
      }
      recorded = false;
      destroy();
      return false;
    }
  }

  /**
   * A stream that was closed before the event could be recorded knows itself when its work is done.
   */
  private boolean isStreamOver() {
    return isOfDevice()
        ? stream.device.isAwaitedSince(made)
        : stream.isClosed() && stream.isLastWorkDone();
  }

  private boolean waitForWork() {
    int device = stream.device.id();
    while (recordIfPossible()) {
      if (unlessCaptured(() -> awaitEvent(device))) {
        return true;
      }
    }
    if (isOfDevice() || isStreamEnding()) {
      return stream.session.frees().awaitWork(stream.device);
    }
    if (stream.isClosed()) {
      stream.awaitLastWork(); // it has an event, or is the device's
    }
    return isStreamOver();
  }

  /** Also if it marks the last work of its stream and lost its event: nobody else knows then. */
  private boolean isOfDevice() {
    return deviceWide || stream.isLastWork(this);
  }

  /** The stream can no longer be queried, and does not know its last work yet. */
  private boolean isStreamEnding() {
    return stream.isClosing() && !stream.isClosed();
  }

  private boolean awaitEvent(int device) {
    driver().events().eventSynchronize(device, event);
    return true;
  }

  private boolean recordIfPossible() {
    if (!recorded && !deviceWide) {
      MarkedStream on = stream.markedIn();
      recorded = on.ask(() -> recordEvent(on.handle)) && !isCapturedNow(on);
    }
    return recorded;
  }

  /** Whether a capture that began meanwhile may have the event, which is given up then. */
  private boolean isCapturedNow(MarkedStream on) {
    boolean certainlyNot = false;
    try {
      certainlyNot = !on.isExposed() || on.ask(() -> true);
    } finally {
      if (!certainlyNot) {
        destroy();
      }
    }
    return !certainlyNot;
  }

  private boolean recordEvent(long handle) {
    int device = stream.device.id();
    if (!created.get()) {
      create(device);
    }
    try {
      driver().events().eventRecord(device, event, handle);
    } catch (RuntimeException e) {
      Failures.runAfter(e, this::destroy); // nobody may ask this marker again
      if (!isOfCapture(e)) {
        throw e;
      }
      return false; // the capture is invalid, or ends that of a stream that takes turns
    }
    return true;
  }

  /** Whether a call was refused for a capture: nothing was queued. */
  public static boolean isOfCapture(RuntimeException e) {
    return e instanceof CudaException refused && OF_CAPTURE.contains(refused.status());
  }

  private void create(int device) {
    stream.session.children().add(end); // first: there may be no heap for it later
    try {
      event =
          isSpare
              ? stream.device.spareEvents.take()
              : driver().events().eventCreate(device, EventFlags.of(EventOptions.ORDER_ONLY));
      created.set(true);
    } finally {
      if (!created.get()) {
        stream.session.children().remove(end);
      }
    }
  }

  /** Unless it marks the last work of its stream. */
  @Override
  public void abandon() {
    if (!stream.isLastWork(this) && gate.tryEnterAgain()) {
      try {
        finish();
      } finally {
        gate.leave();
      }
    }
  }

  private void finish() {
    done = true;
    letGoIfDone();
  }

  private void destroy() {
    letGo(false);
  }

  private void letGo(boolean isKept) {
    if (created.compareAndSet(true, false)) {
      try {
        if (isKept) {
          stream.device.spareEvents.give(event);
        } else {
          driver().events().eventDestroy(stream.device.id(), event);
        }
      } catch (RuntimeException e) {
        created.set(!Once.mayBeDone(e));
        throw e;
      }
    }
    stream.session.children().remove(end);
  }

  private CudaDriver driver() {
    return stream.session.driver();
  }
}
