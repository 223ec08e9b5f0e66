package io.cuvette.internal.stream;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.StreamHandle;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.clock.StreamClock;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.fence.CaptureMemory;
import io.cuvette.internal.fence.IdleMark;
import io.cuvette.internal.fence.MarkedStream;
import io.cuvette.internal.fence.StreamLocal;
import io.cuvette.internal.fence.WorkMarker;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.ObjectEnding;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * One stream of the driver, shared by all objects that stand for it. It has the arenas that pools
 * keep for it, so that a handle value used again by the driver never meets the blocks of its
 * predecessor. Thread-safe.
 */
public final class DriverStream extends MarkedStream implements ObjectEnding.Ended {
  /** Instead of a number of wrappers: the last one was closed. */
  private static final int GONE = Integer.MIN_VALUE;

  public final Streams streams;
  private final boolean owned;

  /** The identity, which the driver never uses twice; 0 for those that exist from the start. */
  public long id;

  /** The thread that alone may use the stream: a per-thread default stream's. */
  public final @Nullable Thread confinedTo;

  /** What this stands for in the place of a stream; null for a stream of the driver. */
  private final @Nullable CaptureMemory memoryOf;

  /** Of which stream of a capture it has the memory. */
  private int number;

  /** Whether it takes turns with the null stream; null as long as that is not known. */
  private volatile @Nullable Boolean blocking;

  /** The wrappers of a foreign stream that are open; the last one to close ends the state. */
  private final AtomicInteger wrappers = new AtomicInteger();

  /** What pools keep for it. */
  public final StreamLocal local;

  /** Operations hold it as long as the driver is about the stream. */
  private ObjectEnding ending;

  private final Once destroyed = new Once();

  public final StreamCapture capturing = new StreamCapture(this);

  /** These are for a stream that can be captured. */
  private final IdleMark mark;

  /** Where to queue what must be in no graph. */
  public final SideStream side = new SideStream(this);

  public final StreamClock clock = new StreamClock(this, () -> ending.holds(), this::isIdle);

  /** A stream that somebody else has, or that exists from the start. */
  public static DriverStream foreign(Streams streams, Device device, long handle) {
    DriverStream state = new DriverStream(streams, device, handle, false, null, null);
    state.ending = new ObjectEnding(state, state.session, state, null);
    state.expose();
    return state;
  }

  /** What pools keep the memory of a capture by, beside the streams that capture. */
  public static DriverStream ofCapture(DriverStream stream, CaptureMemory memory, int number) {
    DriverStream state =
        new DriverStream(stream.streams, stream.device, stream.handle, false, null, memory);
    state.ending = new ObjectEnding(state, state.session, state, null);
    state.number = number;
    return state;
  }

  /** A stream that was made here; {@link #endsWith} follows. */
  public static DriverStream owned(Streams streams, Device device, long handle, boolean blocking) {
    DriverStream state = new DriverStream(streams, device, handle, true, null, null);
    state.blocking = blocking;
    state.clock.begin();
    return state;
  }

  /** The default stream of this thread. */
  public static DriverStream perThread(Streams streams, Device device) {
    DriverStream state =
        new DriverStream(
            streams, device, StreamHandle.PER_THREAD, false, Thread.currentThread(), null);
    state.ending = new ObjectEnding(state, state.session, state, null);
    state.expose();
    return state;
  }

  @SuppressWarnings("NullAway.Init") // the ending, right after
  private DriverStream(
      Streams streams,
      Device device,
      long handle,
      boolean owned,
      @Nullable Thread confinedTo,
      @Nullable CaptureMemory memoryOf) {
    super(device, handle);
    this.streams = streams;
    this.mark = new IdleMark(this, streams.ended());
    this.owned = owned;
    this.confinedTo = confinedTo;
    this.memoryOf = memoryOf;
    this.local = streams.local(this);
  }

  /** Makes the stream end with the object that stands for it. */
  public ObjectEnding endsWith(Object open) {
    ending = new ObjectEnding(open, session, this);
    ending.listed();
    return ending;
  }

  public ObjectEnding ending() {
    return ending;
  }

  /** Whether the handle is one of the three that exist from the start. */
  public boolean isBuiltIn() {
    return StreamHandle.isBuiltIn(handle);
  }

  public void checkUsable() {
    session.checkOpen();
    checkThread();
    ending.checkOpen();
  }

