package io.cuvette.testkit.support;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;
import java.util.ServiceLoader;

/** Opens drivers without a Cuda. Stateless. */
public final class Drivers {
  private Drivers() {}

  /** Opens the driver of a device specification, such as {@code gpu} or {@code sim:devices=2}. */
  public static CudaDriver open(String specification) {
    int colon = specification.indexOf(':');
    String name = colon < 0 ? specification : specification.substring(0, colon);
    return ServiceLoader.load(CudaDriverProvider.class).stream()
        .map(ServiceLoader.Provider::get)
        .filter(provider -> provider.name().equals(name))
        .findFirst()
        .orElseThrow()
        .open(colon < 0 ? "" : specification.substring(colon + 1));
  }
}
