package io.cuvette.benchmarks;

import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Has a test's programs use the simulated device, and puts the setting back. For one thread. */
public final class OnSimulatedDevice implements BeforeEachCallback, AfterEachCallback {
  private static final String DEVICE = "cuvette.device";
  private String before = "";

  @Override
  public void beforeEach(ExtensionContext context) {
    before = System.getProperty(DEVICE, "");
    System.setProperty(DEVICE, "sim");
  }

  @Override
  public void afterEach(ExtensionContext context) {
    if (before.isEmpty()) {
      System.clearProperty(DEVICE);
    } else {
      System.setProperty(DEVICE, before);
    }
  }
}
