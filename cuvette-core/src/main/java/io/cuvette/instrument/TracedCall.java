package io.cuvette.instrument;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * One call of a driver as it happened. Immutable.
 *
 * @param sequence the number of the call in the order of starting, from 1
 * @param thread the name of the calling thread, {@code #id} if it has none
 * @param call the call with its arguments, such as {@code memAlloc(device=0, bytes=512)}
 * @param result the result as text, {@code void} for a call without one, null if the call failed
 * @param error what the call threw, null if it worked
 * @param startNanos when the call began, on the clock of {@link System#nanoTime}
 * @param elapsedNanos how long the call took
 */
public record TracedCall(
    long sequence,
    String thread,
    String call,
    @Nullable String result,
    @Nullable Throwable error,
    long startNanos,
    long elapsedNanos) {
  /** Creates a traced call. */
  public TracedCall {
    Objects.requireNonNull(thread, "thread");
    Objects.requireNonNull(call, "call");
  }

  /** The call on one line: number, thread, call, result or error, time. */
  @Override
  public String toString() {
    String outcome = error == null ? "= " + result : "! " + error;
    return "%d [%s] %s %s (%d ns)".formatted(sequence, thread, call, outcome, elapsedNanos);
  }
}
