package io.cuvette.internal.lifetime;

import io.cuvette.internal.base.Await;
import java.lang.ref.ReferenceQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The end of a handle of the driver, for whose work threads wait. Nobody who closes it waits for
 * these, for that may be what they wait for: the last of them to return ends it. Thread-safe.
 */
public abstract class HandleLifetime extends Lifetime {
  /** How long a thread takes to come into the driver that is about to wait there. */
  private static final long ENTRY_NANOS = 10_000_000;

  private final AtomicInteger waiting = new AtomicInteger();

  /** How often those hold it that wait for the others, and not for each other. */
  private final AtomicInteger expecting = new AtomicInteger();

  public HandleLifetime(
      Object of, @Nullable ReferenceQueue<Object> queue, @Nullable Throwable site) {
    super(of, queue, site);
  }

  /** Marks a holding thread as one that waits for work of the device, as long as that lasts. */
  public final void await(Runnable wait) {
    waiting.incrementAndGet();
    try {
      wait.run();
    } finally {
      waiting.decrementAndGet();
    }
  }

  /**
   * Waits for the operations of others that hold it, a second at most; not for those that wait for
   * work of the device, which may take long, but for them to be inside the driver.
   *
   * @param mine how often the caller holds it
   */
  public final void awaitOperations(int mine) {
    expecting.addAndGet(mine);
    try {
      if (!Await.until(() -> holds() <= expecting.get(), ENTRY_NANOS)) {
        boolean _ = Await.until(() -> holds() - waiting() <= expecting.get(), PATIENCE_NANOS);
      }
    } finally {
      expecting.addAndGet(-mine);
    }
  }

  /** Waits for the operations of others that hold it, but not for those that wait for work. */
  public final void awaitQueueing() {
    Await.until(() -> holds() <= waiting());
  }

  @Override
  public final int waiting() {
    return waiting.get();
  }
}
