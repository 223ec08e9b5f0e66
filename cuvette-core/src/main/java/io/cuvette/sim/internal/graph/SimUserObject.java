package io.cuvette.sim.internal.graph;

/** Something that graphs hold references to. Guarded by the driver's lock, but for the question. */
public final class SimUserObject {
  private final Runnable forget;
  private int references = 1;
  private volatile boolean destroyed;

  /** An object with one reference; {@code forget} runs with the last. */
  public SimUserObject(Runnable forget) {
    this.forget = forget;
  }

  public void retain() {
    references++;
  }

  public void release() {
    if (--references == 0) {
      destroyed = true;
      forget.run();
    }
  }

  /** Whether the last reference is gone. */
  public boolean isDestroyed() {
    return destroyed;
  }
}
