package io.cuvette.internal.order;

import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.internal.callback.Callback;
import io.cuvette.internal.clock.Moment;
import io.cuvette.internal.clock.StreamClock;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.fence.WorkMarker;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.stream.Streams;
import java.lang.ref.Reference;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * One object that stands for a stream, as the engine knows it: it can be closed by itself, and a
 * stream that was made here ends with it, also when it is forgotten. What works with it keeps it
 * reachable. Thread-safe.
 */
public final class OpenStream {
  public final DriverStream state;

  /** Whether the stream was made here and ends with this. */
  private final boolean ends;

  /** Whether this was closed, which need not end the stream. */
  private final AtomicBoolean unwrapped = new AtomicBoolean();

  /** The object of users; published with this. */
  private @Nullable Object face;

  public OpenStream(DriverStream state, boolean ends) {
    this.state = state;
    this.ends = ends;
  }

  /** Makes a stream (cuStreamCreateWithPriority), which ends with the result. */
  public static OpenStream create(Streams streams, Device device, StreamOptions options) {
    return streams.create(device, options, state -> new OpenStream(state, true));
  }

  /** A stream of the library's own, which no user closes. */
  public static OpenStream createForLibrary(Streams streams, Device device) {
    return streams.createForLibrary(device, state -> new OpenStream(state, true));
  }

  /** Takes note of the object of users, before anybody else has either. */
  public void standsFor(Object user) {
    face = user;
  }

  /** The object of users. */
  public Object face() {
    return Objects.requireNonNull(face);
  }

  public boolean ends() {
    return ends;
  }

  /** The device whose work this stream takes. */
  public Device on() {
    return state.device;
  }

  public boolean isClosed() {
    return unwrapped.get() || state.isClosing();
  }

  public void close() {
    if (ends) {
      state.ending().close(this);
    } else if (!state.isBuiltIn() && unwrapped.compareAndSet(false, true)) {
      state.unwrapped();
    }
  }

  public boolean isCapturing() {
    CudaDriver driver = hold();
    try {
      return driver.captures().streamIsCapturing(state.device.id(), state.handle) != 0;
    } finally {
      unhold();
    }
  }

  /** Whether all work queued so far is done. */
  public boolean isDone(String call) {
    CudaDriver _ = hold();
    try {
      checkNotCapturing(call);
      Moment before = state.clock.moment(1);
      boolean isDone = state.isWorkDone();
      if (isDone && state.clock.isRunning()) {
        StreamClock.done(before);
      }
      return isDone;
    } finally {
      unhold();
    }
  }

  /** The wait itself, for a thread in the middle of something: it calls no upstream resource. */
  public void awaitWork() {
    Callback inside = Callback.inside(state.session);
    if (inside == null) {
      synchronizeHere();
    } else {
      inside.await(state, "synchronize() of " + this, () -> isDone("synchronize"));
    }
  }

  /**
   * The same for copies that the host itself makes, which wait for what an operation here would: if
   * this takes turns with the null stream, for that one's work too, of which a wait for this alone
   * knows nothing.
   */
  public void awaitTurn() {
    WorkMarker turn = WorkMarker.of(state);
    try {
      CudaDriver _ = hold();
      try {
        if (!state.canBeCaptured()
            && !state.isLegacy()
            && state.isBlocking("synchronize")
            && !state.streams.nullStream(state.device).isIdle()) {
          turn.record();
        }
      } finally {
        unhold();
      }
      awaitWork();
    } finally {
      turn.abandon();
    }
  }

  private void synchronizeHere() {
    CudaDriver _ = hold();
    try {
      checkNotCapturing("synchronize");
      state.streams.listener().beforeWait(stream -> stream == state);
      Moment before = state.clock.moment(1);
      state.ending().await(this::awaitHeld);
      if (state.clock.isRunning()) {
        StreamClock.done(before);
      }
    } finally {
      unhold();
    }
    state.streams.listener().afterStream();
    state.streams.ended().pollAll();
  }

  private void awaitHeld() {
    while (!state.awaitWork()) {
      state.session.checkOpen();
      checkNotCapturing("synchronize");
    }
  }

