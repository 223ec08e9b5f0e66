package io.cuvette.testkit.support;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.testkit.ScriptedDriver;

/** The Cuda of a second JVM, which must leave nothing behind. Confined to the program's thread. */
final class PeerDriver implements AutoCloseable {
  private final CudaDriver driver;
  private final Cuda cuda;

  PeerDriver(String specification) {
    driver = Drivers.open(specification);
    cuda =
        Cuda.open(
            CudaOptions.DEFAULTS
                .withMemoryLimit(MemoryLimit.none())
                .withDriver(ScriptedDriver.keptOpen(watched(driver))));
  }

  /** A race or a use of freed memory is an exception where it happens, as in the test's own JVM. */
  private static CudaDriver watched(CudaDriver driver) {
    return driver instanceof SimulatedDriver ? SanitizerDriver.throwing(driver) : driver;
  }

  Cuda cuda() {
    return cuda;
  }

  /** Closes the Cuda, and checks that no memory, stream or event is left on a simulated device. */
  @Override
  public void close() {
    try (driver) {
      cuda.close();
      String report = driver instanceof SimulatedDriver simulated ? simulated.report() : "";
      if (!report.isEmpty()) {
        throw new AssertionError("left in the second JVM: " + report);
      }
    }
  }
}
