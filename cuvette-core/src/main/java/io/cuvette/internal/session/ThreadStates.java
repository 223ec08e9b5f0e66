package io.cuvette.internal.session;

import io.cuvette.internal.base.PerThread;

/** What is current on each thread for one {@link Session}. Thread-safe. */
public final class ThreadStates {
  private final PerThread<ThreadState> states;

  /** A thread begins with a device. */
  public ThreadStates(Device first) {
    this.states = new PerThread<>(() -> new ThreadState(first, null));
  }

  /** That of this thread. */
  public ThreadState get() {
    return states.get();
  }

  /** Has this thread be inside a callback until {@link #end}, with a device current. */
  public void begin(Device device, RunningCallback callback) {
    states.set(new ThreadState(device, callback));
  }

  /** Has this thread begin anew. */
  public void end() {
    states.remove();
  }

  /** Lets go of the states of all threads, which live longer than the {@link Session}. */
  public void close() {
    states.close();
  }
}