  /**
   * Keeps the handle from being destroyed until {@link #unhold}, for a call of the driver.
   *
   * @throws IllegalStateException if the stream or its Cuda is closed
   */
  public CudaDriver hold() {
    session.checkOpen();
    checkThread();
    ending.hold();
    calm.disturb();
    capturing.letEnd();
    try {
      return device.context(); // again: who closes the Cuda waits for those who hold a stream
    } catch (IllegalStateException e) {
      unhold();
      throw e;
    }
  }

  public void unhold() {
    ending.unhold();
  }

  private void checkThread() {
    if (isConfinedElsewhere()) {
      throw new WrongThreadException(
          "%s belongs to %s and cannot be used by %s"
              .formatted(this, confinedTo, Thread.currentThread()));
    }
  }

  @Override
  public boolean ask(BooleanSupplier question) {
    if (isConfinedElsewhere() || !ending.tryHoldAgain()) {
      return false;
    }
    try {
      return isExposed()
          ? capturing.alone(() -> !capturing.goesOn() && question.getAsBoolean())
          : !capturing.goesOn() && question.getAsBoolean();
    } finally {
      ending.unhold();
    }
  }

  /** From now on somebody else may begin to capture the stream, or to have it join a capture. */
  public void expose() {
    capturing.exposeToOthers(0);
  }

  /** The same for who holds the stream, once. */
  public void exposeHeld() {
    capturing.exposeToOthers(1);
  }

  /** Whether another thread can begin to capture it at any moment; for who holds it. */
  public boolean canBeCaptured() {
    return isExposed() && confinedTo == null;
  }

  /** Whether it is the null stream, which cannot be captured. */
  public boolean isLegacy() {
    return StreamHandle.isLegacy(handle);
  }

  /**
   * Whether it takes turns with the null stream; for who holds it.
   *
   * @throws IllegalStateException if only the driver knows, and the question would invalidate a
   *     capture
   */
  public boolean isBlocking(String call) {
    Boolean known = isBuiltIn() ? Boolean.TRUE : blocking;
    if (known == null) {
      capturing.check(call, "");
      known = (session.driver().streams().streamGetFlags(device.id(), handle) & 1) == 0;
      blocking = known;
    }
    return known;
  }

  /** Whether it stands for a capture, which is over once this is closed. */
  public boolean isOfCapture() {
    return memoryOf != null;
  }

  /** Whether its memory is for captured work alone. */
  public boolean isForGraphs() {
    return memoryOf != null && !memoryOf.isDone();
  }

  /** What it stands for, if it stands for captures. */
  public @Nullable CaptureMemory memoryOf() {
    return memoryOf;
  }

  /** Whether it has the memory that a stream takes in a capture. */
  public boolean isMemoryOf(DriverStream stream, Capture capture) {
    return memoryOf == capture.memory && number == capture.number(stream);
  }

  public boolean isOwned() {
    return owned;
  }

  @Override
  public boolean isExposed() {
    return capturing.isPossible();
  }

  @Override
  public boolean isExposedToOthers() {
    return capturing.isPossibleByOthers();
  }

  /**
   * The capture that the stream takes part in; null if in none, or if it cannot be queried here.
   */
  public @Nullable Capture capture() {
    if (!isExposed() || isConfinedElsewhere() || !ending.tryHoldAgain()) {
      return null;
    }
    try {
      return capturing.now();
    } finally {
      ending.unhold();
    }
  }

  /** Refuses what would invalidate a capture, saying what to do instead; also if it is closed. */
  public void checkNotCapturing(String call, String instead) {
    if (!ending.tryHoldAgain()) {
      ending.checkOpen();
    } else {
      try {
        capturing.check(call, instead);
      } finally {
        ending.unhold();
      }
    }
  }

  /** Whether it takes part in a capture; false if closed, or if that cannot be queried here. */
  public boolean isCapturing() {
    if (isConfinedElsewhere() || !ending.tryHoldAgain()) {
      return false;
    }
    try {
      return capturing.goesOn();
    } finally {
      ending.unhold();
    }
  }

  /** Whether this is the per-thread default stream of another thread. */
  public boolean isConfinedElsewhere() {
    return confinedTo != null && !confinedTo.equals(Thread.currentThread());
  }

  /** Whether this is the per-thread default stream of a thread that has ended. */
  public boolean isOfEndedThread() {
    return confinedTo != null && !confinedTo.isAlive();
  }

  @Override
  public DriverStream markedIn() {
    return isConfinedElsewhere() ? streams.nullStream(device) : this;
  }

