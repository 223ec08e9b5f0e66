package io.cuvette;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A step that is done once, whoever asks for it: the user who closes something, and the Cuda at its
 * end. If it failed, the next one tries again. Thread-safe.
 */
final class Once {
  private final AtomicBoolean done = new AtomicBoolean();

  void run(Runnable step) {
    if (done.compareAndSet(false, true)) {
      try {
        step.run();
      } catch (RuntimeException | Error e) {
        done.set(false);
        throw e;
      }
    }
  }
}
