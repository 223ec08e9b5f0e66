package io.cuvette.internal.stream;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.Locked;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.fence.OwnCapture;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What one stream has to do with captures: it joins them, ends them, and refuses meanwhile what
 * would invalidate them. Thread-safe.
 */
public final class StreamCapture {
  /** The way out where a call waits, which it cannot within a graph. */
  private static final String WAITS =
      " (expected: the form that takes a stream and does not wait, or the end of the capture)";

  private final DriverStream stream;

  /** Captures of this library and of others. */
  private final Exposure toAll;

  /**
   * Captures that others may begin or end: the handle was given out, or the stream waits for one of
   * which it was. The driver is queried about these alone.
   */
  private final Exposure toOthers;

  /**
   * Whether the library begins or ends a capture right now, or failed to: the driver alone knows.
   */
  private volatile boolean changes;

  /**
   * Held by who begins or ends a capture here or joins one, and between a look at one and what must
   * not meet that.
   */
  final Lock ends = new ReentrantLock();

  public final OwnCapture own = new OwnCapture();

  /** How many threads are about to begin or end a capture: no operation begins meanwhile. */
  private final AtomicInteger ending = new AtomicInteger();

  public StreamCapture(DriverStream stream) {
    this.stream = stream;
    this.toAll = new Exposure(stream);
    this.toOthers = new Exposure(stream);
  }

  /** Whether the stream may be captured now. */
  boolean isPossible() {
    return toAll.isPossible();
  }

  /** The same, but for captures that the library begins: none begins through {@link #alone}. */
  boolean isPossibleByOthers() {
    return toOthers.isPossible();
  }

  /** From now on the library may capture it, for who holds the stream once. */
  public void expose() {
    toAll.begin(1);
  }

  /**
   * From now on others may, too, or it may join a capture of another stream.
   *
   * @param holds how often the caller holds the stream
   */
  void exposeToOthers(int holds) {
    toAll.begin(holds);
    toOthers.begin(holds);
  }

  /** The library begins or ends a capture; {@link #changed} follows if that succeeds. */
  public void change() {
    changes = true;
  }

  /** A capture has begun, which is {@link #own} now, or it has ended. */
  public void changed() {
    changes = false;
  }

  /** Whether the capture is known without the driver: none but the library begins or ends it. */
  private boolean isKnown() {
    return stream.isOwned() && !toOthers.isPossible() && !changes;
  }

  /** The capture that the stream takes part in, for who holds it; null if in none. */
  @Nullable Capture now() {
    return isKnown() ? own.begun() : besideNone(this::asked);
  }

  /**
   * Asks the driver, which crashes if a capture begins or ends meanwhile: after one that is about
   * to. Who begins or ends one later waits for the caller, who holds the stream.
   */
  private <T extends @Nullable Object> T besideNone(Supplier<T> question) {
    return ending.get() == 0 ? question.get() : alone(question);
  }

  private @Nullable Capture asked() {
    return isKnown()
        ? own.begun()
        : stream.streams.captures().of(stream.device.id(), stream.handle, own, ends);
  }

  /**
   * Makes the stream, which the caller holds, wait for what may be part of a capture: it joins it.
   */
  public void join(Runnable wait) {
    stream.exposeHeld();
    boolean captured = stream.capture() != null;
    Capture capture =
        alone(() -> {
          wait.run();
          return captured ? null : stream.capture();
        });
    if (capture != null) {
      own.joined(capture);
    }
  }

  /** The capture that what is closed is part of, perhaps when the driver answers no more. */
  public @Nullable Capture captureAtEnd() {
    try {
      return stream.capture();
    } catch (IllegalStateException e) {
      return null;
    }
  }

  /** As long as it is locked, nobody begins or ends a capture through this stream. */
  public Lock ends() {
    return ends;
  }

  /** Does something with a capture that nobody ends meanwhile through this stream. */
  public <T> T alone(Supplier<T> step) {
    return Locked.get(ends, step);
  }

