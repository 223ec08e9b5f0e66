package io.cuvette.instrument;

/** A capture of one or more streams into a graph. Not thread-safe. */
final class Capture {
  private boolean open = true;

  boolean isOpen() {
    return open;
  }

  void end() {
    open = false;
  }
}
