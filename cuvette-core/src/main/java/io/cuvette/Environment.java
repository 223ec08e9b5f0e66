package io.cuvette;

import java.util.Arrays;
import java.util.Locale;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** The settings taken from system properties and environment variables. Stateless. */
final class Environment {
  private Environment() {}

  static String device() {
    return device(System::getenv);
  }

  /** As with the limits, a variable that is set to nothing is not set. */
  static String device(UnaryOperator<@Nullable String> variables) {
    String variable = variables.apply("CUVETTE_DEVICE");
    return System.getProperty(
        "cuvette.device", variable == null || variable.isBlank() ? "gpu" : variable);
  }

  /** The failure of a device specification with the setting of the process that gave it, if any. */
  static IllegalArgumentException withOrigin(String device, IllegalArgumentException failure) {
    return withOrigin(device, failure, System::getenv);
  }

  static IllegalArgumentException withOrigin(
      String device, IllegalArgumentException failure, UnaryOperator<@Nullable String> variables) {
    String message = String.valueOf(failure.getMessage());
    String origin =
        device.equals(System.getProperty("cuvette.device"))
            ? "-Dcuvette.device"
            : device.equals(variables.apply("CUVETTE_DEVICE")) ? "CUVETTE_DEVICE" : null;
    return origin == null || message.startsWith("-D")
        ? failure
        : new IllegalArgumentException(origin + ": " + message, failure);
  }

  static LeakLevel leakLevel() {
    String text = System.getProperty("cuvette.leaks", LeakLevel.COUNT.name());
    try {
      return LeakLevel.valueOf(text.toUpperCase(Locale.ROOT));
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(
          "-Dcuvette.leaks: '%s' (expected: one of %s)"
              .formatted(text, Arrays.toString(LeakLevel.values())),
          e);
    }
  }

  static MemoryLimit memoryLimit(UnaryOperator<@Nullable String> variables) {
    for (String name : new String[] {"CUVETTE_GPU_MEMORY_LIMIT", "CUPY_GPU_MEMORY_LIMIT"}) {
      String text = variables.apply(name);
      if (text != null && !text.isBlank()) {
        return MemoryLimit.parse(name, text);
      }
    }
    return MemoryLimit.none();
  }
}
