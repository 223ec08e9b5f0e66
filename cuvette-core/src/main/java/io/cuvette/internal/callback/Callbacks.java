package io.cuvette.internal.callback;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.BargingLock;
import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.lifetime.Gate;
import io.cuvette.internal.session.DeferredFrees;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.DriverStream;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Runs user callbacks among the work of streams. The driver's thread only hands over: the stream
 * waits at a flag until the callback has returned on a thread of this library. The driver does not
 * call back after an error of the device, so a watcher queries the devices with callbacks pending,
 * twice a second, and fails their callbacks. Thread-safe.
 */
public final class Callbacks {
  private static final String CLOSED_FIRST =
      "Cuda was closed before the stream reached the callback";

  private static final long WATCH_MILLIS = 500;

  /** How often the watcher looks before new callbacks have to leave a gap for what was put off. */
  private static final int LOOKS_A_GAP = 6;

  private final Session session;
  private final CallbackQueue queue;
  private final CallbackThreads threads;

  private final DeferredFrees frees;

  /** Those that are queued, or running, or doing what they put off. */
  private final Set<Callback> open = ConcurrentHashMap.newKeySet();

  private final BargingLock lock = new BargingLock();
  private volatile @Nullable ScheduledExecutorService watcher;

  /** The watcher's. */
  private int looks;

  /** Where threads are while they queue a callback; shut when the Cuda begins to close. */
  private volatile Gate queueing = new Gate();

  /** When that was. */
  private volatile long shutNanos;

  private final CallbackTurns turns = new CallbackTurns();

  /** Whether a thread asks the devices; it may wait in the driver, unlike the watcher. */
  private final AtomicBoolean asking = new AtomicBoolean();

  public Callbacks(Session session) {
    this.session = session;
    this.frees = session.frees();
    this.queue = new CallbackQueue(session);
    this.threads = new CallbackThreads(session);
  }

  /**
   * Queues a callback, and what the stream waits at until it has returned.
   *
   * @throws IllegalStateException if the Cuda or the stream is closed
   * @throws CudaException if it could not be queued: it will not run
   */
  public CompletableFuture<Void> submit(Callback callback) {
    Gate gate = queueing;
    if (!gate.enter()) {
      throw new IllegalStateException("Cuda is closed");
    }
    try {
      watch();
      if (callback.holds()) {
        beginHold(callback, gate);
      }
      queue(callback);
    } catch (RuntimeException | Error e) {
      callback.release();
      throw e;
    } finally {
      gate.leave();
    }
    startIfReady(callback);
    return callback.done;
  }

  /** Waits outside of the driver until it may hold its stream, which its release ends. */
  private void beginHold(Callback callback, Gate gate) {
    DriverStream stream = callback.stream;
    Runnable leave = () -> turns.leave(stream);
    Runnable endHold = frees::endHold;
    boolean inside = session.isInsideCallback();
    turns.enter(stream, () -> inside || gate.isShut(), frees.patienceNanos());
    callback.whenReleased(leave);
    frees.beginHold();
    callback.whenReleased(endHold);
  }

  private void queue(Callback callback) {
    open.add(callback);
    try {
      queue.add(callback, () -> reached(callback));
      callback.queued();
    } catch (RuntimeException | Error e) {
      if (callback.begin()) {
        open.remove(callback);
      }
      throw e;
    }
  }

  /** On a thread of the driver, which may not call it. */
  private void reached(Callback callback) {
    callback.reached();
    startIfReady(callback);
    callback.awaitOnDriversThread();
  }

  private void startIfReady(Callback callback) {
    if (callback.isReady()) {
      turns.inTurn(callback, () -> startInTurn(callback));
    }
  }

  private void startInTurn(Callback callback) {
    if (callback.begin()) {
      start(callback, null);
    } else {
      turns.returned(callback); // it was given up
    }
  }

  private void start(Callback callback, @Nullable RuntimeException failure) {
    Runnable run =
        () -> {
          try {
            threads.run(callback, failure, () -> turns.returned(callback));
            frees.freeLeftInGap();
          } finally {
            open.remove(callback);
          }
        };
    try {
      threads.execute(run);
    } catch (RuntimeException | Error e) { // out of threads
      Objects.requireNonNull(watcher).execute(run);
    }
  }

