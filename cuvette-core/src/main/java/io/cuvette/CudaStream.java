package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.callback.Callback;
import io.cuvette.internal.completion.AsyncCopies;
import io.cuvette.internal.graph.GraphCapture;
import io.cuvette.internal.node.CapturedNode;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.stream.Streams;
import java.lang.ref.Reference;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A queue of work for one device: what is queued here runs in order. Two objects that stand for the
 * same stream of the driver are equal.
 *
 * <p>Thread-safe; only the per-thread default stream is confined to its thread.
 */
public final class CudaStream extends LaunchStream implements AutoCloseable {
  final DriverStream state;
  private final CudaDevice device;
  private final @Nullable Object owner;

  CudaStream(CudaDevice device, OpenStream core, @Nullable Object owner) {
    super(core);
    this.device = device;
    this.state = core.state;
    this.owner = owner;
    core.standsFor(this);
  }

  static CudaStream create(CudaDevice device, StreamOptions options) {
    Streams streams = device.streams();
    streams.session().leaks().drain();
    streams.ended().poll();
    return new CudaStream(device, OpenStream.create(streams, device.core(), options), null);
  }

  /** A stream of the library's own, apart from the hardware queues that most streams share. */
  static CudaStream ofLibrary(CudaDevice device) {
    return new CudaStream(
        device, OpenStream.createForLibrary(device.streams(), device.core()), null);
  }

  /**
   * {@return the handle of the driver: 0 null, 1 legacy default, 2 per-thread default, else
   * CUstream}
   */
  public long handle() {
    state.expose();
    return state.handle;
  }

  /** {@return the device whose work this stream takes} */
  public CudaDevice device() {
    return device;
  }

  /** {@return the object that {@link CudaDevice#wrapStream} keeps reachable} */
  public @Nullable Object owner() {
    return owner;
  }

  /**
   * {@return the priority; lower is more urgent (cuStreamGetPriority)}
   *
   * @throws CudaException if the driver reports an error
   */
  public int priority() {
    CudaDriver driver = hold();
    try {
      return driver.streams().streamGetPriority(state.device.id(), state.handle);
    } finally {
      unhold();
    }
  }

  /**
   * {@return whether the stream runs beside the null stream (cuStreamGetFlags, once for a wrapped
   * stream)}
   *
   * @throws IllegalStateException if that is not known yet of a wrapped stream that is capturing
   * @throws CudaException if the driver reports an error
   */
  public boolean isNonBlocking() {
    CudaDriver _ = hold();
    try {
      return !state.isBlocking("isNonBlocking");
    } finally {
      unhold();
    }
  }

  /**
   * {@return whether work queued here goes into a graph instead of to the device
   * (cuStreamIsCapturing)}
   *
   * @throws CudaException if the driver reports an error
   */
  public boolean isCapturing() {
    return core.isCapturing();
  }

  /**
   * {@return whether all work queued so far has completed (cuStreamQuery)}
   *
   * @throws io.cuvette.driver.CudaException if the work failed: an error is not "not yet"
   * @throws IllegalStateException if the stream is capturing, which the question would invalidate
   */
  public boolean isDone() {
    return core.isDone("isDone");
  }

  /**
   * Waits until all work queued so far is done (cuStreamSynchronize).
   *
   * @throws io.cuvette.driver.CudaException also for errors of earlier asynchronous work
   * @throws IllegalStateException if the stream is capturing, which waiting would invalidate
   */
  public void synchronize() {
    core.awaitWork();
    state.streams.relief().settleClosed();
  }

  /**
   * Records a new event with {@link EventOptions#DEFAULTS}; the caller closes it.
   *
   * @return the event
   */
  public CudaEvent record() {
    CudaEvent event = device().createEvent();
    try {
      return record(event);
    } catch (RuntimeException e) {
      Failures.runAfter(e, event::close);
      throw e;
    }
  }

  /**
   * Records an event of this device and returns it (cuEventRecord).
   *
   * @param event the event
   * @return the event
   * @throws CudaException if the driver reports an error
   */
  public CudaEvent record(CudaEvent event) {
    Objects.requireNonNull(event, "event");
    event.record(this);
    return event;
  }

  /**
   * Makes work queued here from now on wait for an event, of any device (cuStreamWaitEvent).
   *
   * @param event the event
   * @throws IllegalStateException if this is capturing, and the event was not recorded in the same
   *     capture
   * @throws CudaException if the driver reports an error
   */
  public void waitFor(CudaEvent event) {
    waitFor(Objects.requireNonNull(event, "event"), event);
  }

  private void waitFor(CudaEvent event, Object what) {
    if (event.device().cuda() != device.cuda()) {
      throw new IllegalArgumentException("%s belongs to another Cuda".formatted(event));
    }
    core.waitFor(event.core(), what);
  }

