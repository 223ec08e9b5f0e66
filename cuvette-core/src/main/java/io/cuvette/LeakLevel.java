package io.cuvette;

/**
 * How forgotten buffers are looked for: those the garbage collector takes before they were closed.
 */
public enum LeakLevel {
  /** Not at all: the memory stays taken until its pool or Cuda is closed. */
  OFF,
  /** Each is released and counted. */
  COUNT,
  /** As COUNT, and 1 allocation in 64 remembers where it was made. */
  SAMPLED,
  /** As COUNT, and every allocation remembers where it was made; slow. */
  FULL
}
