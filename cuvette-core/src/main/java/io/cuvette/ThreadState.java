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

  ThreadState(CudaDevice device, int devices) {
    this.device = device;
    this.streams = new CudaStream[devices];
  }

  CudaStream stream(CudaDevice of) {
    CudaStream stream = streams[of.id()];
    return stream != null ? stream : of.defaultStream();
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
    running = new Running(resource, running);
  }

  void leave() {
    if (running != null) {
      running = running.outer;
    }
  }

  private record Running(Object resource, @Nullable Running outer) {}
}
