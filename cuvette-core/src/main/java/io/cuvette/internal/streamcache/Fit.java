package io.cuvette.internal.streamcache;

import io.cuvette.internal.clock.StreamClock;

/**
 * The smallest free block of an arena that fits, how often memory was freed there so far, what its
 * stream's clock showed at the last time, and whether all that used what is free is done.
 */
public record Fit(StreamCache arena, long bytes, long frees, long freedAt, boolean isDone) {
  /** Whether all that used what was free then comes before what a stream does. */
  public boolean isBefore(StreamClock other) {
    return freedAt != 0 && other.isAfter(arena.stream.clock, StreamClock.NOT_NOTED, freedAt);
  }
}
