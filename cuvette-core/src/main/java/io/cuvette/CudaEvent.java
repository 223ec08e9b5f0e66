package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.lang.ref.Reference;
import java.util.Objects;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A mark in a stream that can be asked, waited for and, with timing, measured from. Thread-safe.
 */
public final class CudaEvent implements AutoCloseable {
  private final CudaDevice device;
  private final long handle;
  private final EventOptions options;
  private final EventLifetime lifetime;
  private volatile boolean recorded;

  /**
   * Where it was recorded last, if that is known; a thread's own stream is not kept. Published by
   * {@link #recorded}.
   */
  private @Nullable StreamState recordedOn;

  /** Whether its last record may be part of a capture: who waits for it then joins that. */
  private volatile boolean mayBeCaptured;

  /** Whether its stream was capturing after the last record, which may be part of that. */
  private volatile boolean captured;

  /** What others import it by, once asked for; for an imported event its origin's. */
  private volatile @Nullable EventDescriptor descriptor;

  private CudaEvent(CudaDevice device, long handle, EventOptions options) {
    this.device = device;
    this.handle = handle;
    this.options = options;
    this.lifetime = new EventLifetime(this, device.core(), handle);
  }

  static CudaEvent create(CudaDevice device, EventOptions options) {
    Device on = device.core();
    on.session().leaks().drain();
    return on.session()
        .entrance()
        .make(
            () -> registered(device, on.context().eventCreate(on.id(), options.flags()), options));
  }

  /** The driver gets the event back if there is no Java heap for it. */
  private static CudaEvent registered(CudaDevice device, long handle, EventOptions options) {
    CudaEvent event = null;
    try {
      event = new CudaEvent(device, handle, options);
      event.lifetime.register();
      return event;
    } catch (OutOfMemoryError e) {
      if (event != null) {
        event.lifetime.discard();
      }
      device.core().session().driver().eventDestroy(device.id(), handle);
      throw e;
    }
  }

  static CudaEvent imported(CudaDevice device, EventDescriptor descriptor) {
    Session session = device.core().session();
    session.leaks().drain();
    return session.entrance().make(() -> open(device, descriptor));
  }

