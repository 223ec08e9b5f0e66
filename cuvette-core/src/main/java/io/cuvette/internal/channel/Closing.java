package io.cuvette.internal.channel;

import io.cuvette.driver.DescriptorCalls;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Closes descriptors, and waits for that a moment only. The last close of a file ends it, which a
 * peer that sent it can make take long: with a socket that lingers, or a file system of its own. A
 * daemon thread goes on then. It works without heap too, and each descriptor is closed once.
 * Thread-safe.
 */
public final class Closing implements Runnable {
  private static final long LONGEST_NANOS = TimeUnit.MILLISECONDS.toNanos(250);

  private final DescriptorCalls calls;
  private final int[] descriptors;
  private final int count;
  private final AtomicInteger next = new AtomicInteger();

  private Closing(DescriptorCalls calls, int[] descriptors, int count) {
    this.calls = calls;
    this.descriptors = descriptors;
    this.count = count;
  }

  /** Closes a descriptor. */
  public static void close(DescriptorCalls calls, int descriptor) {
    int[] one;
    try {
      one = new int[] {descriptor};
    } catch (OutOfMemoryError e) {
      calls.close(descriptor);
      return;
    }
    close(calls, one, 1);
  }

  /** Closes the first of some descriptors. */
  public static void close(DescriptorCalls calls, int[] descriptors, int count) {
    Closing closing;
    try {
      closing = new Closing(calls, descriptors, count);
    } catch (OutOfMemoryError e) {
      closeNow(calls, descriptors, count);
      return;
    }
    try {
      FutureTask<Void> task = new FutureTask<>(closing, null);
      Thread thread = Thread.ofPlatform().daemon().name("cuvette-close").start(task);
      await(task);
      if (!thread.isAlive()) {
        closing.run(); // what is left, where the thread had no heap
      }
    } catch (Error e) { // no thread, no heap, or no heap for loading what is missing
      closing.run();
    }
  }

  /** Closes a descriptor that came to nothing; a failure of that is added to the one that was. */
  public static void closeAfter(Throwable failure, DescriptorCalls calls, int descriptor) {
    try {
      close(calls, descriptor);
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
    }
  }

  /** Closes the first of some descriptors that are no peer's, however long that takes. */
  public static void closeNow(DescriptorCalls calls, int[] descriptors, int count) {
    RuntimeException first = null;
    for (int i = 0; i < count; i++) {
      first = close(calls, descriptors[i], first);
    }
    if (first != null) {
      throw first;
    }
  }

  @Override
  public void run() {
    RuntimeException first = null;
    for (int i = next.getAndIncrement(); i < count; i = next.getAndIncrement()) {
      first = close(calls, descriptors[i], first);
    }
    if (first != null) {
      throw first;
    }
  }

  private static @Nullable RuntimeException close(
      DescriptorCalls calls, int descriptor, @Nullable RuntimeException first) {
    try {
      calls.close(descriptor);
      return first;
    } catch (RuntimeException e) {
      return first == null ? e : first;
    }
  }

  /** Returns when it is over, or after a moment. */
  private static void await(Future<Void> closing) {
    long end = System.nanoTime() + LONGEST_NANOS;
    boolean interrupted = false;
    try {
      while (true) {
        try {
          closing.get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
          return;
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } catch (TimeoutException e) {
      // It goes on.
    } catch (ExecutionException e) {
      Throwable cause = e.getCause();
      if (cause instanceof Error error) {
        throw error;
      }
      throw cause instanceof RuntimeException failure ? failure : new IllegalStateException(cause);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
