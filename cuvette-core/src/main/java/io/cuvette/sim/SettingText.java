package io.cuvette.sim;

/** Reads the numbers of settings; a failure names the key, the value and the rule. Stateless. */
final class SettingText {
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

  static IllegalArgumentException refused(String key, String text, String rule) {
    return new IllegalArgumentException("%s: '%s' (expected: %s)".formatted(key, text, rule));
  }
}
