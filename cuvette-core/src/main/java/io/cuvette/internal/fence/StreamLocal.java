package io.cuvette.internal.fence;

/** What pools keep for one stream, which knows no pools. Thread-safe. */
public interface StreamLocal {
  /** The stream is closed: what is kept for it becomes everybody's. */
  void retire();
}
