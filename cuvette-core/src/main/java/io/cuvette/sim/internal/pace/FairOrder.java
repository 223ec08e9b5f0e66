package io.cuvette.sim.internal.pace;

import java.util.function.IntToLongFunction;

/** Lets the streams take turns, one operation each. */
public final class FairOrder implements Order {
  private int last = -1;

  @Override
  public int next(int count, IntToLongFunction id) {
    last = last + 1 < count ? last + 1 : 0;
    return last;
  }
}
