package io.cuvette.sim.internal.pace;

/**
 * Decides how much queued work runs while the host goes on. Time passes between the calls of the
 * driver, never inside one that only queries. Confined to who guards it.
 */
public interface Pace {

  /** As much as there is. */
  int ALL = Integer.MAX_VALUE;

  /** Returns how many operations run after a call. */
  int afterCall();

  /** Returns how many operations run after a query that found pending work. */
  int afterBusyQuery();

  /** Whether work goes on by itself as soon as what it waits for outside of the driver is there. */
  default boolean isPrompt() {
    return false;
  }
}
