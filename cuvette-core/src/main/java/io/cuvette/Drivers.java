package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.regex.Pattern;

/**
 * Finds the driver that a device specification such as {@code sim:devices=2} names, and the device
 * that is current at first. Stateless.
 */
final class Drivers {
  private static final String GPU = "gpu";
  private static final Pattern NUMBER = Pattern.compile("[0-9]{1,4}");

  private Drivers() {}

  static CudaDriver open(String specification) {
    String name = nameOf(specification);
    String settings = settingsOf(specification);
    if (name.equals(GPU) && !settings.isBlank()) {
      if (!NUMBER.matcher(settings).matches()) {
        throw wrong(specification);
      }
      settings = ""; // the number is for firstDevice
    }
    CudaDriverProvider provider = find(name).orElseThrow(() -> unknown(specification, name));
    return provider.open(settings);
  }

  /**
   * The number of the device that is current at first: that of {@code gpu:1}, else 0.
   *
   * @throws IllegalArgumentException if there are not so many devices
   */
  static int firstDevice(String specification, int devices) {
    String settings = settingsOf(specification);
    if (!nameOf(specification).equals(GPU) || settings.isBlank()) {
      return 0;
    }
    int first = Integer.parseInt(settings);
    if (first >= devices) {
      throw new IllegalArgumentException(
          "device: '%s' (expected: gpu, or gpu:0 to gpu:%d)".formatted(specification, devices - 1));
    }
    return first;
  }

  static boolean isAvailable(String specification) {
    return find(nameOf(specification)).map(CudaDriverProvider::isAvailable).orElse(false);
  }

  private static String nameOf(String specification) {
    int colon = specification.indexOf(':');
    return (colon < 0 ? specification : specification.substring(0, colon)).strip();
  }

  private static String settingsOf(String specification) {
    int colon = specification.indexOf(':');
    return colon < 0 ? "" : specification.substring(colon + 1).strip();
  }

  private static Optional<CudaDriverProvider> find(String name) {
    return ServiceLoader.load(CudaDriverProvider.class, Drivers.class.getClassLoader()).stream()
        .map(ServiceLoader.Provider::get)
        .filter(provider -> provider.name().equals(name))
        .findFirst();
  }

  private static RuntimeException unknown(String specification, String name) {
    if (name.equals(GPU)) {
      return new CudaException(
          CudaStatus.NOT_FOUND,
          "Cuda.open(device=gpu)",
          "the module io.cuvette.ffm (artifact cuvette-ffm) is not on the path; add it, or run"
              + " without a GPU: CudaOptions.simulated(), -Dcuvette.device=sim or"
              + " CUVETTE_DEVICE=sim");
    }
    return wrong(specification);
  }

  private static IllegalArgumentException wrong(String specification) {
    return new IllegalArgumentException(
        ("device: '%s' (expected: gpu, sim, or sim:devices=2,memory=80GiB,seed=7;"
                + " gpu:1 makes device 1 current)")
            .formatted(specification));
  }
}
