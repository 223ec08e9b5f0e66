package io.cuvette.sim;

import java.math.BigDecimal;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads the numbers and sizes of settings; a failure names the key, the value and the rule.
 * Stateless.
 */
final class SettingText {
  private static final Pattern SIZE = Pattern.compile("(\\d+(?:\\.\\d+)?)\\s*([A-Za-z]*)");
  private static final String SIZE_RULE =
      "a size with a unit of B, KiB, MiB, GiB, TiB, KB, MB, GB or TB";
  private static final Map<String, Long> UNITS =
      Map.of(
          "",
          1L,
          "B",
          1L,
          "KIB",
          1L << 10,
          "MIB",
          1L << 20,
          "GIB",
          1L << 30,
          "TIB",
          1L << 40,
          "KB",
          1000L,
          "MB",
          1_000_000L,
          "GB",
          1_000_000_000L,
          "TB",
          1_000_000_000_000L);

  private SettingText() {}

  static long number(String key, String text, long min, long max) {
    try {
      long number = Long.parseLong(text);
      if (min <= number && number <= max) {
        return number;
      }
    } catch (NumberFormatException e) {
      // Refused below, with the same rule as a number out of range.
    }
    String rule =
        min == Long.MIN_VALUE ? "a 64-bit number" : "a number from %d to %d".formatted(min, max);
    throw refused(key, text, rule);
  }

  static long bytes(String key, String text) {
    Matcher matcher = SIZE.matcher(text);
    Long unit =
        matcher.matches() ? UNITS.get(matcher.group(2).toUpperCase(java.util.Locale.ROOT)) : null;
    if (unit == null) {
      throw refused(key, text, SIZE_RULE);
    }
    BigDecimal bytes = new BigDecimal(matcher.group(1)).multiply(BigDecimal.valueOf(unit));
    if (bytes.compareTo(BigDecimal.valueOf(Long.MAX_VALUE)) > 0) {
      throw refused(key, text, "less than 8 EiB");
    }
    return bytes.longValue();
  }

  static IllegalArgumentException refused(String key, String text, String rule) {
    return new IllegalArgumentException("%s: '%s' (expected: %s)".formatted(key, text, rule));
  }
}
