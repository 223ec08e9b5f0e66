package io.cuvette.instrument;

/** How long an injected fault lasts, and whether the call does its work. */
public enum FaultMode {
  /** One call fails, the calls after it work again. */
  ONCE,
  /** A call fails and all calls after it. */
  FROM_THEN_ON,
  /**
   * One call does its work and fails all the same, as where it reports an error of earlier work.
   * Counted are the calls that give nothing back to the caller, and the end of a capture; what a
   * call makes or finds out and does not return is as if it had not been called.
   */
  AFTER_EFFECT
}
