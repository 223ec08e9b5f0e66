package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.PriorityRange;
import java.lang.ref.Reference;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * A queue of work for one device: what is queued here runs in order. Two objects that stand for the
 * same stream of the driver are equal.
 *
 * <p>Thread-safe; only the per-thread default stream is confined to its thread.
 */
public final class CudaStream implements AutoCloseable {
  final StreamState state;
  private final @Nullable Object owner;
  private @Nullable Lifetime lifetime;

  /** Whether this wrapper was closed, which need not end the stream. */
  private final AtomicBoolean unwrapped = new AtomicBoolean();

  CudaStream(StreamState state, @Nullable Object owner) {
    this.state = state;
    this.owner = owner;
  }

  static CudaStream builtIn(Cuda cuda, CudaDevice device, long handle) {
    return new CudaStream(StreamState.foreign(cuda, device, handle), null);
  }

  static CudaStream create(CudaDevice device, StreamOptions options) {
    Cuda cuda = device.cuda();
    cuda.leaks().drain();
    cuda.streams().ended().poll();
    return cuda.owned().entrance().make(() -> open(device, options));
  }

  /** A stream of the library's own, apart from the hardware queues that most streams share. */
  static CudaStream ofLibrary(CudaDevice device) {
    StreamOptions options =
        StreamOptions.NON_BLOCKING.withPriority(device.priorityRange().greatest());
    Cuda cuda = device.cuda();
    CudaStream stream = cuda.owned().entrance().make(() -> open(device, options));
    cuda.leaks().closed(stream.state.lifetime());
    return stream;
  }

  private static CudaStream open(CudaDevice device, StreamOptions options) {
    Cuda cuda = device.cuda();
    PriorityRange range = device.priorityRange();
    if (!range.contains(options.priority())) {
      throw new IllegalArgumentException(
          "priority: %d (expected: %d, most urgent, to %d)"
              .formatted(options.priority(), range.greatest(), range.least()));
    }
    CudaDriver driver = device.context();
    long handle =
        driver.streamCreateWithPriority(
            device.id(), options.nonBlocking() ? 1 : 0, options.priority());
    StreamLifetime lifetime = null;
    try {
      StreamState state = cuda.streams().created(device, handle, !options.nonBlocking());
      CudaStream stream = new CudaStream(state, null);
      lifetime = state.endsWith(stream);
      stream.lifetime = lifetime;
      cuda.streams().list(state);
      return stream;
    } catch (OutOfMemoryError e) {
      if (lifetime != null) {
        lifetime.discard();
      }
      driver.streamDestroy(device.id(), handle);
      throw e;
    } catch (RuntimeException e) {
      Failures.closeAfter(e, () -> driver.streamDestroy(device.id(), handle));
      throw e;
    }
  }

  /** The handle of the driver: 0 null, 1 legacy default, 2 per-thread default, else CUstream. */
  public long handle() {
    state.expose();
    return state.handle;
  }

  /** The device whose work this stream takes. */
  public CudaDevice device() {
    return state.device;
  }

  /** What was given to {@link CudaDevice#wrapStream} to be kept reachable. */
  public @Nullable Object owner() {
    return owner;
  }

  /** The priority; lower is more urgent (cuStreamGetPriority). */
  public int priority() {
    CudaDriver driver = hold();
    try {
      return driver.streamGetPriority(device().id(), state.handle);
    } finally {
      unhold();
    }
  }

  /**
   * Whether the stream runs beside the null stream (cuStreamGetFlags, once for a wrapped stream).
   *
   * @throws IllegalStateException if that is not known yet of a wrapped stream that is capturing
   */
  public boolean isNonBlocking() {
    CudaDriver _ = hold();
    try {
      return !state.isBlocking("isNonBlocking");
    } finally {
      unhold();
    }
  }

  /** Whether work queued here goes into a graph instead of to the device (cuStreamIsCapturing). */
  public boolean isCapturing() {
    CudaDriver driver = hold();
    try {
      return driver.streamIsCapturing(device().id(), state.handle) != 0;
    } finally {
      unhold();
    }
  }

  /**
   * Whether all work queued so far is done (cuStreamQuery).
   *
   * @throws io.cuvette.driver.CudaException if the work failed: an error is not "not yet"
   * @throws IllegalStateException if the stream is capturing, which the question would invalidate
   */
  public boolean isDone() {
    return isDone("isDone");
  }

