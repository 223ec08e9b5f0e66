package io.cuvette.internal.order;

import io.cuvette.EventDescriptor;
import io.cuvette.EventOptions;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.callback.Callback;
import io.cuvette.internal.clock.Moment;
import io.cuvette.internal.clock.StreamClock;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.fence.Retainable;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.EventFlags;
import io.cuvette.internal.session.ObjectEnding;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.DriverStream;
import java.lang.ref.Reference;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.Lock;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * An event as the engine knows it: a mark in a stream that can be queried and waited for, and ends
 * also when it is forgotten. What works with it keeps it reachable. Thread-safe.
 */
public final class OpenEvent implements AutoCloseable, Retainable {
  /** A capture of which nothing is known but that it is invalid. */
  private static final long INVALID = -1;

  private final Device device;
  private final long handle;
  private final EventOptions options;
  private final ObjectEnding ending;
  private volatile boolean recorded;

  /**
   * Where it was recorded last, if that is known; a thread's own stream is not kept. Published by
   * {@link #recorded}.
   */
  private @Nullable DriverStream recordedOn;

  /** Whether its last record may be part of a capture: who waits for it then joins that. */
  private volatile boolean mayBeCaptured;

  /** The capture that its stream took part in after the last record; 0 for none. */
  private volatile long capturedIn;

  private final LastRecord last = new LastRecord();

  /** Whether others have the handle, so that its last record need not be one of this library. */
  private volatile boolean shown;

  /** Whether a capture may ever have had a record of it; shared with its end. */
  private final AtomicBoolean wasCaptured = new AtomicBoolean();

  /** Whether the device keeps it for its next use; shared with its end. */
  private final AtomicBoolean isSpare;

  /** The handle by which others import it, once requested; for an imported event its origin's. */
  private volatile @Nullable EventDescriptor descriptor;

  private OpenEvent(Device device, long handle, EventOptions options, AtomicBoolean isSpare) {
    this.device = device;
    this.handle = handle;
    this.options = options;
    this.isSpare = isSpare;
    this.ending =
        new ObjectEnding(
            this, device.session(), new Handle(device, handle, wasCaptured, isSpare, new Once()));
  }

  /** The event of the driver. */
  private record Handle(
      Device device, long value, AtomicBoolean captured, AtomicBoolean isSpare, Once destroyed)
      implements ObjectEnding.Ended {
    @Override
    public void end(ObjectEnding ending) {
      device.session().gate().run(() -> endNow(ending));
    }

    @Override
    public void endNow(ObjectEnding ending) {
      if (captured.get()) {
        destroyCaptured();
      } else {
        destroy();
      }
      ending.forget();
    }

    private void destroyCaptured() {
      Lock captures = device.session().captures().writeLock();
      captures.lock();
      try {
        destroy();
      } finally {
        captures.unlock();
      }
    }

    private void destroy() {
      destroyed.free(() -> {
        if (isSpare.get()) {
          device.spareEvents.give(value);
        } else {
          device.session().driver().events().eventDestroy(device.id(), value);
        }
      });
    }

    @Override
    public String toString() {
      return "event 0x" + Long.toHexString(value);
    }
  }

  /** Makes an event (cuEventCreate). */
  public static OpenEvent create(Device device, EventOptions options) {
    Session session = device.session();
    session.leaks().drain();
    return session
        .gate()
        .make(() ->
            registered(
                device,
                device.context().events().eventCreate(device.id(), EventFlags.of(options)),
                options,
                false));
  }

  /** One that only this library has, to make a stream wait for another; its device keeps it. */
  static OpenEvent toOrder(Device device) {
    Session session = device.session();
    session.leaks().drain();
    CudaDriver _ = device.context();
    return session
        .gate()
        .make(() -> registered(device, device.spareEvents.take(), EventOptions.ORDER_ONLY, true));
  }

  /** The driver gets the event back if there is no Java heap for it. */
  private static OpenEvent registered(
      Device device, long handle, EventOptions options, boolean isSpare) {
    try {
      OpenEvent event = new OpenEvent(device, handle, options, new AtomicBoolean(isSpare));
      event.ending.listed();
      return event;
    } catch (OutOfMemoryError e) {
      device.session().driver().events().eventDestroy(device.id(), handle);
      throw e;
    }
  }

