package io.cuvette.testkit;

import org.jspecify.annotations.Nullable;

/** Runs all steps, whatever fails; the first failure is thrown at the end. Not thread-safe. */
final class Cleanup {
  private @Nullable Throwable first;

  void run(Runnable step) {
    try {
      step.run();
    } catch (RuntimeException | Error e) {
      if (first == null) {
        first = e;
      } else {
        first.addSuppressed(e);
      }
    }
  }

  void throwFirst() {
    if (first instanceof RuntimeException e) {
      throw e;
    }
    if (first instanceof Error e) {
      throw e;
    }
  }
}
