package io.cuvette;

import java.lang.ref.ReferenceQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The end of a handle of the driver, for whose work threads wait. Nobody who closes it waits for
 * these, for that may be what they wait for: the last of them to return ends it. Thread-safe.
 */
abstract class HandleLifetime extends Lifetime {
  private final AtomicInteger waiting = new AtomicInteger();

  HandleLifetime(Object of, @Nullable ReferenceQueue<Object> queue, @Nullable Throwable site) {
    super(of, queue, site);
  }

  /** Marks a holding thread as one that waits for work of the device, as long as that lasts. */
  final void await(Runnable wait) {
    waiting.incrementAndGet();
    try {
      wait.run();
    } finally {
      waiting.decrementAndGet();
    }
  }

  @Override
  final int waiting() {
    return waiting.get();
  }
}