  /** Whether all work queued so far is certainly done; false if that cannot be queried here. */
  public boolean isIdle() {
    if (memoryOf != null) {
      return memoryOf.isDone();
    }
    if (isClosed()) {
      return isLastWorkDone();
    }
    return isExposedToOthers() ? mark.isReached() : isIdleNow();
  }

  /** The same, but an idle stream has a moment to report it: for callers that do not poll. */
  public boolean isIdleSoon() {
    boolean marked = isExposedToOthers() && !isClosed(); // a capture's memory is not exposed
    return marked ? mark.isReachedSoon() : isIdle();
  }

  /** Whether all work queued so far is done, for who holds the stream; no capture is harmed. */
  public boolean isWorkDone() {
    return canBeCaptured()
        ? mark.isReachedSoon()
        : session.driver().streams().streamQuery(device.id(), handle);
  }

  /**
   * Waits for all work queued so far, for who holds the stream; no capture is harmed.
   *
   * @return false if one was in the way: the work may not be done
   */
  public boolean awaitWork() {
    if (canBeCaptured()) {
      return mark.await();
    }
    session.driver().streams().streamSynchronize(device.id(), handle);
    return true;
  }

  /** A marker for the work queued so far, recorded already; null if that work is done. */
  public @Nullable WorkMarker marker() {
    if (isIdle()) {
      return null;
    }
    if (isClosed()) {
      return lastWork();
    }
    WorkMarker marker = WorkMarker.of(this);
    try {
      marker.record();
    } catch (OutOfMemoryError e) {
      marker.abandon();
      throw e;
    }
    return marker;
  }

  /**
   * Waits for the work queued so far.
   *
   * @return false if it may not be done: it cannot be waited for here, or during a capture
   */
  public boolean await() {
    WorkMarker marker = memoryOf == null ? marker() : null;
    if (marker == null) {
      return memoryOf == null;
    }
    boolean isDone = false;
    try {
      marker.await();
      isDone = marker.isDone();
    } finally {
      if (!isDone) {
        streams.ended().add(marker); // nobody else has it
      }
    }
    return isDone;
  }

  @Override
  public void end(ObjectEnding caller) {
    session.gate().run(this::end);
  }

  @Override
  public void endNow(ObjectEnding caller) {
    endNow();
  }

  /**
   * Ends the stream for its user, once no operation uses it; later if it takes part in a capture
   * that began elsewhere. Can be called again after a failure.
   */
  public void end() {
    Failures failures = new Failures();
    boolean[] goesOn = new boolean[1];
    failures.run(() -> goesOn[0] = !isClosed() && !capturing.endIfPossible());
    failures.run(goesOn[0] ? () -> streams.endLater(this) : this::endNow);
    failures.throwFirst();
  }

  /** Hands the cached memory on, and destroys the stream if it is this library's. */
  public void endNow() {
    Failures failures = new Failures();
    if (!isClosed()) {
      handOn(failures);
    }
    if (owned) {
      failures.run(this::destroy);
    }
    failures.throwFirst();
  }

  private void handOn(Failures failures) {
    ending.beginAlone();
    failures.run(() -> streams.listener().beforeWait(stream -> stream == this));
    setLastWork(WorkMarker.ofDevice(this)); // the safe answer, should asking fail
    failures.run(this::markLastWork);
    setClosed();
    mark.forget();
    failures.run(side::close);
    ending.endAlone();
    failures.run(() -> clock.end(streams.ended())); // now: until then others can mark work
    retireArenas();
    streams.forget(this);
    failures.run(streams.ended()::poll);
  }

  /** Makes the cached memory everybody's. */
  public void retireArenas() {
    setClosed();
    local.retire();
  }

  private void destroy() {
    destroyed.free(() -> session.driver().streams().streamDestroy(device.id(), handle));
    capturing.own.over();
    ending.forget();
  }

  private void markLastWork() {
    WorkMarker marker = marker();
    if (marker == null) {
      setLastWork(null);
    } else if (marker.isRecorded()) {
      setLastWork(marker);
      streams.ended().add(marker);
    }
  }

  /** Counts a wrapper; false if the last one before was closed, and this with it. */
  public boolean wrapped() {
    return owned || wrappers.incrementAndGet() > 0;
  }

  public void unwrapped() {
    if (!owned && wrappers.decrementAndGet() == 0 && wrappers.compareAndSet(0, GONE)) {
      ending.close(this);
    }
  }

  @Override
  public boolean isClosing() {
    return !isBuiltIn() && ending.ended();
  }

  @Override
  public String toString() {
    return StreamHandle.name(handle) + " of " + device;
  }
}
