package io.cuvette.examples;

/** An example found another result than it should. Immutable. */
public final class WrongResultException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Says what was found and what was expected. */
  public WrongResultException(String message) {
    super(message);
  }
}