  /** Waits for what callbacks that have returned put off. */
  public void awaitPutOff() {
    if (!open.isEmpty()) {
      List<Callback> returned = open.stream().filter(Callback::isReleased).toList();
      boolean _ =
          Await.until(() -> returned.stream().noneMatch(open::contains), Ending.PATIENCE_NANOS);
    }
    boolean _ = frees.freeLeft();
  }

  private void watch() {
    if (watcher != null) {
      return;
    }
    lock.lock();
    try {
      if (watcher == null) {
        ScheduledExecutorService made =
            Executors.newSingleThreadScheduledExecutor(
                Thread.ofPlatform()
                    .daemon()
                    .name("cuvette-callback-watcher")
                    .inheritInheritableThreadLocals(false)
                    .factory());
        var _ =
            made.scheduleWithFixedDelay(
                this::look, WATCH_MILLIS, WATCH_MILLIS, TimeUnit.MILLISECONDS);
        watcher = made;
      }
    } finally {
      lock.unlock();
    }
  }

  /** On a thread of its own, for the watcher is to be in time. */
  private void makeGap() {
    looks++;
    if (looks % LOOKS_A_GAP == 0 && frees.isAnyLeft()) {
      try {
        threads.execute(frees::freeLeft);
      } catch (RuntimeException | OutOfMemoryError e) { // out of threads
        looks--;
      }
    }
  }

  private void look() {
    makeGap();
    if (isOverdue()) {
      cancel();
    } else if (!open.isEmpty() && asking.compareAndSet(false, true)) {
      try {
        threads.execute(this::askAll);
      } catch (RuntimeException | OutOfMemoryError e) { // out of threads
        askAll();
      }
    }
  }

  private void askAll() {
    try {
      open.stream()
          .filter(callback -> !callback.isBegun())
          .map(callback -> callback.stream.device)
          .distinct()
          .forEach(this::ask);
    } finally {
      asking.set(false);
    }
  }

  /**
   * Asks for memory: unlike a stream's query that disturbs no capture, and it reports a lost
   * context too.
   */
  private void ask(Device device) {
    try {
      session.gate().run(() -> session.driver().devices().memGetInfo(device.id()));
    } catch (CudaException e) {
      open.stream()
          .filter(callback -> callback.stream.device == device)
          .forEach(callback -> fail(callback, notReached(callback, e)));
    }
  }

  /** Names the operation of the program, not the query that found the failure. */
  private static CudaException notReached(Callback callback, CudaException found) {
    CudaException failure =
        new CudaException(
            found.status(),
            "cuLaunchHostFunc(stream=%s)".formatted(callback.stream),
            "the device failed before the stream reached the callback, as a call found: "
                + found.getMessage());
    failure.initCause(found);
    return failure;
  }

  /** Has a callback fail that cannot be queued any more, for the device has failed. */
  public CompletableFuture<Void> failed(Callback callback, CudaException reason) {
    watch();
    open.add(callback);
    start(callback, notReached(callback, reason));
    return callback.done;
  }

  private void fail(Callback callback, RuntimeException reason) {
    if (callback.begin()) {
      start(callback, reason); // first: who waits for the stream may end the threads next
      callback.release();
    }
  }

  /**
   * Refuses more callbacks. Those that are queued still come, as part of the work that the Cuda
   * waits for, but none is waited for longer than {@link DeferredFrees#patienceNanos}.
   */
  public void shut() {
    shutNanos = System.nanoTime();
    queueing.shut();
  }

  /** The Cuda is not closed after all. */
  public void reopen() {
    queueing = new Gate();
  }

  private boolean isOverdue() {
    long now = System.nanoTime();
    long patienceNanos = frees.patienceNanos();
    return queueing.isShut()
        && now - shutNanos > patienceNanos
        && open.stream().anyMatch(callback -> callback.isOlder(now - patienceNanos));
  }

  /** Lets all streams go on, and fails what has not started. */
  private void cancel() {
    open.forEach(callback -> {
      fail(callback, new IllegalStateException(CLOSED_FIRST));
      callback.release();
    });
  }

  /** Ends those that are left, once the devices have been waited for. */
  public void close() {
    ScheduledExecutorService watching = watcher;
    if (watching != null) {
      cancel();
      boolean _ = Await.until(() -> open.isEmpty() || isOverdue(), frees.patienceNanos());
      frees.clear();
      watching.shutdown();
      threads.shutdown();
    }
  }
}
