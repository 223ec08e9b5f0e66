package io.cuvette.sim;

/**
 * When the queued work of a simulated device runs. It always runs while a thread waits for it, and
 * goes on after a while if the program neither waits nor calls the driver.
 */
public enum SimulatedPace {
  /** One of the others, chosen by the seed. */
  SEED,
  /** At once: when a call returns, all is done that does not wait for something. */
  EAGER,
  /** Late: only when a thread waits, or has queried several times. */
  LAZY,
  /** A few operations now and then, between the calls of the driver. */
  MIXED
}
