package io.cuvette.sim;

import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import org.jspecify.annotations.Nullable;

/**
 * Work with a file channel, which an interrupt of the thread closes.
 *
 * @param <T> what it gives
 */
@FunctionalInterface
interface FileCall<T extends @Nullable Object> {

  T call() throws IOException;

  /**
   * Does the work as if the thread was not interrupted, and leaves it interrupted. The work opens
   * its channel itself: it is done again if an interrupt closes that.
   */
  static <T extends @Nullable Object> T uninterrupted(FileCall<T> call) throws IOException {
    boolean interrupted = Thread.interrupted();
    try {
      while (true) {
        try {
          return call.call();
        } catch (ClosedByInterruptException e) {
          interrupted |= Thread.interrupted();
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
