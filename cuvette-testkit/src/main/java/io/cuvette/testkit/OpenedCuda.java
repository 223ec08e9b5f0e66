package io.cuvette.testkit;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.instrument.SanitizerException;
import io.cuvette.instrument.SanitizerReport;
import io.cuvette.sim.SimulatedDriver;

/**
 * A Cuda of a test with the driver below it, which outlives it to be looked at.
 *
 * @param cuda the Cuda
 * @param driver the driver without decorators
 * @param live what the Cuda created through the driver and has not freed
 */
record OpenedCuda(Cuda cuda, CudaDriver driver, LiveHandles live) {

  static OpenedCuda open(CudaDriver driver, CudaOptions options, boolean sanitized) {
    // Tests make streams past the library.
    CudaDriver watched =
        sanitized
            ? SanitizerDriver.reporting(driver, OpenedCuda::refuse, Misuse.UNKNOWN_HANDLE)
            : driver;
    LiveHandles live = new LiveHandles(watched);
    return new OpenedCuda(Cuda.open(options.withDriver(live)), driver, live);
  }

  /** A free that waits for the device may come while a stream still works with the memory. */
  private static void refuse(SanitizerReport report) {
    boolean waits = report.sites().getFirst().call().startsWith("memFree(");
    if (report.misuse() != Misuse.FREE_WHILE_IN_USE || !waits) {
      throw new SanitizerException(report);
    }
  }

  /** Closes; {@code tidy} if the test should have closed everything itself. */
  void end(boolean tidy, int devices) {
    Cleanup cleanup = new Cleanup();
    if (tidy && !cuda.isClosed()) {
      cleanup.run(() -> checkNothingLeft(devices));
      cleanup.run(cuda.defaultMemoryPool()::assertConsistent);
      cleanup.run(cuda.defaultPinnedMemoryPool()::assertConsistent);
    }
    cleanup.run(cuda::close);
    cleanup.run(() -> endDriver(driver));
    cleanup.throwFirst();
  }

  private void checkNothingLeft(int devices) {
    Leftovers left;
    try {
      left = Leftovers.of(cuda, live, devices);
    } catch (CudaException e) {
      return; // a test of an error of a device, after which nothing can be freed
    }
    left.throwIfAny();
  }

  private static void check(boolean holds, String rule, Object found) {
    if (!holds) {
      throw new AssertionError("after the test: %s (expected: %s)".formatted(found, rule));
    }
  }

  /** Closes a driver on which everything must be back to zero. */
  static void endDriver(CudaDriver driver) {
    try (driver) {
      if (driver instanceof SimulatedDriver simulated && works(driver)) {
        check(simulated.report().isEmpty(), "nothing live in the simulator", simulated.report());
      }
    }
  }

  /** Whether things can be freed at all: not after an error of a device. */
  private static boolean works(CudaDriver driver) {
    try {
      for (int device = 0; device < driver.devices().deviceGetCount(); device++) {
        driver.devices().ctxSynchronize(device);
      }
      return true;
    } catch (CudaException e) {
      return false;
    }
  }
}
