package io.cuvette;

import io.cuvette.internal.PerThread;

/** What is current on each thread for one {@link Cuda}. Thread-safe. */
final class ThreadStates {
  private final PerThread<ThreadState> states;
  private final int devices;

  /** A thread begins with a device. */
  ThreadStates(CudaDevice first, int devices) {
    this.devices = devices;
    this.states = new PerThread<>(() -> new ThreadState(first, devices, null));
  }

  /** That of this thread. */
  ThreadState get() {
    return states.get();
  }

  /** Has this thread be inside a callback until {@link #end}, with the stream's device current. */
  void begin(Callback callback) {
    states.set(new ThreadState(callback.stream.device, devices, callback));
  }

  /** Has this thread begin anew. */
  void end() {
    states.remove();
  }

  /** Lets go of the states of all threads, which live longer than the {@link Cuda}. */
  void close() {
    states.close();
  }
}