  private boolean isDone(String call) {
    CudaDriver _ = hold();
    try {
      checkNotCapturing(call);
      return state.isWorkDone();
    } finally {
      unhold();
    }
  }

  /**
   * Waits until all work queued so far is done (cuStreamSynchronize).
   *
   * @throws io.cuvette.driver.CudaException also for errors of earlier asynchronous work
   * @throws IllegalStateException if the stream is capturing, which waiting would invalidate
   */
  public void synchronize() {
    awaitWork();
    state.cuda.owned().settleClosed();
  }

  /** The wait itself, for a thread in the middle of something: it calls no upstream resource. */
  void awaitWork() {
    Callback inside = state.cuda.callback();
    if (inside == null) {
      synchronizeHere();
    } else {
      inside.await(state, "synchronize() of " + this, () -> isDone("synchronize"));
    }
  }

  private void synchronizeHere() {
    CudaDriver _ = hold();
    try {
      checkNotCapturing("synchronize");
      state.cuda.driverPools().giveBackIdle(stream -> stream == state);
      state.lifetime().await(this::awaitHeld);
    } finally {
      unhold();
    }
    state.cuda.driverPools().poll();
    state.cuda.streams().ended().pollAll();
  }

  private void awaitHeld() {
    while (!state.awaitWork()) {
      state.cuda.checkOpen();
      checkNotCapturing("synchronize");
    }
  }

  /** Records a new event with {@link EventOptions#DEFAULTS}; the caller closes it. */
  public CudaEvent record() {
    CudaEvent event = device().createEvent();
    try {
      return record(event);
    } catch (RuntimeException e) {
      Failures.closeAfter(e, event);
      throw e;
    }
  }

  /** Records an event of this device and returns it (cuEventRecord). */
  public CudaEvent record(CudaEvent event) {
    Objects.requireNonNull(event, "event");
    event.record(this);
    return event;
  }

  /** Makes work queued here from now on wait for an event, of any device (cuStreamWaitEvent). */
  public void waitFor(CudaEvent event) {
    Objects.requireNonNull(event, "event");
    if (event.device().cuda() != state.cuda) {
      throw new IllegalArgumentException("%s belongs to another Cuda".formatted(event));
    }
    CudaDriver driver = holdToQueue();
    try {
      Runnable wait =
          () -> event.use(own -> driver.streamWaitEvent(device().id(), state.handle, own));
      if (event.mayBeCaptured()) {
        state.capturing.join(wait);
      } else {
        wait.run();
      }
    } catch (CudaException e) {
      throw CudaEvent.explainedIfCaptured(e);
    } finally {
      unhold();
    }
  }

  /** Makes work queued here from now on wait for all work queued in another stream so far. */
  public void waitFor(CudaStream other) {
    Objects.requireNonNull(other, "other");
    if (other.state.cuda != state.cuda) {
      throw new IllegalArgumentException("%s belongs to another Cuda".formatted(other));
    }
    checkUsable();
    try (CudaEvent event = other.device().createEvent(EventOptions.ORDER_ONLY)) {
      event.record(other);
      waitFor(event);
    }
  }

  /**
   * Runs a callback in order of the stream: after the work queued so far, and before the work
   * queued later, which {@link #synchronize}, {@link #isDone}, events and other streams that wait
   * for this one see as part of its work. It runs on a daemon thread of this library, never on the
   * driver's: it may block and may call CUDA (cuLaunchHostFunc, cuStreamWaitValue32).
   *
   * <p>Inside the callback the current stream of every device is one of the library's own, for the
   * null stream may have to wait for this one. A call that would wait for the callback itself is
   * refused ({@code synchronize} of this stream or of the device, an operation that waits on this
   * stream), other waits take 10 seconds at most, and memory without a pool that is closed there is
   * freed afterwards. Keep it short: the stream waits, and so does every free of plain memory.
   *
   * @return completes after the callback, before the stream goes on; with the callback's exception
   *     if it threw, or with the device's error, and then the callback did not run
   * @throws IllegalStateException if the stream is capturing
   */
  public CompletableFuture<Void> addCallback(Runnable callback) {
    Objects.requireNonNull(callback, "callback");
    return submit(new Callback(state, _ -> callback.run(), false));
  }