  /** Opens an event of another process (cuIpcOpenEventHandle). */
  public static OpenEvent imported(Device device, EventDescriptor descriptor) {
    Session session = device.session();
    session.leaks().drain();
    return session.gate().make(() -> open(device, descriptor));
  }

  private static OpenEvent open(Device device, EventDescriptor descriptor) {
    EventOptions options = new EventOptions(descriptor.blockingSync(), false, true);
    long handle;
    try {
      byte[] checked = device.session().handles().checkedEvent(device, descriptor.handle());
      handle = device.context().sharing().ipcOpenEventHandle(device.id(), checked);
    } catch (CudaException e) {
      throw explained(e, descriptor.process().equals(device.session().process()));
    }
    OpenEvent event = registered(device, handle, options, false);
    event.last.share();
    event.recorded = true;
    event.mayBeCaptured = true;
    event.descriptor = descriptor;
    return event;
  }

  private static CudaException explained(CudaException e, boolean own) {
    if (e.status() == CudaStatus.OPERATING_SYSTEM || e.status() == CudaStatus.OUT_OF_MEMORY) {
      return e; // which says nothing about the event
    }
    return e.explained(
        own
            ? "the event was made by this very process, where it is used without importing"
            : "the event's process is gone or has closed it, or its device is not visible here");
  }

  /** Milliseconds from one event to another (cuEventElapsedTime). */
  public static double elapsedMillis(OpenEvent start, OpenEvent end) {
    start.checkMeasures("start");
    end.checkMeasures("end");
    if (start.device.session() != end.device.session()) {
      throw new IllegalArgumentException(
          "end: %s belongs to another Cuda than start".formatted(end));
    }
    start.checkDone("start");
    end.checkDone("end");
    CudaDriver driver = start.hold();
    try {
      end.hold();
      try {
        return driver.events().eventElapsedTime(start.device.id(), start.handle, end.handle);
      } finally {
        end.unhold();
      }
    } finally {
      start.unhold();
    }
  }

  /** The handle of the driver, for who may capture it from now on. */
  public long handle() {
    mayBeCaptured = true;
    shown = true;
    last.share();
    return handle;
  }

  public Device on() {
    return device;
  }

  public EventOptions options() {
    return options;
  }

  /** What another process imports the event by; that of an imported event passes it on. */
  public EventDescriptor descriptor() {
    ending.checkOpen();
    if (!options.interprocess()) {
      throw new IllegalStateException(
          "%s cannot be shared between processes (expected: EventOptions.interprocess true)"
              .formatted(this));
    }
    EventDescriptor known = descriptor;
    if (known == null) {
      known = export();
      descriptor = known;
    }
    return known;
  }

  private EventDescriptor export() {
    last.share();
    CudaDriver driver = hold();
    try {
      byte[] bytes = driver.sharing().ipcGetEventHandle(device.id(), handle);
      return new EventDescriptor(
          options.blockingSync(), device.session().process(), device.uuid(), bytes);
    } finally {
      unhold();
    }
  }

  /** Whether it was ever recorded; an imported event always counts as recorded. */
  public boolean isRecorded() {
    return recorded;
  }

  /** Records in order of a stream of the same device, and forgets the record before. */
  public void record(OpenStream stream) {
    if (!stream.on().equals(device)) {
      throw new IllegalArgumentException(
          "%s of %s cannot be recorded on %s (expected: a stream of the same device)"
              .formatted(this, device, stream));
    }
    CudaDriver driver = stream.holdToQueue();
    try {
      if (stream.state.isExposed()) { // while it is held, nobody begins to
        mayBeCaptured = true;
        isSpare.set(false);
      }
      last.record(
          stream.state,
          () -> use(own -> driver.events().eventRecord(device.id(), own, stream.state.handle)));
      capturedIn = captureOf(stream.state);
      if (capturedIn != 0) {
        wasCaptured.set(true);
      }
    } finally {
      stream.unhold();
    }
    recordedOn = stream.state.confinedTo == null ? stream.state : null;
    recorded = true;
  }

  /** Nodes of a graph have it: the driver crashes when the graph runs without the event. */
  @Override
  public void retain() {
    ending.lend();
  }

  @Override
  public void letGo() {
    ending.returned();
  }

  /** A node of a graph records it: where, is known to the driver alone. */
  public void recordedByGraph() {
    recordedOn = null;
    recorded = true;
  }

  /** What comes before the last record; null if that is not certain. */
  @Nullable Moment moment() {
    return last.moment();
  }

