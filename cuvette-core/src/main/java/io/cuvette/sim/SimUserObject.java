package io.cuvette.sim;

/** Something that graphs hold references to. Guarded by the driver's lock, but for the question. */
final class SimUserObject {
  private final Runnable forget;
  private int references = 1;
  private volatile boolean destroyed;

  /** An object with one reference; {@code forget} runs with the last. */
  SimUserObject(Runnable forget) {
    this.forget = forget;
  }

  void retain() {
    references++;
  }

  void release() {
    if (--references == 0) {
      destroyed = true;
      forget.run();
    }
  }

  /** Whether the last reference is gone. */
  boolean isDestroyed() {
    return destroyed;
  }
}
