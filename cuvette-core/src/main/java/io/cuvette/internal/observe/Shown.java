package io.cuvette.internal.observe;

import io.cuvette.driver.NvtxAttributes;

/** How events show colors and payloads. Stateless. */
final class Shown {
  private Shown() {}

  static String color(NvtxAttributes shown) {
    return shown.hasColor() ? "%08X".formatted(shown.color()) : "";
  }

  static String payload(NvtxAttributes shown) {
    return switch (shown.payloadType()) {
      case NvtxAttributes.INT64 -> Long.toString(shown.payload());
      case NvtxAttributes.DOUBLE -> Double.toString(Double.longBitsToDouble(shown.payload()));
      default -> "";
    };
  }
}
