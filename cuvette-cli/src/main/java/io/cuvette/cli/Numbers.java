package io.cuvette.cli;

import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/**
 * Reads the numbers of options; what is none, or out of its range, is refused with it. Stateless.
 */
public final class Numbers {
  private Numbers() {}

  private static long parse(String text, long least, long greatest, String rule) {
    try {
      long number = Long.parseLong(text.strip());
      if (least <= number && number <= greatest) {
        return number;
      }
    } catch (NumberFormatException e) {
      // Refused below, as a number out of range is.
    }
    throw new TypeConversionException("'%s' (expected: %s)".formatted(text, rule));
  }

  private static int range(String text, int least, int greatest) {
    String rule = "a number from %d to %d".formatted(least, greatest);
    return (int) parse(text, least, greatest, rule);
  }

  /** Reads a number of times, at least one. Stateless. */
  public static final class Times implements ITypeConverter<Integer> {
    /** Made by picocli. */
    public Times() {}

    @Override
    public Integer convert(String text) {
      return range(text, 1, Integer.MAX_VALUE);
    }
  }

  /** Reads a number of points. Stateless. */
  public static final class Points implements ITypeConverter<Integer> {
    private static final int MOST = 100_000;

    /** Made by picocli. */
    public Points() {}

    @Override
    public Integer convert(String text) {
      return range(text, 1, MOST);
    }
  }

  /** Reads a seed. Stateless. */
  public static final class Seed implements ITypeConverter<Long> {
    /** Made by picocli. */
    public Seed() {}

    @Override
    public Long convert(String text) {
      return parse(text, Long.MIN_VALUE, Long.MAX_VALUE, "a 64-bit number");
    }
  }
}
