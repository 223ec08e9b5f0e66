package io.cuvette;

import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.lang.ref.ReferenceQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * One stream of the driver, shared by all {@link CudaStream}s that stand for it. It has the arenas
 * that pools keep for it, so that a handle value used again by the driver never meets the blocks of
 * its predecessor. Thread-safe.
 */
final class StreamState {
  /** Instead of a number of wrappers: the last one was closed. */
  private static final int GONE = Integer.MIN_VALUE;

  final Cuda cuda;
  final CudaDevice device;
  final long handle;

  /** The identity, which the driver never uses twice; 0 for those that exist from the start. */
  long id;

  /** The thread that alone may use the stream: a per-thread default stream's. */
  final @Nullable Thread confinedTo;

  private final boolean owned;

  /** What this stands for in the place of a stream; null for a stream of the driver. */
  private final @Nullable Capture memoryOf;

  /**
   * Whether somebody else may have begun to capture the stream: the handle was given out, or it
   * waits for a stream of which it was. The driver is asked about these alone.
   */
  private volatile boolean exposed;

  /** The capture that the stream joined last, which began in another; 0 for none. */
  private volatile long joined;

  /** The wrappers of a foreign stream that are open; the last one to close ends the state. */
  private final AtomicInteger wrappers = new AtomicInteger();

  final StreamArenas arenas = new StreamArenas(this);

  /** Operations hold it as long as the driver is about the stream. */
  private StreamLifetime lifetime;

  private final Once destroyed = new Once();

  /** Whether it has ended: {@link #lastWork} tells about its work from then on. */
  private volatile boolean closed;

  private @Nullable CudaStream unowned;

  /** Once closed: when its last work is done; null if it was done then. */
  private volatile @Nullable Guard lastWork;

  /** For a stream that can be captured. */
  private final IdleMark mark = new IdleMark(this);

  /** A stream that somebody else has, or that exists from the start. */
  static StreamState foreign(Cuda cuda, CudaDevice device, long handle) {
    StreamState state = new StreamState(cuda, device, handle, false, null, null);
    state.lifetime = StreamLifetime.foreign(state);
    state.expose();
    return state;
  }

  /** What pools keep the memory of a capture by, beside the streams that capture. */
  static StreamState ofCapture(StreamState stream, Capture capture) {
    StreamState state =
        new StreamState(stream.cuda, stream.device, stream.handle, false, null, capture);
    state.lifetime = StreamLifetime.foreign(state);
    return state;
  }

  /** A stream that was made here; {@link #endsWith} follows. */
  static StreamState owned(Cuda cuda, CudaDevice device, long handle) {
    return new StreamState(cuda, device, handle, true, null, null);
  }

  /** The default stream of this thread. */
  static StreamState perThread(Cuda cuda, CudaDevice device, ReferenceQueue<Object> forgotten) {
    StreamState state =
        new StreamState(cuda, device, StreamHandle.PER_THREAD, false, Thread.currentThread(), null);
    state.lifetime = StreamLifetime.perThread(state, forgotten);
    state.expose();
    return state;
  }

  @SuppressWarnings("NullAway.Init") // the lifetime, right after
  private StreamState(
      Cuda cuda,
      CudaDevice device,
      long handle,
      boolean owned,
      @Nullable Thread confinedTo,
      @Nullable Capture memoryOf) {
    this.cuda = cuda;
    this.device = device;
    this.handle = handle;
    this.owned = owned;
    this.confinedTo = confinedTo;
    this.memoryOf = memoryOf;
  }

  /** Makes the stream end with the object that stands for it. */
  StreamLifetime endsWith(CudaStream stream) {
    lifetime = StreamLifetime.owned(stream, this);
    return lifetime;
  }

  StreamLifetime lifetime() {
    return lifetime;
  }

  /** Whether the handle is one of the three that exist from the start. */
  boolean isBuiltIn() {
    return StreamHandle.isBuiltIn(handle);
  }

  /**
   * The stream for the asking of upstream, whose memory may stay cached for long: one that does not
   * keep a forgotten stream reachable.
   */
  CudaStream forUpstream(CudaStream asked) {
    if (!owned) {
      return asked;
    }
    CudaStream known = unowned;
    if (known == null) {
      known = new CudaStream(this, null);
      unowned = known;
    }
    return known;
  }

  void checkUsable() {
    cuda.checkOpen();
    lifetime.checkOpen();
    checkThread();
  }

