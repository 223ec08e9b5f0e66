package io.cuvette;

import io.cuvette.internal.base.Checks;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.pool.Upstream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.ThreadState;
import org.jspecify.annotations.Nullable;

/**
 * What is current on one thread for one {@link Cuda}, as far as users see it: the streams that were
 * chosen, the allocator, and the scopes that are open. Confined to its thread.
 */
final class Current {
  final ThreadState thread;
  final OpenScopes scopes = new OpenScopes();

  /** The allocator of the innermost {@code useAllocator} scope, if there is one. */
  @Nullable MemoryResource allocator;

  private final Cuda cuda;
  private final @Nullable CudaStream[] streams;

  private Current(Cuda cuda, ThreadState thread) {
    this.cuda = cuda;
    this.thread = thread;
    this.streams = new CudaStream[cuda.deviceCount()];
  }

  /** That of this thread. */
  static Current of(Cuda cuda) {
    ThreadState thread = cuda.session().state();
    if (thread.ofHandles instanceof Current known) {
      return known;
    }
    Current made = new Current(cuda, thread);
    thread.ofHandles = made;
    return made;
  }

  CudaDevice device() {
    return cuda.devices().get(thread.device.id());
  }

  /** Makes a device current until the scope closes. */
  Scope use(Device device) {
    Device before = thread.device;
    Scope scope = new Scope(scopes, device.toString(), () -> thread.device = before);
    thread.device = device;
    return scope;
  }

  /** Makes a stream, and its device, current until the scope closes. */
  Scope use(CudaStream stream) {
    CudaDevice of = stream.device();
    Device before = thread.device;
    CudaStream chosen = streams[of.id()];
    Scope scope =
        new Scope(
            scopes,
            stream.toString(),
            () -> {
              thread.device = before;
              streams[of.id()] = chosen;
            });
    thread.device = of.core();
    streams[of.id()] = stream;
    return scope;
  }

  /** The stream that is current for a device. */
  CudaStream stream(CudaDevice of) {
    CudaStream stream = streams[of.id()];
    return stream != null ? stream : firstStream(of);
  }

  private CudaStream firstStream(CudaDevice of) {
    return thread.callback == null ? of.nullStream() : cuda.threadStreams().insideCallbacks(of);
  }

  void chooseStream(CudaDevice of, @Nullable CudaStream stream) {
    streams[of.id()] = stream;
  }

  /** Allocates from the allocator of the innermost scope, else from the one of all threads. */
  Buffer allocate(long bytes, CudaStream stream, MemoryResource global) {
    MemoryResource scoped = allocator;
    MemoryResource from = scoped != null ? scoped : global;
    if (from instanceof MemoryPool pool) {
      cuda.checkOwn(stream);
      return pool.allocate(bytes, stream);
    }
    Checks.notNegative("bytes", bytes);
    cuda.checkOwn(stream);
    thread.enter(from);
    Buffer given;
    try {
      given = from.allocate(bytes, stream);
    } finally {
      thread.leave();
    }
    Memory _ =
        Upstream.check(
            "the allocator", BufferBase.memoryOf(given), bytes, cuda.session(), stream.core().on());
    return given;
  }
}
