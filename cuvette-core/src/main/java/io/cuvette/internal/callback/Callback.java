package io.cuvette.internal.callback;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.session.RunningCallback;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.DriverStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * One callback among the work of its stream, which goes on when the callback has returned. Inside
 * the callback nothing waits for that: calls that would are refused, memory whose release waits for
 * the device is released afterwards, and other waits have a bound. Thread-safe.
 */
public final class Callback implements RunningCallback {
  private static final int REACHED = 1;
  private static final int QUEUED = 2;
  private static final int STARTING = 4;
  private static final Runnable RETURNED = Callback::nothing;

  public final DriverStream stream;
  public final CompletableFuture<Void> done = new CompletableFuture<>();

  /** The user's code; null if the future is all there is. */
  private final @Nullable Consumer<CudaStatus> body;

  /** Whether the code is also run if the stream failed. */
  public final boolean always;

  /** Whether the stream takes turns with the null stream. */
  private boolean blocking;

  /** What the stream waits at; null if it does not wait, or the driver's thread does for it. */
  private CallbackFlags.@Nullable Flag flag;

  /** What follows when the stream goes on, with room for all there is. */
  private final List<Runnable> atRelease = new ArrayList<>(2);

  private final AtomicInteger conditions = new AtomicInteger();
  private final AtomicBoolean released = new AtomicBoolean();

  /** What waits for its turn; {@link #RETURNED} once nothing has to. */
  private final AtomicReference<@Nullable Runnable> next = new AtomicReference<>();

  /** What waits for the end of the callback; its thread's. */
  private final List<Runnable> after = new ArrayList<>();

  private final AtomicBoolean begun = new AtomicBoolean();
  private volatile long begunNanos = Long.MAX_VALUE;

  /** The callback that this thread is inside of, if it is. */
  public static @Nullable Callback inside(Session session) {
    return (Callback) session.state().callback;
  }

  public Callback(DriverStream stream, @Nullable Consumer<CudaStatus> body, boolean always) {
    this.stream = stream;
    this.body = body;
    this.always = always;
  }

  /** Whether later work of the stream waits. */
  public boolean holds() {
    return body != null;
  }

  /** What adds it, for messages. */
  public String call() {
    return holds() ? "addCallback" : "onComplete";
  }

  /**
   * Says how the stream is held.
   *
   * @param at null to have the driver's thread wait
   */
  public void holdBy(CallbackFlags.@Nullable Flag at, boolean isOnBlocking) {
    flag = at;
    blocking = isOnBlocking;
  }

  /** Queues the wait at the flag, if there is one. */
  public void queueWait(CudaDriver driver) {
    if (flag != null) {
      flag.queueWait(driver, stream);
    }
  }

  /** Whether a thread of the driver waits for the callback, in place of the stream. */
  public boolean waitsOnDriversThread() {
    return holds() && flag == null;
  }

  /** Takes note that the stream has come to it. */
  public void reached() {
    note(REACHED);
  }

  /** Takes note that all of it is queued. */
  public void queued() {
    note(QUEUED);
  }

  private void note(int condition) {
    int _ = conditions.accumulateAndGet(condition, (before, more) -> before | more);
  }

  /** True once, when it can start. */
  public boolean isReady() {
    return conditions.compareAndSet(REACHED | QUEUED, REACHED | QUEUED | STARTING);
  }

  /** Has a step run once this has returned; false if it has. */
  public boolean follow(Runnable step) {
    return next.compareAndSet(null, step);
  }

  private static void nothing() {}

  /** Gives the next callback of the stream its turn. */
  public void returned() {
    Runnable following = next.getAndSet(RETURNED);
    if (following != null) {
      following.run();
    }
  }

  /** True for the one caller that may start it, or give it up. */
  public boolean begin() {
    boolean first = begun.compareAndSet(false, true);
    if (first) {
      begunNanos = System.nanoTime();
    }
    return first;
  }

  public boolean isBegun() {
    return begun.get();
  }

  /** Whether it began before a moment. */
  public boolean isOlder(long nanos) {
    long began = begunNanos;
    return began != Long.MAX_VALUE && began - nanos < 0;
  }

  /** Keeps the driver's thread where it is that which waits. */
  public void awaitOnDriversThread() {
    if (waitsOnDriversThread()) {
      Await.until(this::isReleased);
    }
  }

  /** Has a step run when the stream goes on; for who adds it, before it is queued. */
  public void whenReleased(Runnable step) {
    atRelease.add(step);
  }

  /** Lets the stream go on. */
  public void release() {
    if (released.compareAndSet(false, true)) {
      if (flag != null) {
        flag.release();
      }
      atRelease.forEach(Runnable::run);
    }
  }

  /** Whether the stream goes on. */
  public boolean isReleased() {
    return released.get();
  }

  public void run(CudaStatus status) {
    if (body != null) {
      body.accept(status);
    }
  }

  @Override
  public void after(Runnable step) {
    after.add(step);
  }

  /**
   * Runs what was deferred. What fails is tried again later, and reported when the Cuda is closed.
   */
  public void runAfter() {
    Failures failures = new Failures();
    after.forEach(failures::run);
  }

  /**
   * Checks before work is queued in a stream and waited for.
   *
   * @throws IllegalStateException if that work would come after the callback
   */
  public void checkCanWaitFor(DriverStream other, String call) {
    if (isBefore(other, call)) {
      throw itself(call + " on " + other);
    }
  }

  /**
   * Waits inside the callback for work that is queued.
   *
   * @param of the stream of the work; null if that is not known
   * @throws IllegalStateException if it waits for the callback, or takes too long
   */
  public void await(@Nullable DriverStream of, String call, BooleanSupplier isDone) {
    if (isDone.getAsBoolean()) {
      return;
    }
    if (of != null && isBefore(of, call)) {
      throw itself(call);
    }
    long nanos = stream.session.frees().patienceNanos();
    if (!Await.until(isDone, nanos)) {
      throw new IllegalStateException(
          ("%s in %s: not done after %d ms (expected: work that does not wait for %s, which goes on"
                  + " when its callback has returned)")
              .formatted(call, this, TimeUnit.NANOSECONDS.toMillis(nanos), stream));
    }
  }

  /** Builds the exception for what waits for the callback itself. */
  public IllegalStateException itself(String call) {
    return new IllegalStateException(
        ("%s in %s would wait for the callback itself (expected: after it, or another stream;"
                + " currentStream() is one)")
            .formatted(call, this));
  }

  /** Whether what another stream does now comes after the callback. */
  private boolean isBefore(DriverStream other, String call) {
    if (other == stream) {
      return true;
    }
    return other.device == stream.device
        && (other.isLegacy() || stream.isLegacy())
        && blocking
        && other.isBlocking(call);
  }

  @Override
  public String toString() {
    return "a callback of " + stream;
  }
}
