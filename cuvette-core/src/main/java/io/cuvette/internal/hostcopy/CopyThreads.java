package io.cuvette.internal.hostcopy;

import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The threads that help transfers copy: one set for the process, of at most half as many as there
 * are processors. One without work ends after a tenth of a second. Thread-safe.
 */
public final class CopyThreads {
  /** From so many bytes on a copy has help of them. */
  public static final int HELPED_BYTES = 1 << 20;

  /** How many there are at most. */
  public static final int MOST = Runtime.getRuntime().availableProcessors() / 2;

  private static final long IDLE_MILLIS = 100;

  private static final ThreadPoolExecutor THREADS =
      new ThreadPoolExecutor(
          0,
          Math.max(1, MOST),
          IDLE_MILLIS,
          TimeUnit.MILLISECONDS,
          new SynchronousQueue<>(),
          Thread.ofPlatform()
              .daemon()
              .name("cuvette-copies-", 1)
              .inheritInheritableThreadLocals(false)
              .factory());

  private CopyThreads() {}

  /** Has a thread of the set do something now; false if none is free. */
  static boolean start(Runnable work) {
    if (MOST == 0) {
      return false;
    }
    try {
      THREADS.execute(work);
      return true;
    } catch (RejectedExecutionException | OutOfMemoryError e) { // all are busy; no more threads
      return false;
    }
  }
}
