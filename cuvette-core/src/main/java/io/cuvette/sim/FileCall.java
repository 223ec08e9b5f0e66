package io.cuvette.sim;

import java.io.IOException;
import org.jspecify.annotations.Nullable;

/**
 * Work with a file channel, which an interrupt of the thread would close for good.
 *
 * @param <T> what it gives
 */
@FunctionalInterface
interface FileCall<T extends @Nullable Object> {

  T call() throws IOException;

  /** Does the work as if the thread was not interrupted before, and leaves it interrupted. */
  static <T extends @Nullable Object> T uninterrupted(FileCall<T> call) throws IOException {
    boolean interrupted = Thread.interrupted();
    try {
      return call.call();
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
