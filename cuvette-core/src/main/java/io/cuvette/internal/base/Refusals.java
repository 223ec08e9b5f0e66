package io.cuvette.internal.base;

import java.util.ArrayList;
import java.util.List;

/**
 * What upstream threw for want of memory during one allocation. It is tried again only when
 * something may have changed. Confined to the allocating thread.
 */
public final class Refusals {
  private static final int MOST = 8;

  private final List<RuntimeException> last = new ArrayList<>();
  private boolean worthAsking = true;

  /** Takes note of a refusal; the oldest of many are forgotten. */
  public void add(RuntimeException refusal) {
    worthAsking = false;
    if (!last.contains(refusal)) {
      last.add(refusal);
    }
    if (last.size() > MOST) {
      last.removeFirst();
    }
  }

  public boolean isWorthAsking() {
    return worthAsking;
  }

  /** Something may have changed since. */
  public void retry() {
    worthAsking = true;
  }

  /** Makes the last refusal the cause of a failure; the others are suppressed. */
  public <E extends RuntimeException> E explain(E failure) {
    if (!last.isEmpty()) {
      failure.initCause(last.removeLast());
      last.forEach(failure::addSuppressed);
    }
    return failure;
  }
}
