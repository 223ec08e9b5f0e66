package io.cuvette;

/** What pools keep for one stream, which knows no pools. Thread-safe. */
interface StreamLocal {
  /** The stream is closed: what is kept for it becomes everybody's. */
  void retire();
}
