package io.cuvette.testkit;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.StringJoiner;

/**
 * The settings of the simulator for a test: those of the user, then what the test needs. Stateless.
 */
final class SimulatedSettings {
  private SimulatedSettings() {}

  static String of(String device, CudaTest test, long seed) {
    Map<String, String> settings = new LinkedHashMap<>();
    int colon = device.indexOf(':');
    if (colon >= 0) {
      for (String setting : device.substring(colon + 1).split(",", -1)) {
        String[] pair = setting.split("=", 2);
        settings.put(pair[0], pair.length == 2 ? pair[1] : "");
      }
    }
    put(settings, "devices", test.devices() > 1 ? Integer.toString(test.devices()) : "");
    put(settings, "memory", test.memory());
    put(settings, "peers", test.peers());
    settings.put("seed", Long.toString(seed));
    StringJoiner text = new StringJoiner(",", "sim:", "");
    settings.forEach((key, value) -> text.add(key + "=" + value));
    return text.toString();
  }

  private static void put(Map<String, String> settings, String key, String value) {
    if (!value.isEmpty()) {
      settings.put(key, value);
    }
  }
}
