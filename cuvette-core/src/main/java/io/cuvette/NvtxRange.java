package io.cuvette;

import io.cuvette.internal.observe.Observed;
import io.cuvette.internal.observe.OpenRange;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * A range of time that {@link NvtxDomain#rangeStart} has begun. One that is never closed is shown
 * by no recording, and as a range without an end by tools. Thread-safe.
 */
public final class NvtxRange implements AutoCloseable {
  private final Observed observed;
  private final @Nullable OpenRange range;
  private final AtomicBoolean open = new AtomicBoolean(true);

  NvtxRange(Observed observed, @Nullable OpenRange range) {
    this.observed = observed;
    this.range = range;
  }

  /** {@return whether the range has not ended} */
  public boolean isOpen() {
    return open.get();
  }

  /** Ends the range (nvtxDomainRangeEnd). Does nothing the second time. */
  @Override
  public void close() {
    if (open.compareAndSet(true, false) && range != null) {
      observed.end(range);
    }
  }
}
