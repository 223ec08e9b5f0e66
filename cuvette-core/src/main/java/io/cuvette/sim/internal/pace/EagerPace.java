package io.cuvette.sim.internal.pace;

/** Runs work as soon as it is queued, as an idle device does. Immutable. */
public final class EagerPace implements Pace {

  @Override
  public int afterCall() {
    return ALL;
  }

  @Override
  public int afterBusyQuery() {
    return ALL;
  }

  @Override
  public boolean isPrompt() {
    return true;
  }
}