  /**
   * Makes work queued here from now on wait for an event of another library in this process
   * (cuStreamWaitEvent).
   *
   * @param event CUevent, of any device, which its owner keeps until this returns
   * @throws IllegalArgumentException if the handle is 0
   * @throws CudaException if the driver reports an error, such as a handle that it does not know
   */
  public void waitFor(long event) {
    core.waitFor(event);
  }

  /**
   * Makes work queued here from now on wait for all work queued in another stream so far.
   *
   * @param other the other stream
   * @throws IllegalStateException if this is capturing, and the other stream does not take part in
   *     the same capture
   * @throws CudaException if the driver reports an error
   */
  public void waitFor(CudaStream other) {
    Objects.requireNonNull(other, "other");
    if (other.state.session != state.session) {
      throw new IllegalArgumentException("%s belongs to another Cuda".formatted(other));
    }
    core.waitFor(other.core(), other);
  }

  /**
   * Queues a kernel (cuLaunchKernelEx). Returns before it has run.
   *
   * <p>An argument is a {@link Buffer}, whose address is passed; a number, character or boolean of
   * exactly the size of its parameter, so that a {@code double} is refused for a {@code float}; or
   * a {@link java.lang.foreign.MemorySegment}, on the heap or not, whose bytes are passed by value
   * as a structure. Buffers count as used by this stream, as in a copy.
   *
   * <p>Drivers older than CUDA 12.4 do not tell the parameters of a kernel: there, number and sizes
   * of the arguments cannot be checked.
   *
   * @param kernel a kernel of a module
   * @param config the configuration, checked against the stream's device
   * @param arguments the arguments, one for each parameter
   * @throws IllegalArgumentException if the number or size of the arguments is wrong, the device
   *     cannot run the configuration or has no access to a buffer, or something is of another Cuda
   * @throws IllegalStateException if the stream, the module or a buffer is closed
   * @throws CudaException if the driver reports an error
   */
  public void launch(LaunchableKernel kernel, LaunchConfig config, Object... arguments) {
    Objects.requireNonNull(kernel, "kernel");
    Objects.requireNonNull(config, "config");
    Objects.requireNonNull(arguments, "arguments");
    try {
      kernel.core().launch(core, config, arguments, BufferBase::argument);
    } finally {
      Reference.reachabilityFence(kernel);
    }
  }

  /**
   * Captures the work that a body queues here, with {@link CaptureOptions#DEFAULTS}.
   *
   * @param <X> what the body throws
   * @param body queues the work
   * @return the graph, which the caller closes
   * @throws X if the body throws it
   * @see #capture(CaptureOptions, CaptureBody)
   */
  public <X extends Exception> CudaGraph capture(CaptureBody<X> body) throws X {
    return capture(CaptureOptions.DEFAULTS, body);
  }

  /**
   * Captures the work that a body queues here, which does not run but becomes a graph
   * (cuStreamBeginCapture, cuStreamEndCapture). The stream is current on this thread meanwhile.
   * Other streams take part from when they wait for this one ({@link #waitFor(CudaStream)}), and
   * this one waits for them before the end. The capture ends whatever the body throws, and the
   * stream can be used again.
   *
   * @param <X> what the body throws
   * @param options the mode, and memory that several graphs share
   * @param body queues the work
   * @return the graph, which the caller closes
   * @throws X if the body throws it; then there is no graph
   * @throws IllegalArgumentException if the memory is that of another device
   * @throws IllegalStateException if the stream is the null stream or capturing, if something is
   *     closed, or for a mode other than RELAXED on a virtual thread
   * @throws CudaException if the capture was invalid, such as for work of another stream that this
   *     one did not wait for
   */
  public <X extends Exception> CudaGraph capture(CaptureOptions options, CaptureBody<X> body)
      throws X {
    Objects.requireNonNull(body, "body");
    beginCapture(options);
    try {
      try (Scope _ = use()) {
        body.run();
      }
      return endCapture(); // which the body may have closed this for
    } catch (Throwable e) { // whatever the body throws
      GraphCapture.giveUp(core, e);
      throw e;
    }
  }

  /**
   * Begins to capture the work that is queued here, until {@link #endCapture}, or until the stream
   * is closed (cuStreamBeginCapture). {@link #capture} does both.
   *
   * @param options the mode, and memory that several graphs share
   * @throws IllegalArgumentException if the memory is that of another device
   * @throws IllegalStateException if the stream is the null stream or capturing, if something is
   *     closed, or for a mode other than RELAXED on a virtual thread
   * @throws CudaException if the driver reports an error
   */
  public void beginCapture(CaptureOptions options) {
    GraphMemory memory = Objects.requireNonNull(options, "options").memory();
    GraphCapture.begin(core, options.mode(), memory == null ? null : memory.open());
  }

