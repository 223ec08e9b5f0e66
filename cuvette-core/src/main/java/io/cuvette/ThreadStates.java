package io.cuvette;

import io.cuvette.internal.PerThread;

/** What is current on each thread for one {@link Session}. Thread-safe. */
final class ThreadStates {
  private final PerThread<ThreadState> states;

  /** A thread begins with a device. */
  ThreadStates(Device first) {
    this.states = new PerThread<>(() -> new ThreadState(first, null));
  }

  /** That of this thread. */
  ThreadState get() {
    return states.get();
  }

  /** Has this thread be inside a callback until {@link #end}, with a device current. */
  void begin(Device device, Object callback) {
    states.set(new ThreadState(device, callback));
  }

  /** Has this thread begin anew. */
  void end() {
    states.remove();
  }

  /** Lets go of the states of all threads, which live longer than the {@link Session}. */
  void close() {
    states.close();
  }
}