  /**
   * Keeps the handle from being destroyed until {@link #unhold}, for a call of the driver.
   *
   * @throws IllegalStateException if the stream or its Cuda is closed
   */
  CudaDriver hold() {
    CudaDriver driver = device.context();
    checkThread();
    lifetime.hold();
    return driver;
  }

  void unhold() {
    lifetime.unhold();
  }

  private void checkThread() {
    if (isConfinedElsewhere()) {
      throw new WrongThreadException(
          "%s belongs to %s and cannot be used by %s"
              .formatted(this, confinedTo, Thread.currentThread()));
    }
  }

  /**
   * Asks the driver about this stream if that does no harm: the stream cannot be destroyed
   * meanwhile, this thread may use it, and it is not capturing, which a question would spoil. False
   * if it does.
   */
  boolean ask(BooleanSupplier question) {
    if (isConfinedElsewhere() || !lifetime.tryHoldAgain()) {
      return false;
    }
    try {
      return !isCapturing() && question.getAsBoolean();
    } finally {
      lifetime.unhold();
    }
  }

  /** The same for what is closed, perhaps when the driver answers no more. */
  @Nullable Capture captureAtEnd() {
    try {
      return capture();
    } catch (IllegalStateException e) {
      return null;
    }
  }

  /** From now on somebody else may begin to capture the stream, or to have it join a capture. */
  void expose() {
    if (!exposed && !isLegacy()) {
      exposed = true;
      cuda.captures().arePossible();
    }
  }

  /** Whether it is the null stream, which cannot be captured. */
  boolean isLegacy() {
    return StreamHandle.isLegacy(handle);
  }

  /** Whether it takes turns with the null stream; for who holds it. */
  boolean isBlocking() {
    return isBuiltIn() || (cuda.driver().streamGetFlags(device.id(), handle) & 1) == 0;
  }

  boolean isOwned() {
    return owned;
  }

  boolean isExposed() {
    return exposed;
  }

  /** The capture that the stream takes part in; null if in none, or if it cannot be asked here. */
  @Nullable Capture capture() {
    if (!exposed || isConfinedElsewhere() || !lifetime.tryHoldAgain()) {
      return null;
    }
    try {
      return cuda.captures().of(this);
    } finally {
      lifetime.unhold();
    }
  }

  /** Makes the stream wait for what may be part of a capture, which it joins by that. */
  void join(Runnable wait) {
    expose();
    boolean captured = capture() != null;
    wait.run();
    Capture capture = captured ? null : capture();
    if (capture != null) {
      joined = capture.id;
    }
  }

  /**
   * Ends the capture that began here, and gives its graph up. For who holds the stream, or ends it.
   *
   * @return false if the stream still takes part in a capture
   */
  boolean endCapture() {
    if (!exposed) {
      return true;
    }
    CudaDriver driver = cuda.driver();
    CaptureInfo info = driver.streamGetCaptureInfo(device.id(), handle);
    if (!info.isCapturing()) {
      return true;
    }
    if (info.isActive() && info.id() == joined) {
      return false;
    }
    try {
      driver.graphDestroy(driver.streamEndCapture(device.id(), handle));
      return true;
    } catch (CudaException e) {
      return !isCapturing(); // an invalid capture has ended, another thread's has not
    }
  }

  /** Checks that no capture of a blocking stream makes the null stream unusable. */
  void checkNotInterrupted() {
    if (isLegacy() && cuda.captures().isAnyPossible()) {
      checkNotCapturing("work", "");
    }
  }

  /** Refuses what would invalidate a capture, saying what to do instead; also if it is closed. */
  void checkNotCapturing(String call, String instead) {
    if (!lifetime.tryHoldAgain()) {
      lifetime.checkOpen();
    } else {
      try {
        refuseCapturing(call, instead);
      } finally {
        lifetime.unhold();
      }
    }
  }

  private void refuseCapturing(String call, String instead) {
    if (isCapturing()) {
      throw new IllegalStateException(
          "%s: %s is capturing a graph%s"
              .formatted(
                  call,
                  isLegacy() ? "a stream that takes turns with the " + this : toString(),
                  instead));
    }
  }

  /** The null stream takes part, so to speak, in the capture of any stream that blocks with it. */
  private boolean isCapturing() {
    try {
      return cuda.driver().streamIsCapturing(device.id(), handle) != 0;
    } catch (CudaException e) {
      if (e.status() == CudaStatus.STREAM_CAPTURE_IMPLICIT) {
        return true;
      }
      throw e;
    }
  }

