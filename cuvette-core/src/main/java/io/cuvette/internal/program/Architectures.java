package io.cuvette.internal.program;

import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** How architectures are written. Stateless. */
public final class Architectures {
  /** Two digits at least: nvJitLink ends the process for one. */
  private static final Pattern NAME = Pattern.compile("(?:sm_|compute_)([1-9]\\d{1,2})([af]?)");

  private Architectures() {}

  /**
   * The digits and the suffix of an architecture, such as {@code 90a}.
   *
   * @throws IllegalArgumentException if the text is none
   */
  public static String suffix(String architecture) {
    Matcher found = NAME.matcher(architecture);
    if (!found.matches()) {
      throw new IllegalArgumentException(
          "architecture: '%s' (expected: such as sm_90, sm_90a or compute_90)"
              .formatted(architecture));
    }
    return found.group(1) + found.group(2);
  }

  /**
   * Checks that a compiler knows an architecture.
   *
   * @throws IllegalArgumentException if it does not
   */
  static void check(String suffix, List<Integer> known, String compiler) {
    int number = Integer.parseInt(suffix.replaceAll("\\D", ""));
    if (!known.contains(number)) {
      throw new IllegalArgumentException(
          "architecture: 'sm_%s' (expected: one of %s, which %s compiles for)"
              .formatted(
                  suffix,
                  known.stream().map(each -> "sm_" + each).collect(Collectors.joining(", ")),
                  compiler));
    }
  }
}
