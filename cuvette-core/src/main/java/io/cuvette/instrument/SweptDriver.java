package io.cuvette.instrument;

import io.cuvette.driver.CudaDriver;
import java.util.Objects;

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

  /** Whether the fault of this run was reached. */
  public boolean fired() {
    return faults.fired();
  }

  /**
   * Runs something whose calls do not fail and are not counted, nor those of other threads
   * meanwhile: to look at what the fault did.
   */
  public void withoutFaults(Runnable step) {
    Objects.requireNonNull(step, "step");
    faults.pause(step);
  }

  /** The sweep closes the driver. */
  @Override
  public void close() {}
}
