package io.cuvette.internal.fence;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What captures did with memory. Immutable.
 *
 * @param by those that used the memory, or took it, as far as their graphs could still run
 * @param elsewhere whether a stream other than its own used it in a capture
 * @param last the capture in its own stream when it was closed
 */
public record Captured(List<Capture> by, boolean elsewhere, @Nullable Capture last) {
  /** Nothing. */
  public static final Captured NEVER = new Captured(List.of(), false, null);

  /** Without those whose graphs are gone, and with one more. */
  public Captured with(Capture capture, boolean isElsewhere, boolean isLast) {
    List<Capture> open = new ArrayList<>(by.size() + 1);
    open.add(capture);
    for (Capture other : by) {
      if (!other.equals(capture) && !other.isDone()) {
        open.add(other);
      }
    }
    return new Captured(open, elsewhere || isElsewhere, isLast ? capture : last);
  }

  /** Whether noting that use would change nothing. */
  public boolean has(Capture capture, boolean isElsewhere, boolean isLast) {
    return by.contains(capture)
        && !capture.isDone()
        && (elsewhere || !isElsewhere)
        && (!isLast || capture.equals(last));
  }

  /** Those whose graphs may still run. */
  public List<Capture> open() {
    return by.stream().filter(capture -> !capture.isDone()).toList();
  }
}
