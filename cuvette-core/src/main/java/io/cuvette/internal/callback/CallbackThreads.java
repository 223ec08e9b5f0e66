package io.cuvette.internal.callback;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.session.ThreadStates;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The threads that callbacks run on. Platform threads: virtual ones could find all carriers in
 * calls that wait for a callback. Thread-safe.
 */
public final class CallbackThreads {
  private static final long IDLE_SECONDS = 5;

  private final Session session;
  private final ThreadStates states;

  private final ExecutorService threads =
      new ThreadPoolExecutor(
          0,
          Integer.MAX_VALUE,
          IDLE_SECONDS,
          TimeUnit.SECONDS,
          new SynchronousQueue<>(),
          Thread.ofPlatform()
              .daemon()
              .name("cuvette-callbacks-", 1)
              .inheritInheritableThreadLocals(false)
              .factory());

  public CallbackThreads(Session session) {
    this.session = session;
    this.states = session.threads();
  }

  /** Has a thread do something, now. */
  public void execute(Runnable task) {
    threads.execute(task);
  }

  public void shutdown() {
    threads.shutdown();
  }

  /**
   * Runs a callback on this thread, completes its future, lets its stream go on, and then does what
   * it put off.
   *
   * @param failure why its stream did not come to it, if that is so
   * @param returned gives the next callback of the stream its turn
   */
  public void run(Callback callback, @Nullable RuntimeException failure, Runnable returned) {
    states.begin(callback.stream.device, callback);
    try {
      Throwable thrown = failure == null || callback.always ? call(callback, failure) : null;
      complete(callback, failure == null ? thrown : with(failure, thrown));
    } finally {
      states.end();
      callback.release();
      returned.run();
      callback.runAfter();
    }
  }

  private static Throwable with(Throwable failure, @Nullable Throwable later) {
    if (later != null && later != failure) {
      failure.addSuppressed(later);
    }
    return failure;
  }

  /** Gives what the callback threw. */
  @SuppressWarnings("CatchingUnchecked")
  private @Nullable Throwable call(Callback callback, @Nullable RuntimeException failure) {
    try {
      session.callUser(callback, () -> callback.run(status(failure)));
      return null;
    } catch (Throwable e) { // the user's code: whatever it throws goes to the future
      return e;
    }
  }

  private static CudaStatus status(@Nullable RuntimeException failure) {
    return switch (failure) {
      case null -> CudaStatus.SUCCESS;
      case CudaException e -> e.status();
      default -> CudaStatus.DEINITIALIZED;
    };
  }

  /**
   * Completes the future before the stream goes on: who waits for the stream finds it done. What
   * depends on it may wait for the stream itself, and so runs on another thread.
   */
  private void complete(Callback callback, @Nullable Throwable thrown) {
    try {
      threads.execute(() -> completeHere(callback, thrown));
      Await.until(callback.done::isDone);
    } catch (RejectedExecutionException | OutOfMemoryError e) {
      states.end();
      callback.release(); // what depends on it must not find the stream waiting
      completeHere(callback, thrown);
    }
  }

  private void completeHere(Callback callback, @Nullable Throwable thrown) {
    try {
      if (thrown == null) {
        callback.done.complete(null);
      } else {
        callback.done.completeExceptionally(thrown);
      }
    } finally {
      states.end(); // the thread is not theirs
    }
  }
}