  /** Checks that it is an open stream of a session. */
  public void checkOf(Session session) {
    session.checkOpen();
    if (state.session != session) {
      throw new IllegalArgumentException(
          "%s belongs to another Cuda (expected: one of this)".formatted(state.device));
    }
    checkUsable();
  }

  public void checkUsable() {
    state.checkUsable();
    checkWrapped();
  }

  private void checkWrapped() {
    if (unwrapped.get()) {
      throw new IllegalStateException(this + " is closed");
    }
  }

  /**
   * Keeps the stream from being destroyed until {@link #unhold}, for a call of the driver.
   *
   * @throws IllegalStateException if it is closed
   */
  public CudaDriver hold() {
    checkWrapped();
    return state.hold();
  }

  public void unhold() {
    try {
      state.unhold();
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /** As {@link #hold}, for work that is queued. */
  public CudaDriver holdToQueue() {
    CudaDriver driver = hold();
    try {
      state.capturing.checkNotInterrupted();
      return driver;
    } catch (RuntimeException e) {
      unhold();
      throw e;
    }
  }

  /**
   * Makes work queued from now on wait for an event.
   *
   * @param what what the user wants to wait for
   */
  public void waitFor(OpenEvent event, Object what) {
    queueWait(
        () -> {
          event.checkWait(state, what);
          return event.mayBeCaptured();
        },
        driver -> follow(event, () -> event.use(own -> wait(driver, own))));
  }

  /**
   * Makes work queued from now on wait for what another stream has queued so far.
   *
   * @param what what the user wants to wait for
   */
  public void waitFor(OpenStream other, Object what) {
    checkUsable();
    try (OpenEvent event = OpenEvent.toOrder(other.on())) {
      event.record(other);
      waitFor(event, what);
    }
  }

  /** Has the stream, which is held, know what it waits for. */
  private void follow(OpenEvent event, Runnable wait) {
    Moment before = event.moment();
    wait.run();
    if (before != null && before == event.moment() && state.clock.isRunning()) {
      state.clock.follow(before);
    }
  }

  /** The same for an event of others, of which nothing is known. */
  public void waitFor(long event) {
    if (event == 0) {
      throw new IllegalArgumentException("event: 0 (expected: the handle of an event)");
    }
    queueWait(() -> true, driver -> wait(driver, event));
  }

  private void wait(CudaDriver driver, long event) {
    driver.streams().streamWaitEvent(state.device.id(), state.handle, event);
  }

  /** Queues a wait, after a check that tells whether the stream can join a capture by it. */
  private void queueWait(BooleanSupplier check, Consumer<CudaDriver> wait) {
    CudaDriver driver = holdToQueue();
    try {
      if (check.getAsBoolean()) {
        state.capturing.join(() -> wait.accept(driver));
      } else {
        wait.accept(driver);
      }
    } catch (CudaException e) {
      throw OpenEvent.explainedIfCaptured(e);
    } finally {
      unhold();
    }
  }

  /** Asks only where the answer can be yes: otherwise nobody has the handle. */
  public void checkNotCapturing(String call) {
    checkNotCapturing(call, "");
  }

  /** The same with another way out. */
  public void checkNotCapturing(String call, String instead) {
    if (state.isExposed() || state.isBuiltIn()) {
      state.checkNotCapturing(call, instead);
    }
  }

  /** Before work that the driver waits for: inside a callback, waits itself, with its bounds. */
  public void awaitInCallback(String call) {
    checkCanWait(call);
    Callback inside = Callback.inside(state.session);
    if (inside != null) {
      inside.await(state, call + " on " + this, () -> isDone(call));
    }
  }

  /** Refuses work that waits for a callback which this thread is inside of. */
  public void checkCanWait(String call) {
    Callback callback = Callback.inside(state.session);
    if (callback != null) {
      hold();
      try {
        callback.checkCanWaitFor(state, call);
      } finally {
        unhold();
      }
    }
  }

  /**
   * The capture that memory taken in order of the stream is for; null for none.
   *
   * @throws IllegalStateException if the stream cannot take any because of a capture
   */
  public @Nullable Capture allocatesFor() {
    if (state.isLegacy()) {
      checkNotCapturing("allocate");
      return null;
    }
    Capture capture = state.capture();
    return capture == null ? null : capture.checked("allocate", state);
  }

  @Override
  public String toString() {
    return state.toString();
  }
}