  /** Whether this is the per-thread default stream of another thread. */
  boolean isConfinedElsewhere() {
    return confinedTo != null && !confinedTo.equals(Thread.currentThread());
  }

  /** Whether all work queued so far is certainly done; false also if that cannot be asked here. */
  boolean isIdle() {
    if (memoryOf != null) {
      return memoryOf.isDone();
    }
    if (closed) {
      return isLastWorkDone();
    }
    return exposed ? mark.isReached() : ask(() -> cuda.driver().streamQuery(device.id(), handle));
  }

  /** Whether it is closed and its work known to be done. */
  boolean isOver() {
    try {
      return closed && isLastWorkDone();
    } catch (CudaException e) {
      return false; // who frees the memory will be told
    }
  }

  /** Once closed: whether the work queued before is done. */
  boolean isLastWorkDone() {
    Guard last = lastWork;
    return last == null || last.isDone();
  }

  /** A guard for the work queued so far, recorded already; null if that work is done. */
  @Nullable Guard guard() {
    if (isIdle()) {
      return null;
    }
    if (closed) {
      return lastWork;
    }
    Guard guard = Guard.of(this);
    try {
      guard.record();
    } catch (OutOfMemoryError e) {
      guard.abandon();
      throw e;
    }
    return guard;
  }

  boolean isLastWork(Guard guard) {
    return guard == lastWork;
  }

  /** Waits for the work queued so far. */
  void await() {
    Guard guard = memoryOf == null ? guard() : null;
    if (guard != null) {
      try {
        guard.await();
      } catch (RuntimeException e) {
        cuda.streams().ended().add(guard); // nobody else has it
        throw e;
      }
    }
  }

  /**
   * Ends the stream for its lifetime, once no operation uses it; later if it takes part in a
   * capture that began elsewhere. Can be called again after a failure.
   */
  void end() {
    Failures failures = new Failures();
    boolean[] goesOn = new boolean[1];
    failures.run(() -> goesOn[0] = owned && !closed && isHeldByACapture());
    failures.run(goesOn[0] ? () -> cuda.streams().endLater(this) : this::endNow);
    failures.throwFirst();
  }

  private boolean isHeldByACapture() {
    try {
      return !endCapture();
    } catch (IllegalStateException e) {
      return false; // the driver answers no more
    }
  }

  /** Hands the cached memory on, and destroys the stream if it is this library's. */
  void endNow() {
    Failures failures = new Failures();
    if (!closed) {
      handOn(failures);
    }
    if (owned) {
      failures.run(() -> destroyed.run(this::destroy));
    }
    failures.throwFirst();
  }

  private void handOn(Failures failures) {
    lifetime.beginAlone();
    failures.run(() -> cuda.driverPools().giveBackIdle(stream -> stream == this));
    lastWork = Guard.ofDevice(this); // the safe answer, should asking fail
    failures.run(this::guardLastWork);
    closed = true;
    mark.forget();
    lifetime.endAlone();
    retireArenas();
    cuda.streams().forget(this);
    failures.run(cuda.streams().ended()::poll);
  }

  /** Makes the cached memory everybody's. */
  void retireArenas() {
    closed = true;
    arenas.retire();
  }

  private void destroy() {
    cuda.driver().streamDestroy(device.id(), handle);
    lifetime.forget();
  }

  private void guardLastWork() {
    Guard guard = guard();
    if (guard == null) {
      lastWork = null;
    } else if (guard.isRecorded()) {
      lastWork = guard;
      cuda.streams().ended().add(guard);
    }
  }

  /** Counts a wrapper; false if the last one before was closed, and this with it. */
  boolean wrapped() {
    return owned || wrappers.updateAndGet(count -> count < 0 ? count : count + 1) > 0;
  }

  void unwrapped() {
    if (!owned && wrappers.decrementAndGet() == 0 && wrappers.compareAndSet(0, GONE)) {
      lifetime.close();
    }
  }

  /** Whether its end has begun. */
  boolean isClosing() {
    return !isBuiltIn() && lifetime.ended();
  }

  boolean isClosed() {
    return closed;
  }

  @Override
  public String toString() {
    return StreamHandle.name(handle) + " of " + device;
  }
}
