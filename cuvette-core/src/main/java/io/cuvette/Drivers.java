package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.util.Optional;
import java.util.ServiceLoader;

/** Finds the driver that a device specification such as {@code sim:devices=2} names. Stateless. */
final class Drivers {
  private Drivers() {}

  static CudaDriver open(String specification) {
    String name = nameOf(specification);
    CudaDriverProvider provider = find(name).orElseThrow(() -> unknown(specification, name));
    int colon = specification.indexOf(':');
    return provider.open(colon < 0 ? "" : specification.substring(colon + 1));
  }

  static boolean isAvailable(String specification) {
    return find(nameOf(specification)).map(CudaDriverProvider::isAvailable).orElse(false);
  }

  private static String nameOf(String specification) {
    int colon = specification.indexOf(':');
    return (colon < 0 ? specification : specification.substring(0, colon)).strip();
  }

  private static Optional<CudaDriverProvider> find(String name) {
    return ServiceLoader.load(CudaDriverProvider.class, Drivers.class.getClassLoader()).stream()
        .map(ServiceLoader.Provider::get)
        .filter(provider -> provider.name().equals(name))
        .findFirst();
  }

  private static RuntimeException unknown(String specification, String name) {
    if (name.equals("gpu")) {
      return new CudaException(
          CudaStatus.NOT_FOUND,
          "Cuda.open(device=gpu)",
          "the module io.cuvette.ffm (artifact cuvette-ffm) is not on the path; add it, or run"
              + " without a GPU: CudaOptions.simulated(), -Dcuvette.device=sim or"
              + " CUVETTE_DEVICE=sim");
    }
    return new IllegalArgumentException(
        "device: '%s' (expected: gpu, sim, or sim:devices=2,memory=80GiB,seed=7)"
            .formatted(specification));
  }
}
