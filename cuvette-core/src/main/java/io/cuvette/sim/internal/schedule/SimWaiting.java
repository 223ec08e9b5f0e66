package io.cuvette.sim.internal.schedule;

import java.util.function.BooleanSupplier;

/** A way to wait for something outside of the driver. */
@FunctionalInterface
public interface SimWaiting {

  /** Waits until something holds, and lets queued work run meanwhile. */
  void await(BooleanSupplier condition);
}
