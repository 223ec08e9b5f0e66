package io.cuvette.internal.base;

import java.math.BigDecimal;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Sizes as people write them: {@code 512}, {@code 8GiB}, {@code 1.5 GB}. Limits and the settings of
 * the simulated device are read here, and nowhere else. Stateless.
 */
public final class ByteSize {
  private static final Pattern FORM =
      Pattern.compile("\\s*([0-9]+(?:\\.[0-9]+)?)\\s*([a-zA-Z]*)\\s*");
  private static final Pattern PERCENT = Pattern.compile("\\s*([0-9]+(?:\\.[0-9]+)?)\\s*%\\s*");
  private static final Map<String, Long> UNITS =
      Map.ofEntries(
          Map.entry("", 1L),
          Map.entry("b", 1L),
          Map.entry("k", 1L << 10),
          Map.entry("kib", 1L << 10),
          Map.entry("kb", 1_000L),
          Map.entry("m", 1L << 20),
          Map.entry("mib", 1L << 20),
          Map.entry("mb", 1_000_000L),
          Map.entry("g", 1L << 30),
          Map.entry("gib", 1L << 30),
          Map.entry("gb", 1_000_000_000L),
          Map.entry("t", 1L << 40),
          Map.entry("tib", 1L << 40),
          Map.entry("tb", 1_000_000_000_000L));

  private static final String RULE =
      "a size with a unit of B, KiB, MiB, GiB, TiB, KB, MB, GB, TB, K, M, G or T, or whole bytes";

  private ByteSize() {}

  /**
   * Reads a number of bytes. A number without a unit, or with {@code B}, must be whole; with a
   * larger unit it may have a fraction and is cut to whole bytes, but never to none.
   *
   * @throws IllegalArgumentException naming the text and the rule
   */
  public static long parse(String name, String text) {
    return parse(name, text, "");
  }

  /**
   * The same where something else may be given too.
   *
   * @param or the message's words for that, such as {@code , or 50%}
   */
  public static long parse(String name, String text, String or) {
    Matcher form = FORM.matcher(text);
    Long unit = form.matches() ? UNITS.get(form.group(2).toLowerCase(Locale.ROOT)) : null;
    if (unit == null) {
      throw refused(name, text, RULE + or);
    }
    BigDecimal bytes = new BigDecimal(form.group(1)).multiply(BigDecimal.valueOf(unit));
    if (bytes.compareTo(BigDecimal.valueOf(Long.MAX_VALUE)) > 0) {
      throw refused(name, text, "less than 8 EiB" + or);
    }
    boolean whole = bytes.stripTrailingZeros().scale() <= 0;
    if (!whole && (unit == 1 || bytes.compareTo(BigDecimal.ONE) < 0)) {
      throw refused(name, text, "whole bytes" + or);
    }
    return bytes.longValue();
  }

  /**
   * Reads a percentage as a fraction from 0 to 1.
   *
   * @throws IllegalArgumentException naming the text and the rule
   */
  public static BigDecimal parsePercent(String name, String text) {
    Matcher form = PERCENT.matcher(text);
    BigDecimal fraction = form.matches() ? new BigDecimal(form.group(1)).movePointLeft(2) : null;
    boolean tiny = fraction != null && fraction.signum() != 0 && fraction.doubleValue() == 0;
    if (fraction == null || tiny || fraction.compareTo(BigDecimal.ONE) > 0) {
      throw refused(name, text, "0% to 100%");
    }
    return fraction;
  }

  /** A size with a binary unit and at most two decimals, such as {@code 1.50 GiB}. */
  public static String format(long bytes) {
    String[] units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int unit = 0;
    double value = bytes;
    while (Math.abs(value) >= 1024 && unit < units.length - 1) {
      value /= 1024;
      unit++;
    }
    return unit == 0 ? bytes + " B" : String.format(Locale.ROOT, "%.2f %s", value, units[unit]);
  }

  /** A number of things, such as {@code 1 block} or {@code 2 blocks}. */
  public static String count(long number, String thing) {
    return number + " " + thing + (number == 1 ? "" : "s");
  }

  private static IllegalArgumentException refused(String name, String text, String rule) {
    return new IllegalArgumentException("%s: '%s' (expected: %s)".formatted(name, text, rule));
  }
}
