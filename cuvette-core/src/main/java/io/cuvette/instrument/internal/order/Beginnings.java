package io.cuvette.instrument.internal.order;

import java.util.Set;
import java.util.concurrent.CopyOnWriteArraySet;

/**
 * What notes the launches that the driver has or is about to have, as soon as something of them
 * runs: others may learn of that before the call is back. Thread-safe.
 */
public class Beginnings {
  private final Set<Runnable> launches = new CopyOnWriteArraySet<>();

  protected Beginnings() {}

  /** Has a launch noted once this runs, if its call is not back by then; it can be run twice. */
  public final void begins(Runnable launch) {
    launches.add(launch);
  }

  /** Notes that the call of a launch is back. */
  public final void ends(Runnable launch) {
    launches.remove(launch);
  }

  /** Whether a call is not back. */
  protected final boolean areAny() {
    return !launches.isEmpty();
  }

  /** Notes that this runs, for a launch of which nothing was noted. */
  protected final void haveBegun() {
    launches.forEach(Runnable::run);
  }
}
