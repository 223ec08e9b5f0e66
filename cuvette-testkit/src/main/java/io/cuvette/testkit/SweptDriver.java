package io.cuvette.testkit;

import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.Faults;
import io.cuvette.instrument.ForwardingDriver;

/**
 * The driver of one run of a {@link FaultSweep}: one of its calls fails. Closing it does nothing.
 * Thread-safe.
 */
public final class SweptDriver extends ForwardingDriver {
  private final Faults faults;

  SweptDriver(CudaDriver failing, Faults faults) {
    super(failing);
    this.faults = faults;
  }

  /** {@return whether the fault of this run was reached} */
  public boolean fired() {
    return faults.fired();
  }

  /**
   * Runs a step whose calls do not fail and are not counted, nor those of other threads meanwhile,
   * to look at what the fault did.
   *
   * @param step the step, run once by this thread
   */
  public void withoutFaults(Runnable step) {
    faults.withoutFaults(step);
  }

  /** The sweep closes the driver. */
  @Override
  public void close() {}
}