  /** The last record is done, if it is the same as before the driver was asked. */
  private void done(@Nullable Moment before) {
    if (before != null && before == moment()) {
      StreamClock.done(before);
    }
  }

  /** Whether the work before the last record is done; true if it was never recorded. */
  public boolean isDone() {
    CudaDriver driver = hold();
    try {
      checkNotCaptured("isDone");
      Moment before = moment();
      boolean isDone = driver.events().eventQuery(device.id(), handle);
      if (isDone) {
        done(before);
      }
      return isDone;
    } catch (CudaException e) {
      throw explainedIfCaptured(e);
    } finally {
      unhold();
    }
  }

  /** Waits for the work before the last record; returns at once if there was none. */
  public void synchronize() {
    Callback inside = Callback.inside(device.session());
    if (inside == null) {
      synchronizeHere();
    } else {
      DriverStream on = recorded ? recordedOn : null;
      inside.await(on, "synchronize() of " + this, this::isDone);
    }
  }

  private void synchronizeHere() {
    CudaDriver driver = hold();
    try {
      checkNotCaptured("synchronize");
      Moment before = moment();
      ending.await(() -> driver.events().eventSynchronize(device.id(), handle));
      done(before);
    } catch (CudaException e) {
      throw explainedIfCaptured(e);
    } finally {
      unhold();
    }
  }

  /** Refuses what would invalidate a capture that the event was recorded in. */
  private void checkNotCaptured(String call) {
    DriverStream on = recordedOn;
    if (capturedIn != 0 && (on == null || on.isCapturing())) {
      throw new IllegalStateException(
          "%s: %s was recorded in %s, which is capturing a graph"
              .formatted(call, this, on == null ? "a thread's stream" : on));
    }
  }

  /** Tells what a status of an event means that is in order but for its record. */
  public static CudaException explainedIfCaptured(CudaException e) {
    return Capture.hasTheRecord(e)
        ? e.explained(
            "the event was last recorded in a capture: its place is in the graph, and it tells"
                + " nothing before it is recorded again")
        : e;
  }

  public boolean isClosed() {
    return ending.ended();
  }

  @Override
  public void close() {
    ending.close(this);
  }

  @Override
  public String toString() {
    return ending.describe();
  }

  /**
   * Refuses the wait of a stream, which the caller holds, that would invalidate its capture.
   *
   * @param what what the user wants to wait for
   */
  public void checkWait(DriverStream waiting, Object what) {
    long own = recorded && !shown ? captureOf(waiting) : 0;
    long of = capturedIn;
    if (own != 0 && own != INVALID && own != of) {
      throw new IllegalStateException(
          "waitFor: %s is capturing a graph, and the work of %s is %s"
              .formatted(
                  waiting,
                  what,
                  of == 0
                      ? "not part of that (expected: a wait before the capture, or work of it)"
                      : "part of another (expected: work of the same capture)"));
    }
  }

  /** The capture that a stream takes part in, which the caller holds; 0 for none. */
  private static long captureOf(DriverStream stream) {
    if (!stream.isExposed() || !stream.capturing.goesOn()) {
      return 0;
    }
    CaptureInfo info = stream.capturing.info();
    return info.isActive() ? info.id() : INVALID;
  }

  /** Whether a stream that waits for it can join a capture by that. */
  public boolean mayBeCaptured() {
    return mayBeCaptured;
  }

  /** Has a call of the driver use the handle, which is not destroyed meanwhile. */
  public void use(LongConsumer call) {
    hold();
    try {
      call.accept(handle);
    } finally {
      unhold();
    }
  }

  private CudaDriver hold() {
    ending.hold();
    try {
      return device.context();
    } catch (IllegalStateException e) {
      unhold();
      throw e;
    }
  }

  private void unhold() {
    try {
      ending.unhold();
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  private void checkMeasures(String which) {
    ending.checkOpen();
    if (!options.timing()) {
      throw new IllegalStateException(
          "%s: %s has no timing (expected: EventOptions.timing true)".formatted(which, this));
    }
    if (!recorded) {
      throw new IllegalStateException("%s: %s was not recorded".formatted(which, this));
    }
  }

  private void checkDone(String which) {
    if (!isDone()) {
      throw new CudaException(
          CudaStatus.NOT_READY,
          "cuEventElapsedTime",
          "%s: %s is not done; synchronize() it first".formatted(which, this));
    }
  }
}
