package io.cuvette.internal.program;

import java.util.Objects;

/** Checks texts that C is given. Stateless. */
public final class Texts {
  private Texts() {}

  /**
   * Checks that a text can be given to C as UTF-8.
   *
   * @return the text
   * @throws IllegalArgumentException if it has a 0, or half of a pair of surrogates
   */
  public static String check(String what, String text) {
    Objects.requireNonNull(text, what);
    for (int i = 0; i < text.length(); i++) {
      char one = text.charAt(i);
      if (one == 0) {
        throw new IllegalArgumentException(
            "%s: character 0 at index %d, line %d (expected: none, C ends a text there)"
                .formatted(what, i, line(text, i)));
      }
      if (Character.isHighSurrogate(one)
          && i + 1 < text.length()
          && Character.isLowSurrogate(text.charAt(i + 1))) {
        i++;
      } else if (Character.isSurrogate(one)) {
        throw new IllegalArgumentException(
            "%s: half of a surrogate pair at index %d, line %d (expected: text that UTF-8 can have)"
                .formatted(what, i, line(text, i)));
      }
    }
    return text;
  }

  private static long line(String text, int index) {
    return 1 + text.substring(0, index).chars().filter(each -> each == '\n').count();
  }

  /**
   * Checks a text that is a part of an option.
   *
   * @return the text
   * @throws IllegalArgumentException if it is blank, or has a line break or what {@link #check}
   *     refuses
   */
  public static String checkOption(String what, String text) {
    checkLine(what, text);
    if (text.isBlank()) {
      throw new IllegalArgumentException("%s: '%s' (expected: not blank)".formatted(what, text));
    }
    return text;
  }

  /**
   * Checks a text of one line, which may be empty.
   *
   * @return the text
   * @throws IllegalArgumentException if it has a line break or what {@link #check} refuses
   */
  public static String checkLine(String what, String text) {
    check(what, text);
    if (text.indexOf('\n') >= 0 || text.indexOf('\r') >= 0) {
      throw new IllegalArgumentException(
          "%s: '%s' (expected: no line break)"
              .formatted(what, text.replace("\n", "\\n").replace("\r", "\\r")));
    }
    return text;
  }
}