  /** {@link #addCallback(Runnable)} with an argument. */
  public <T> CompletableFuture<Void> addCallback(StreamCallback<T> callback, T argument) {
    Objects.requireNonNull(callback, "callback");
    Objects.requireNonNull(argument, "argument");
    return submit(new Callback(state, _ -> callback.call(this, argument), false));
  }

  /**
   * {@link #addCallback(Runnable)} with an argument and the status of the stream: it also runs if
   * the device failed, up to a second later, or the Cuda was closed first. The future then has that
   * error.
   */
  public <T> CompletableFuture<Void> addCallback(
      StreamCallback.WithStatus<T> callback, T argument) {
    Objects.requireNonNull(callback, "callback");
    Objects.requireNonNull(argument, "argument");
    return submit(new Callback(state, status -> callback.call(this, status, argument), true));
  }

  /**
   * Completes soon after the work queued so far is done, exceptionally if the device failed. The
   * stream does not wait for what depends on the future.
   *
   * @throws IllegalStateException if the stream is capturing
   */
  public CompletableFuture<Void> onComplete() {
    return submit(new Callback(state, null, false));
  }

  private CompletableFuture<Void> submit(Callback callback) {
    checkUsable();
    try {
      checkNotCapturing(callback.call());
      return state.cuda.callbacks().submit(callback);
    } catch (CudaException e) {
      if (!e.status().losesContext()) {
        throw e;
      }
      return state.cuda.callbacks().failed(callback, e);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Makes this stream, and its device, current on this thread until the scope closes.
   *
   * @throws IllegalStateException if the stream is closed
   */
  public Scope use() {
    checkUsable();
    ThreadState thread = state.cuda.state();
    CudaDevice device = thread.device;
    CudaStream stream = thread.chosenStream(device());
    Scope scope =
        new Scope(
            thread,
            toString(),
            () -> {
              thread.device = device;
              thread.chooseStream(device(), stream);
            });
    thread.device = device();
    thread.chooseStream(device(), this);
    return scope;
  }

  /** Whether the stream was closed. Streams that exist from the start never are. */
  public boolean isClosed() {
    return unwrapped.get() || state.isClosing();
  }

  /**
   * Ends the stream; work queued so far still completes (cuStreamDestroy). Memory that pools cache
   * for it becomes usable by other streams, once that work is done. A wrapped stream is not
   * destroyed; the streams that exist from the start stay. Does nothing the second time.
   */
  @Override
  public void close() {
    if (lifetime != null) {
      lifetime.close();
    } else if (!state.isBuiltIn() && unwrapped.compareAndSet(false, true)) {
      state.unwrapped();
    }
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof CudaStream stream && stream.state == state;
  }

  @Override
  public int hashCode() {
    return System.identityHashCode(state);
  }

  @Override
  public String toString() {
    return state.toString();
  }

  void checkUsable() {
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
  CudaDriver hold() {
    checkWrapped();
    return state.hold();
  }

  void unhold() {
    try {
      state.unhold();
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /** As {@link #hold}, for work that is queued. */
  CudaDriver holdToQueue() {
    CudaDriver driver = hold();
    try {
      state.capturing.checkNotInterrupted();
      return driver;
    } catch (RuntimeException e) {
      unhold();
      throw e;
    }
  }

  /** Asks only where the answer can be yes: otherwise nobody has the handle. */
  void checkNotCapturing(String call) {
    if (state.isExposed() || state.isBuiltIn()) {
      state.checkNotCapturing(call, "");
    }
  }

  /** Before work that the driver waits for: inside a callback, waits itself, with its bounds. */
  void awaitInCallback(String call) {
    checkCanWait(call);
    Callback inside = state.cuda.callback();
    if (inside != null) {
      inside.await(state, call + " on " + this, () -> isDone(call));
    }
  }

  /** Refuses work that waits for a callback which this thread is inside of. */
  void checkCanWait(String call) {
    Callback callback = state.cuda.callback();
    if (callback != null) {
      hold();
      try {
        callback.checkCanWaitFor(state, call);
      } finally {
        unhold();
      }
    }
  }

  /** Refuses an allocation that the driver would make a part of the graph. */
  void checkAllocatesInOrder() {
    state.checkNotCapturing(
        "allocate", " (expected: a stream that is not, or memory of a MemoryPool)");
  }
}
