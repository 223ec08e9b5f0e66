package io.cuvette.testkit;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * One call of a {@link ScriptedDriver} that is kept from going on until it is released.
 * Thread-safe.
 */
public final class Hold implements AutoCloseable {
  /** Longer than a test may take to get to its release, so that a test that fails ends. */
  private static final long PATIENCE_SECONDS = 60;

  private final String name;
  private final AtomicBoolean taken = new AtomicBoolean();
  private final CountDownLatch begun = new CountDownLatch(1);
  private final CountDownLatch released = new CountDownLatch(1);

  Hold(String name) {
    this.name = name;
  }

  /**
   * Waits until a thread is held in the call.
   *
   * @throws AssertionError if none comes within a minute
   * @throws InterruptedException if the thread is interrupted
   */
  public void awaitBegun() throws InterruptedException {
    if (!begun.await(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
      throw new AssertionError("nobody called " + name);
    }
  }

  /** Lets the call go on. */
  public void release() {
    released.countDown();
  }

  /** The same as {@link #release}. */
  @Override
  public void close() {
    release();
  }

  /** Holds the first thread that comes; those after it go on. */
  void enter() {
    if (!taken.compareAndSet(false, true)) {
      return;
    }
    begun.countDown();
    try {
      boolean _ = released.await(PATIENCE_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
