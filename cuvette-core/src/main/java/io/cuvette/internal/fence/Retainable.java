package io.cuvette.internal.fence;

/** What graphs keep until they are gone. Thread-safe. */
public interface Retainable {
  /**
   * Keeps it until {@link #letGo}.
   *
   * @throws IllegalStateException if it is closed
   */
  void retain();

  void letGo();
}