  private static CudaEvent open(CudaDevice device, EventDescriptor descriptor) {
    EventOptions options = new EventOptions(descriptor.blockingSync(), false, true);
    long handle;
    try {
      Device on = device.core();
      byte[] checked = on.session().handles().checkedEvent(on, descriptor.handle());
      handle = on.context().ipcOpenEventHandle(on.id(), checked);
    } catch (CudaException e) {
      throw explained(e, descriptor.process().equals(device.core().session().process()));
    }
    CudaEvent event = registered(device, handle, options);
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

  /**
   * Milliseconds from one event to another, with about half a microsecond of resolution
   * (cuEventElapsedTime). On a simulated device the time is simulated.
   *
   * @throws IllegalStateException naming the event that has no timing or was not recorded
   * @throws CudaException NOT_READY, naming the event that is not done
   */
  public static double elapsedMillis(CudaEvent start, CudaEvent end) {
    Objects.requireNonNull(start, "start");
    Objects.requireNonNull(end, "end");
    start.checkMeasures("start");
    end.checkMeasures("end");
    if (start.device.cuda() != end.device.cuda()) {
      throw new IllegalArgumentException(
          "end: %s belongs to another Cuda than start".formatted(end));
    }
    start.checkDone("start");
    end.checkDone("end");
    CudaDriver driver = start.hold();
    try {
      end.hold();
      try {
        return driver.eventElapsedTime(start.device.id(), start.handle, end.handle);
      } finally {
        end.unhold();
      }
    } finally {
      start.unhold();
    }
  }

  /** The handle of the driver (CUevent). */
  public long handle() {
    mayBeCaptured = true; // by whoever has it from now on
    return handle;
  }

  /** The device whose streams can record it. */
  public CudaDevice device() {
    return device;
  }

  /** How it was made. */
  public EventOptions options() {
    return options;
  }

  /**
   * What another process imports the event by; the same each time (cuIpcGetEventHandle). That of an
   * imported event passes it on. Keep the event open as long as others use it.
   *
   * @throws IllegalStateException if the event is closed or was not made with {@link
   *     EventOptions#interprocess()}
   */
  public EventDescriptor descriptor() {
    lifetime.checkOpen();
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
    CudaDriver driver = hold();
    try {
      byte[] bytes = driver.ipcGetEventHandle(device.id(), handle);
      return new EventDescriptor(
          options.blockingSync(), device.core().session().process(), device.uuid(), bytes);
    } finally {
      unhold();
    }
  }

  /**
   * Whether it was ever recorded; an imported event always counts as recorded, for nobody can tell.
   */
  public boolean isRecorded() {
    return recorded;
  }

  /** Records on this thread's current stream of the event's device. */
  public void record() {
    record(device.cuda().currentStream(device));
  }

  /**
   * Records in order of a stream of the same device, and forgets the record before (cuEventRecord).
   *
   * @throws IllegalArgumentException if the stream is another device's
   */
  public void record(CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    if (!stream.device().equals(device)) {
      throw new IllegalArgumentException(
          "%s of %s cannot be recorded on %s (expected: a stream of the same device)"
              .formatted(this, device, stream));
    }
    mayBeCaptured |= stream.state.isExposed();
    CudaDriver driver = stream.core().holdToQueue();
    try {
      use(own -> driver.eventRecord(device.id(), own, stream.state.handle));
      captured = stream.state.isExposed() && stream.state.capturing.goesOn();
    } finally {
      stream.core().unhold();
    }
    recordedOn = stream.state.confinedTo == null ? stream.state : null;
    recorded = true;
  }

  /**
   * Whether the work before the last record is done; true if it was never recorded (cuEventQuery).
   *
   * @throws CudaException if the work failed: an error is not "not yet"
   * @throws IllegalStateException if it was recorded in a stream that is capturing still
   */
  public boolean isDone() {
    CudaDriver driver = hold();
    try {
      checkNotCaptured("isDone");
      return driver.eventQuery(device.id(), handle);
    } catch (CudaException e) {
      throw explainedIfCaptured(e);
    } finally {
      unhold();
    }
  }

  /**
   * Waits for the work before the last record; returns at once if there was none
   * (cuEventSynchronize).
   *
   * @throws IllegalStateException if it was recorded in a stream that is capturing still
   */
  public void synchronize() {
    Callback inside = device.streams().callbacks().inside();
    if (inside == null) {
      synchronizeHere();
    } else {
      StreamState on = recorded ? recordedOn : null;
      inside.await(on, "synchronize() of " + this, this::isDone);
    }
  }

  private void synchronizeHere() {
    CudaDriver driver = hold();
    try {
      checkNotCaptured("synchronize");
      lifetime.await(() -> driver.eventSynchronize(device.id(), handle));
    } catch (CudaException e) {
      throw explainedIfCaptured(e);
    } finally {
      unhold();
    }
  }

  /** Refuses what would invalidate a capture that the event was recorded in. */
  private void checkNotCaptured(String call) {
    StreamState on = recordedOn;
    if (captured && (on == null || on.isCapturing())) {
      throw new IllegalStateException(
          "%s: %s was recorded in %s, which is capturing a graph"
              .formatted(call, this, on == null ? "a thread's stream" : on));
    }
  }

  /** Tells what a status of an event means that is in order but for its record. */
  static CudaException explainedIfCaptured(CudaException e) {
    return StreamCapture.hasTheRecord(e)
        ? e.explained(
            "the event was last recorded in a capture: its place is in the graph, and it tells"
                + " nothing before it is recorded again")
        : e;
  }

  /** Whether the event was closed. */
  public boolean isClosed() {
    return lifetime.ended();
  }

  /**
   * Ends the event; streams that wait for it go on waiting (cuEventDestroy). Does nothing the
   * second time.
   */
  @Override
  public void close() {
    lifetime.close();
  }

  @Override
  public String toString() {
    return "event 0x" + Long.toHexString(handle);
  }

  /** Whether a stream that waits for it can join a capture by that. */
  boolean mayBeCaptured() {
    return mayBeCaptured;
  }

  /** Has a call of the driver use the handle, which is not destroyed meanwhile. */
  void use(LongConsumer call) {
    hold();
    try {
      call.accept(handle);
    } finally {
      unhold();
    }
  }

  private CudaDriver hold() {
    lifetime.hold();
    try {
      return device.core().context();
    } catch (IllegalStateException e) {
      unhold();
      throw e;
    }
  }

  private void unhold() {
    try {
      lifetime.unhold();
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  private void checkMeasures(String which) {
    lifetime.checkOpen();
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
