package io.cuvette.testkit;

import io.cuvette.driver.CudaDriver;
import java.util.Arrays;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Looks at the free memory of real devices before and after a test. It keeps one driver open for
 * all tests, so that no test pays for the devices' contexts, and restores those after each.
 * Confined to one run.
 */
final class DeviceMemoryWatch {
  /**
   * What a driver may keep for itself after a test: an H200's took 114 MiB at its first copies.
   * Small leaks are for the statistics and the sanitizer to find.
   */
  private static final long TOLERANCE_BYTES = 256L << 20;

  private static final ExtensionContext.Namespace NAMESPACE =
      ExtensionContext.Namespace.create(DeviceMemoryWatch.class);

  private CudaDriver driver;
  private long[] before = {};

  @SuppressWarnings("NullAway.Init")
  DeviceMemoryWatch() {}

  void start(ExtensionContext context, Subject subject) {
    driver =
        context
            .getRoot()
            .getStore(NAMESPACE)
            .computeIfAbsent(subject.specification(), DriverProviders::open, CudaDriver.class);
    before = freeBytes();
  }

  /** Undoes what a test did to the contexts that are kept open, in which the next one runs. */
  void restore() {
    EnabledPeers.takeBack(driver);
  }

  void check() {
    long[] after = freeBytes();
    for (int device = 0; device < after.length; device++) {
      if (after[device] < before[device] - TOLERANCE_BYTES) {
        throw new AssertionError(
            "device %d has %d bytes free after the test (expected: %d, less at most %d)"
                .formatted(device, after[device], before[device], TOLERANCE_BYTES));
      }
    }
  }

  private long[] freeBytes() {
    long[] free = new long[driver.devices().deviceGetCount()];
    Arrays.setAll(free, device -> driver.devices().memGetInfo(device).freeBytes());
    return free;
  }
}
