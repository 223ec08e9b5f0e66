package io.cuvette.sim.internal.pace;

import java.util.random.RandomGenerator;

/**
 * Runs nothing until the host waits, as a device that is busy with the work of others. Who only
 * queries sees an end too, after a number of queries for each operation.
 */
public final class LazyPace implements Pace {
  private static final int MOST_QUERIES = 16;

  private final int queries;
  private int asked;

  /** Chooses the number of queries. */
  public LazyPace(RandomGenerator random) {
    this.queries = 1 + random.nextInt(MOST_QUERIES);
  }

  @Override
  public int afterCall() {
    return 0;
  }

  @Override
  public int afterBusyQuery() {
    asked = (asked + 1) % queries;
    return asked == 0 ? 1 : 0;
  }
}
