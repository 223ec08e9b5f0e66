package io.cuvette.sim.internal.base;

import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * Work with a file channel, which an interrupt of the thread closes.
 *
 * @param <T> what it gives
 */
@FunctionalInterface
public interface FileCall<T extends @Nullable Object> {

  T call() throws IOException;

  /**
   * Does the work as if the thread was not interrupted, and leaves it interrupted. The work opens
   * its channel itself: it is done again if an interrupt closes that, by a thread that is not
   * reachable and so not interrupted. The caller waits for it and keeps its locks, which protect
   * the work.
   */
  static <T extends @Nullable Object> T uninterrupted(FileCall<T> call) throws IOException {
    boolean interrupted = Thread.interrupted();
    try {
      return call.call();
    } catch (ClosedByInterruptException e) {
      return elsewhere(call);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static <T extends @Nullable Object> T elsewhere(FileCall<T> call) throws IOException {
    CompletableFuture<T> result = new CompletableFuture<>();
    Thread.ofPlatform()
        .name("cuvette-sim-file")
        .daemon()
        .start(() -> {
          try {
            result.complete(call.call());
          } catch (Throwable e) { // the caller throws it
            result.completeExceptionally(e);
          }
        });
    try {
      // A join keeps the interrupts that come meanwhile.
      return result.join();
    } catch (CompletionException e) {
      if (e.getCause() instanceof IOException failure) {
        throw failure;
      }
      if (e.getCause() instanceof Error error) {
        throw error;
      }
      throw e.getCause() instanceof RuntimeException failure ? failure : e;
    }
  }
}
