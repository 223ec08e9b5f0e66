package io.cuvette.testkit.races;

import java.util.function.BooleanSupplier;

/**
 * Time of which those who come get a share each. Immutable.
 *
 * @param start a moment of System.nanoTime()
 * @param nanos how long it is; 0 without an end
 */
record Share(long start, long nanos) {

  /** Whether a share is over that begins now, if there are so many left to share the rest. */
  BooleanSupplier of(double count) {
    if (nanos == 0) {
      return () -> false;
    }
    long now = System.nanoTime();
    long share = (long) ((nanos - (now - start)) / count);
    return () -> System.nanoTime() - now >= share;
  }
}
