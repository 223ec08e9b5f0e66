package io.cuvette.instrument;

/** How long an injected fault lasts. */
public enum FaultMode {
  /** One call fails, the calls after it work again. */
  ONCE,
  /** A call fails and all calls after it. */
  FROM_THEN_ON
}
