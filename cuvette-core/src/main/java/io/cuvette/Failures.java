package io.cuvette;

import org.jspecify.annotations.Nullable;

/**
 * Goes on with a clean-up after a failure: the first one is thrown at the end, the rest suppressed.
 */
final class Failures {
  private @Nullable RuntimeException first;

  static void closeAfter(RuntimeException failure, AutoCloseable resource) {
    try {
      resource.close();
    } catch (Exception e) {
      failure.addSuppressed(e);
    }
  }

  void run(Runnable step) {
    try {
      step.run();
    } catch (RuntimeException e) {
      if (first == null) {
        first = e;
      } else {
        first.addSuppressed(e);
      }
    }
  }

  void throwFirst() {
    if (first != null) {
      throw first;
    }
  }
}
