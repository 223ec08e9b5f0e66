package io.cuvette.examples;

import java.util.Objects;

/** Where an example says what it does and shows its results. */
public interface Output {

  /** Says something. */
  void say(String text);

  /** Shows a result that may be anything. */
  void show(String name, Object value);

  /** Shows a result that was found right. */
  void shown(String name, Object value);

  /**
   * Shows a result and checks it.
   *
   * @throws WrongResultException if it is not what was expected
   */
  default void check(String name, Object actual, Object expected) {
    if (!Objects.equals(actual, expected)) {
      throw new WrongResultException("%s: %s (expected: %s)".formatted(name, actual, expected));
    }
    shown(name, actual);
  }
}
