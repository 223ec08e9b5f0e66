package io.cuvette.sim;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;

/**
 * Opens simulated drivers: the device specification {@code sim}, or {@code sim:} with the settings
 * of {@link SimulatedOptions#parse}. Thread-safe.
 */
public final class SimulatedDriverProvider implements CudaDriverProvider {

  /** What {@link java.util.ServiceLoader} calls. */
  public SimulatedDriverProvider() {}

  @Override
  public String name() {
    return "sim";
  }

  @Override
  public boolean isAvailable() {
    return true;
  }

  @Override
  public CudaDriver open(String settings) {
    return SimulatedDriver.open(SimulatedOptions.parse(settings));
  }
}
