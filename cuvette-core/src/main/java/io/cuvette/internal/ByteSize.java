package io.cuvette.internal;

import java.math.BigDecimal;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Sizes as people write them: {@code 512}, {@code 8GiB}, {@code 1.5 GB}. Stateless. */
public final class ByteSize {
  private static final Pattern FORM =
      Pattern.compile("\\s*([0-9]+(?:\\.[0-9]+)?)\\s*([a-zA-Z]*)\\s*");
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

  private ByteSize() {}

  /**
   * The bytes a text means; fractions are cut to whole bytes.
   *
   * @throws IllegalArgumentException naming the text and the rule
   */
  public static long parse(String name, String text) {
    Matcher form = FORM.matcher(text);
    Long unit = form.matches() ? UNITS.get(form.group(2).toLowerCase(Locale.ROOT)) : null;
    if (unit == null) {
      throw wrong(name, text);
    }
    BigDecimal bytes = new BigDecimal(form.group(1)).multiply(BigDecimal.valueOf(unit));
    if (bytes.compareTo(BigDecimal.valueOf(Long.MAX_VALUE)) > 0) {
      throw wrong(name, text);
    }
    return bytes.longValue();
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

  private static IllegalArgumentException wrong(String name, String text) {
    return new IllegalArgumentException(
        "%s: '%s' (expected: a number of bytes, with a unit such as KiB, MiB, GiB or TiB if wanted)"
            .formatted(name, text));
  }
}
