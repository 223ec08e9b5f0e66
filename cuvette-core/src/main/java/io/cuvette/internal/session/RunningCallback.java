package io.cuvette.internal.session;

/** The callback that a thread is inside of, as frees know it. */
public interface RunningCallback {
  /** Runs a step after the callback, which would wait for its stream. For its own thread. */
  void after(Runnable step);
}
