package io.cuvette.internal.completion;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.PartialCopy;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * The completion of a copy, once both ends are let go of. Cancelling asks the copy to stop, which
 * completes this when it has, and says which bytes were written by then. Thread-safe.
 */
final class CopyCompletion extends CompletableFuture<Void> {
  private final long bytes;

  /** Whether a device has all of the copy, which nobody takes back. */
  private final boolean isQueued;

  private final Runnable letGo;

  /** Whether the copy says by itself what it has written. */
  private volatile boolean hasBegun;

  private volatile boolean isToStop;

  /**
   * Of a copy.
   *
   * @param letGo lets go of both ends
   */
  CopyCompletion(long bytes, boolean isQueued, Runnable letGo) {
    this.bytes = bytes;
    this.isQueued = isQueued;
    this.letGo = letGo;
  }

  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    if (isQueued || isDone()) {
      return isCancelled();
    }
    isToStop = true;
    return true;
  }

  boolean isToStop() {
    return isToStop;
  }

  /** Notes that the copy says what it has written from now on. */
  void begin() {
    hasBegun = true;
  }

  /** Completes it, after the copy or its failure; dependents run on this thread. */
  void end(@Nullable Throwable failure) {
    Throwable all = failure == null ? null : explained(failure);
    try {
      letGo.run();
    } catch (RuntimeException | Error e) {
      all = Failures.joined(all, e);
    }
    if (all == null) {
      complete(null);
    } else {
      completeExceptionally(all);
    }
  }

  private Throwable explained(Throwable failure) {
    if (hasBegun) {
      return failure;
    }
    try {
      String what = isQueued ? "which of them were written is not known" : "no byte was written";
      return PartialCopy.explained(failure, "copy of %d bytes: %s".formatted(bytes, what));
    } catch (Error e) { // it is one, or there is no Java heap for the text
      return failure;
    }
  }
}