  /**
   * Adds a function of the host to the graph that is captured here, in order of this stream, as
   * {@link GraphWork#callback} does (cuGraphAddHostNode). Each launch runs it on a thread of the
   * driver: it must be short, and cannot call the device.
   *
   * @param function the function
   * @throws IllegalStateException if this stream is not capturing, or is closed
   * @throws CudaException if the driver reports an error
   */
  public void captureCallback(Runnable function) {
    CapturedNode.host(core, Objects.requireNonNull(function, "function"));
  }

  /**
   * Adds the nodes that a graph has now to the graph that is captured here, as one node in order of
   * this stream (cuGraphAddChildGraphNode).
   *
   * @param graph a graph of the same device, whose memory is its own or the capture's {@link
   *     GraphMemory}
   * @throws IllegalArgumentException if the graph has another device or other memory
   * @throws IllegalStateException if this stream is not capturing, or it or the graph is closed
   * @throws CudaException if the driver reports an error
   */
  public void captureChild(CudaGraph graph) {
    CapturedNode.child(core, Objects.requireNonNull(graph, "graph").core());
  }

  /**
   * Ends the capture that began here (cuStreamEndCapture).
   *
   * @return the graph, which the caller closes
   * @throws IllegalStateException if the stream is closed, is not capturing, or takes part in a
   *     capture that began in another
   * @throws CudaException if the capture was invalid: there is no graph, and the stream can be used
   *     again; or if this is not the thread that it has to end in
   */
  public CudaGraph endCapture() {
    return new CudaGraph(GraphCapture.end(core));
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
   * <p>If 16 callbacks of the stream have not returned, this waits for one of them first, 10
   * seconds at most; not inside a callback.
   *
   * @param callback the code, run once
   * @return completes after the callback, before the stream goes on; with the callback's exception
   *     if it threw, or with the device's error, and then the callback did not run
   * @throws IllegalStateException if the stream is capturing
   * @throws CudaException if the driver reports an error
   */
  public CompletableFuture<Void> addCallback(Runnable callback) {
    Objects.requireNonNull(callback, "callback");
    return submit(new Callback(state, _ -> callback.run(), false));
  }

  /**
   * Adds a callback with an argument, as {@link #addCallback(Runnable)} does.
   *
   * @param <T> the type of the argument
   * @param callback the code, run once
   * @param argument the argument
   * @return a future, completed after the callback
   */
  public <T> CompletableFuture<Void> addCallback(StreamCallback<T> callback, T argument) {
    Objects.requireNonNull(callback, "callback");
    Objects.requireNonNull(argument, "argument");
    return submit(new Callback(state, _ -> callback.call(this, argument), false));
  }

  /**
   * Adds a callback with an argument and the status of the stream: it also runs if the device
   * failed, up to a second later, or the Cuda was closed first. The future then has that error.
   *
   * @param <T> the type of the argument
   * @param callback the code, run once
   * @param argument the argument
   * @return a future, completed after the callback
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
   * @return the future
   * @throws IllegalStateException if the stream is capturing
   */
  public CompletableFuture<Void> onComplete() {
    return submit(new Callback(state, null, false));
  }

  /** Copies with a completion. */
  AsyncCopies copies() {
    return new AsyncCopies(core, this::onComplete, device.cuda().staging());
  }

  private CompletableFuture<Void> submit(Callback callback) {
    core.checkUsable();
    try {
      core.checkNotCapturing(
          callback.call(), " (expected: captureCallback, for a function in each launch)");
      return device.cuda().engine().callbacks().submit(callback);
    } catch (CudaException e) {
      if (!e.status().losesContext()) {
        throw e;
      }
      return device.cuda().engine().callbacks().failed(callback, e);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Makes this stream, and its device, current on this thread until the scope closes.
   *
   * @return the scope, closed by the same thread
   * @throws IllegalStateException if the stream is closed
   */
  public Scope use() {
    core.checkUsable();
    return device.cuda().current().use(this);
  }

  /** {@return whether the stream is closed} Streams that exist from the start never are. */
  public boolean isClosed() {
    return core.isClosed();
  }

  /**
   * Ends the stream; work queued so far still completes (cuStreamDestroy). Memory that pools cache
   * for it becomes usable by other streams, once that work is done. A wrapped stream is not
   * destroyed; the streams that exist from the start stay. Does nothing the second time.
   *
   * @throws CudaException if the driver reports an error
   */
  @Override
  public void close() {
    core.close();
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

  /** The stream as the engine knows it. */
  OpenStream core() {
    return core;
  }

  /** {@link #core()} of an argument. */
  static OpenStream coreOf(CudaStream stream) {
    return Objects.requireNonNull(stream, "stream").core;
  }

  /** The object that users have of an open stream. */
  static CudaStream of(OpenStream stream) {
    return (CudaStream) stream.face();
  }

  /** One for the asking of upstream, whose memory may stay cached for long: it ends nothing. */
  CudaStream forUpstream() {
    return core.ends() ? new CudaStream(device, new OpenStream(state, false), null) : this;
  }

  private CudaDriver hold() {
    return core.hold();
  }

  private void unhold() {
    core.unhold();
  }
}
