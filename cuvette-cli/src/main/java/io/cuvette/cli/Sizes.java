package io.cuvette.cli;

import java.util.Locale;

/** Sizes as people read them. Stateless. */
public final class Sizes {
  private static final String[] UNITS = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

  private Sizes() {}

  /** A size with a binary unit and at most two decimals, such as {@code 1.50 GiB}. */
  public static String format(long bytes) {
    double value = bytes;
    int unit = 0;
    while (value >= 1024 && unit < UNITS.length - 1) {
      value /= 1024;
      unit++;
    }
    return unit == 0 ? bytes + " B" : String.format(Locale.ROOT, "%.2f %s", value, UNITS[unit]);
  }
}
