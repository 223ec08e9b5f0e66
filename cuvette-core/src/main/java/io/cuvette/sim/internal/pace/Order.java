package io.cuvette.sim.internal.pace;

import java.util.function.IntToLongFunction;

/** Chooses the stream whose first operation runs next. Confined to who guards it. */
@FunctionalInterface
public interface Order {

  /**
   * Chooses one of the streams that are ready.
   *
   * @param count how many there are, at least 1
   * @param id gives the number that a stream keeps for life, by its position from 0
   * @return the position
   */
  int next(int count, IntToLongFunction id);
}
