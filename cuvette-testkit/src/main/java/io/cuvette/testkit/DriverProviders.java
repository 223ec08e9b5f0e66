package io.cuvette.testkit;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.ConcurrentHashMap;

/** The drivers of this machine, by device specification. Thread-safe. */
final class DriverProviders {
  private static final Map<String, Boolean> AVAILABLE = new ConcurrentHashMap<>();
  private static final Map<String, Integer> COUNTS = new ConcurrentHashMap<>();

  private DriverProviders() {}

  /** Whether there is a driver of this name on the path, available or not. */
  static boolean isKnown(String specification) {
    return find(name(specification)).isPresent();
  }

  static boolean isAvailable(String specification) {
    return AVAILABLE.computeIfAbsent(
        name(specification), name -> find(name).map(CudaDriverProvider::isAvailable).orElse(false));
  }

  static int deviceCount(String specification) {
    return COUNTS.computeIfAbsent(
        specification,
        text -> {
          try (CudaDriver driver = open(text)) {
            return driver.devices().deviceGetCount();
          }
        });
  }

  static CudaDriver open(String specification) {
    String name = name(specification);
    CudaDriverProvider provider =
        find(name)
            .orElseThrow(() ->
                new IllegalArgumentException(
                    "device: '%s' (expected: one with a driver on the path)".formatted(name)));
    int colon = specification.indexOf(':');
    return provider.open(colon < 0 ? "" : specification.substring(colon + 1));
  }

  /** What is before the settings. */
  static String name(String specification) {
    int colon = specification.indexOf(':');
    return colon < 0 ? specification : specification.substring(0, colon);
  }

  private static Optional<CudaDriverProvider> find(String name) {
    return ServiceLoader.load(CudaDriverProvider.class).stream()
        .map(ServiceLoader.Provider::get)
        .filter(provider -> provider.name().equals(name))
        .findFirst();
  }
}
