package io.cuvette.sim.internal.pace;

import java.util.random.RandomGenerator;

/** Runs a few operations after some calls, and none after others. */
public final class MixedPace implements Pace {
  private static final int MOST_CALLS = 16;
  private static final int SIZES = 5;

  private final RandomGenerator random;
  private final int calls;

  /** Queries in a row after which nothing ran. */
  private int inVain;

  /** Chooses after how many calls something runs on average. */
  public MixedPace(RandomGenerator random) {
    this.random = random;
    this.calls = 2 + random.nextInt(MOST_CALLS - 1);
  }

  @Override
  public int afterCall() {
    return random.nextInt(calls) == 0 ? 1 << random.nextInt(SIZES) : 0;
  }

  @Override
  public int afterBusyQuery() {
    int some = afterCall();
    inVain = some > 0 ? 0 : inVain + 1;
    if (inVain < MOST_CALLS) {
      return some;
    }
    inVain = 0;
    return 1; // a stream that does nothing else comes to its end in a moment
  }
}
