package io.cuvette.testkit;

import io.cuvette.sim.SimulatedOptions;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.OptionalLong;
import java.util.StringJoiner;

/**
 * The settings of the simulator for a test: those of the user, then what the test needs. Stateless.
 */
final class SimulatedSettings {
  private SimulatedSettings() {}

  /**
   * The seed that the user chose: that of the system property {@code cuvette.seed}, else that of
   * the device's settings.
   *
   * @throws IllegalArgumentException if the simulator refuses these settings
   */
  static OptionalLong seed(String device) {
    SimulatedOptions read = SimulatedOptions.parse(ofUser(device));
    OptionalLong property = seedOfProperty();
    boolean isSet = property.isEmpty() && split(device).containsKey("seed");
    return isSet ? OptionalLong.of(read.seed()) : property;
  }

  /** The seed of the system property {@code cuvette.seed}, as the simulator reads it. */
  static OptionalLong seedOfProperty() {
    return System.getProperty("cuvette.seed", "").isBlank()
        ? OptionalLong.empty()
        : OptionalLong.of(SimulatedOptions.parse("").seed());
  }

  static String of(String device, CudaTest test, long seed) {
    Map<String, String> settings = split(device);
    put(settings, "devices", test.devices() > 1 ? Integer.toString(test.devices()) : "");
    put(settings, "memory", test.memory());
    put(settings, "peers", test.peers());
    settings.put("seed", Long.toString(seed));
    StringJoiner text = new StringJoiner(",", "sim:", "");
    settings.forEach((key, value) -> text.add(key + "=" + value));
    return text.toString();
  }

  private static String ofUser(String device) {
    int colon = device.indexOf(':');
    return colon < 0 ? "" : device.substring(colon + 1);
  }

  private static Map<String, String> split(String device) {
    Map<String, String> settings = new LinkedHashMap<>();
    for (String setting : ofUser(device).split(",", -1)) {
      String[] pair = setting.split("=", 2);
      if (pair.length == 2) {
        settings.put(pair[0].strip(), pair[1].strip());
      }
    }
    return settings;
  }

  private static void put(Map<String, String> settings, String key, String value) {
    if (!value.isEmpty()) {
      settings.put(key, value);
    }
  }
}
