package io.cuvette.instrument.internal.order;

/** A capture of one or more streams into a graph. Not thread-safe. */
public final class KnownCapture {
  private boolean open = true;

  boolean isOpen() {
    return open;
  }

  void end() {
    open = false;
  }
}
