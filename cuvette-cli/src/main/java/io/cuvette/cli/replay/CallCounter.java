package io.cuvette.cli.replay;

import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.DriverProxy;

/** Counts the calls of a driver. Not thread-safe. */
final class CallCounter {
  private long calls;

  /** The calls so far. */
  long calls() {
    return calls;
  }

  /** A driver whose calls are counted. */
  CudaDriver around(CudaDriver driver) {
    return DriverProxy.of((method, arguments) -> {
      calls++;
      return DriverProxy.forward(driver, method, arguments);
    });
  }
}
