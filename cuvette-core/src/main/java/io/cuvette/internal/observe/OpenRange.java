package io.cuvette.internal.observe;

import org.jspecify.annotations.Nullable;

/** A range that has begun, for those who listened then. Used by one thread at a time. */
public final class OpenRange {
  final @Nullable RangeEvent event;

  /** The number of a range that was started, and not pushed. */
  long number;

  boolean pushed;

  OpenRange(@Nullable RangeEvent event) {
    this.event = event;
  }
}
