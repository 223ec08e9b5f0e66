package io.cuvette.instrument.internal.order;

import org.jspecify.annotations.Nullable;

/** What an event stands for: the work before its last record. Not thread-safe. */
public final class EventMark {
  private Clock clock = new Clock();
  private @Nullable KnownCapture capture;

  /** Whether other processes may record the event too. */
  final boolean shared;

  public EventMark(boolean shared) {
    this.shared = shared;
  }

  /** Forgets the last record and takes a new one, in a capture or (null) outside. */
  void record(Clock clock, @Nullable KnownCapture capture) {
    this.clock = clock;
    this.capture = capture;
  }

  /** The work before the last record; none if it was captured. */
  public Clock clock() {
    return clock;
  }

  public @Nullable KnownCapture capture() {
    return capture != null && capture.isOpen() ? capture : null;
  }
}
