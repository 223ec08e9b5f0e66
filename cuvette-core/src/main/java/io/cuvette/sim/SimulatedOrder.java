package io.cuvette.sim;

/** Which stream of a simulated device runs next, of those that do not wait for another. */
public enum SimulatedOrder {
  /** One of the others, chosen by the seed. */
  SEED,
  /** All of one stream before another, by random priorities with few points of change. */
  PRIORITY,
  /** The streams take turns. */
  FAIR,
  /** Each time any of them. */
  RANDOM
}
