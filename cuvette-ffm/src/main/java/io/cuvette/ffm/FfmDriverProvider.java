package io.cuvette.ffm;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;
import io.cuvette.ffm.call.Startup;

/** Opens the NVIDIA driver, as the device {@code gpu}. Thread-safe. */
public final class FfmDriverProvider implements CudaDriverProvider {

  /** For the service loader. */
  public FfmDriverProvider() {}

  @Override
  public String name() {
    return "gpu";
  }

  @Override
  public boolean isAvailable() {
    try {
      Startup.init();
      return true;
    } catch (RuntimeException | LinkageError e) {
      return false;
    }
  }

  /**
   * Opens the NVIDIA driver.
   *
   * @param settings the empty string: a GPU has no settings
   */
  @Override
  public CudaDriver open(String settings) {
    if (!settings.isBlank()) {
      throw new IllegalArgumentException(
          "settings of the device gpu: %s (expected: none, a GPU has no settings)"
              .formatted(settings));
    }
    Startup.init();
    return FfmDriver.open();
  }
}