  /**
   * The same for what begins a capture, which no call of another thread about the stream may meet:
   * the driver crashes. Those that wait for work ask about an event. For who holds the stream once.
   */
  public <T> T beginAlone(Supplier<T> step) {
    ending.incrementAndGet();
    try {
      stream.ending().awaitCalls(1);
      return alone(step);
    } finally {
      ending.decrementAndGet();
    }
  }

  /**
   * The same for what ends a capture: the driver crashes if it is queueing work of the capture at
   * that time. For who holds the stream once.
   */
  public <T> T endAlone(Supplier<T> step) {
    List<StreamCapture> all = stream.streams.joinedTo(own);
    all.add(this);
    all.forEach(one -> one.ending.incrementAndGet());
    try {
      all.forEach(one -> one.stream.ending().awaitOperations(one == this ? 1 : 0));
      return alone(() -> Locked.get(stream.session.captures().readLock(), step));
    } finally {
      all.forEach(one -> one.ending.decrementAndGet());
    }
  }

  /**
   * Lets go of the stream as long as a capture begins or ends, which takes a moment. For who holds
   * it.
   */
  void letEnd() {
    while (ending.get() != 0) {
      stream.ending().unhold();
      Await.until(() -> ending.get() == 0);
      stream.ending().hold();
    }
  }

  /**
   * Ends the capture that began here, and gives its graph up. For who holds the stream, or ends it.
   *
   * @return false if the stream still takes part in a capture
   */
  public boolean end() {
    return !stream.isExposed() || endAlone(this::endNow);
  }

  /** The same when nobody queues work any more. */
  boolean endNow() {
    CaptureInfo info = info();
    if (!info.isCapturing() || own.isJoined(info)) {
      return !info.isCapturing();
    }
    CudaDriver driver = stream.session.driver();
    int device = stream.device.id();
    change();
    try {
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(device, stream.handle));
    } catch (CudaException e) {
      if (goesOn()) { // another thread's; an invalid capture has ended
        return false;
      }
    }
    own.over(info);
    changed();
    return true;
  }

  /** The capture that the stream takes part in, for who holds it. */
  public CaptureInfo info() {
    CaptureCalls driver = stream.session.driver().captures();
    return driver.streamGetCaptureInfo(stream.device.id(), stream.handle);
  }

  /** Whether that was all, for who ends the stream, perhaps when the driver answers no more. */
  public boolean endIfPossible() {
    try {
      return (!stream.isOwned() && !own.isBegun(info())) || end();
    } catch (IllegalStateException e) {
      return true;
    }
  }

  /** Checks that no capture of a blocking stream makes the null stream unusable. */
  public void checkNotInterrupted() {
    if (stream.isLegacy() && stream.streams.captures().isAnyPossible()) {
      stream.checkNotCapturing("work", "");
    }
  }

  /** Refuses what would invalidate a capture, for who holds the stream. */
  public void check(String call, String instead) {
    if (goesOn()) {
      throw refusal(call, instead);
    }
  }

  /** Builds the exception for what a stream cannot take that is capturing, or was just now. */
  public IllegalStateException refusal(String call) {
    return refusal(call, "");
  }

  private IllegalStateException refusal(String call, String instead) {
    return new IllegalStateException(
        "%s: %s is capturing a graph%s"
            .formatted(
                call,
                stream.isLegacy() ? "a stream that takes turns with the " + stream : stream,
                instead.isEmpty() ? WAITS : instead));
  }

  /** The null stream takes part, so to speak, in the capture of any stream that blocks with it. */
  public boolean goesOn() {
    return isKnown() ? own.begun() != null : besideNone(this::goesOnNow);
  }

  private boolean goesOnNow() {
    if (isKnown()) {
      return own.begun() != null;
    }
    try {
      return stream.session.driver().captures().streamIsCapturing(stream.device.id(), stream.handle)
          != 0;
    } catch (CudaException e) {
      if (e.status() == CudaStatus.STREAM_CAPTURE_IMPLICIT) {
        return true;
      }
      throw e;
    }
  }
}
