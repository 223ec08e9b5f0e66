package io.cuvette;

import org.jspecify.annotations.Nullable;

/**
 * What is current on one thread for one {@link Cuda}. It lives in a thread local, never in the OS
 * thread: a virtual thread may change its carrier between two driver calls.
 */
final class ThreadState {
  final Thread thread = Thread.currentThread();
  CudaDevice device;
  @Nullable Scope innermost;

  /** The allocator of the innermost {@code useAllocator} scope, if there is one. */
  @Nullable MemoryResource allocator;

  private final @Nullable CudaStream[] streams;
  private @Nullable Running running;

  /** The callback that this thread is inside of. */
  final @Nullable Callback callback;

  ThreadState(CudaDevice device, int devices, @Nullable Callback callback) {
    this.device = device;
    this.streams = new CudaStream[devices];
    this.callback = callback;
  }

  CudaStream stream(CudaDevice of) {
    CudaStream stream = streams[of.id()];
    return stream != null ? stream : firstStream(of);
  }

  private CudaStream firstStream(CudaDevice of) {
    return callback == null ? of.defaultStream() : of.cuda().callbacks().streamOf(of);
  }

  @Nullable CudaStream chosenStream(CudaDevice of) {
    return streams[of.id()];
  }

  void chooseStream(CudaDevice of, @Nullable CudaStream stream) {
    streams[of.id()] = stream;
  }

  /**
   * Notes that this thread is inside user code of a resource, to find an allocator that calls
   * itself.
   *
   * @throws IllegalStateException if it is inside it already
   */
  void enter(Object resource) {
    for (Running r = running; r != null; r = r.outer) {
      if (r.resource == resource) {
        throw new IllegalStateException(
            "re-entrant allocation: %s allocated from the current allocator, which is itself; "
                    .formatted(resource)
                + "let it call its upstream, such as MemoryResource.direct()");
      }
    }
    enterCode(resource);
  }

  /** Notes that this thread is inside code of the user; {@link #leave} follows. */
  void enterCode(Object what) {
    running = new Running(what, running);
  }

  /**
   * Checks that this thread is not inside code of the user that the library called.
   *
   * @throws IllegalStateException if it is: the caller would wait for itself
   */
  void checkOutsideCode(String call) {
    Running inside = running;
    if (inside != null) {
      throw new IllegalStateException(
          ("%s inside what the library called for %s (expected: outside of allocators, hooks,"
                  + " listeners, native functions and callbacks)")
              .formatted(call, inside.resource));
    }
  }

  void leave() {
    if (running != null) {
      running = running.outer;
    }
  }

  private record Running(Object resource, @Nullable Running outer) {}
}
