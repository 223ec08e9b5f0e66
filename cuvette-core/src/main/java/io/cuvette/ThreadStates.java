package io.cuvette;

/** What is current on each thread for one {@link Cuda}. Thread-safe. */
final class ThreadStates {
  private final ThreadLocal<ThreadState> states;
  private final int devices;

  /** A thread begins with a device. */
  ThreadStates(CudaDevice first, int devices) {
    this.devices = devices;
    this.states = ThreadLocal.withInitial(() -> new ThreadState(first, devices, null));
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
}
