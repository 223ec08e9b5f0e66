package io.cuvette.internal.observe;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The open ranges of one thread. Nobody listened to those that are null. Confined to its thread.
 */
final class OpenRanges {
  private static final @Nullable OpenRange[] NONE = {};
  private static final int FEWEST = 16;

  private int depth;

  /** Those that somebody listens to, each at its depth; it may be shorter than the depth. */
  private @Nullable OpenRange[] known = NONE;

  int depth() {
    return depth;
  }

  void push(@Nullable OpenRange range) {
    if (range != null) {
      if (depth >= known.length) {
        known = Arrays.copyOf(known, Math.max(FEWEST, 2 * depth));
      }
      known[depth] = range;
    }
    depth++;
  }

  @Nullable OpenRange pop() {
    depth--;
    OpenRange range = null;
    if (depth < known.length) {
      range = known[depth];
      known[depth] = null;
    }
    if (depth == 0 && known.length > FEWEST) {
      known = NONE;
    }
    return range;
  }
}
