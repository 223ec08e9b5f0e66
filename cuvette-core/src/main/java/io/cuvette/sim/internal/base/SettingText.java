package io.cuvette.sim.internal.base;

import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/** Reads the values of settings; a failure names the key, the value and the rule. Stateless. */
public final class SettingText {
  private SettingText() {}

  public static long number(String key, String text, long min, long max) {
    String rule =
        min == Long.MIN_VALUE ? "a 64-bit number" : "a number from %d to %d".formatted(min, max);
    return number(key, text, min, max, rule);
  }

  /** The same, or a word that stands for another number. */
  public static long numberOr(
      String word, long meant, String key, String text, long min, long max) {
    String rule = "%s, or a number from %d to %d".formatted(word, min, max);
    return text.equals(word) ? meant : number(key, text, min, max, rule);
  }

  private static long number(String key, String text, long min, long max, String rule) {
    try {
      long number = Long.parseLong(text);
      if (min <= number && number <= max) {
        return number;
      }
    } catch (NumberFormatException e) {
      // Refused below, with the same rule as a number out of range.
    }
    throw refused(key, text, rule);
  }

  public static <E extends Enum<E>> E constant(String key, String text, E[] constants) {
    for (E constant : constants) {
      if (name(constant).equals(text)) {
        return constant;
      }
    }
    List<String> names = Stream.of(constants).map(SettingText::name).toList();
    throw refused(key, text, String.join(", ", names));
  }

  public static boolean flag(String key, String text) {
    return switch (text) {
      case "true" -> true;
      case "false" -> false;
      default -> throw refused(key, text, "true or false");
    };
  }

  private static String name(Enum<?> constant) {
    return constant.name().toLowerCase(Locale.ROOT);
  }

  public static IllegalArgumentException refused(String key, String text, String rule) {
    return new IllegalArgumentException("%s: '%s' (expected: %s)".formatted(key, text, rule));
  }
}
