package io.cuvette;

/** Asks the upstream of a pool for a chunk and checks what comes. Stateless. */
final class Upstream {
  private Upstream() {}

  static BufferBase allocate(MemoryPool pool, long bytes, CudaStream stream) {
    MemoryHooks hooks = pool.hooks();
    return hooks == null
        ? ask(pool, bytes, stream)
        : hooks.grow(stream, bytes, () -> ask(pool, bytes, stream));
  }

  private static BufferBase ask(MemoryPool pool, long bytes, CudaStream stream) {
    ThreadState state = pool.cuda().state();
    state.enter(pool);
    Buffer given;
    try {
      given = pool.options().upstream().allocate(bytes, stream);
    } finally {
      state.leave();
    }
    try {
      check(given, bytes, stream);
    } catch (RuntimeException e) {
      if (given != null) {
        Failures.closeAfter(e, given);
      }
      throw e;
    }
    return BufferBase.base(given);
  }

  @SuppressWarnings("NullAway") // a lambda of the user can return null
  private static void check(Buffer given, long bytes, CudaStream stream) {
    if (given == null) {
      throw new IllegalStateException(
          "the upstream resource returned null for %d bytes".formatted(bytes));
    }
    if (given.byteSize() < bytes) {
      throw new IllegalStateException(
          "the upstream resource returned %s (expected: >= %d bytes)".formatted(given, bytes));
    }
    if (given.isClosed() || !given.device().equals(stream.device())) {
      throw new IllegalStateException(
          "the upstream resource returned %s (expected: an open buffer of %s)"
              .formatted(given, stream.device()));
    }
  }
}
