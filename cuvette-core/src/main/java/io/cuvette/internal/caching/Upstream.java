package io.cuvette.internal.caching;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.session.ThreadState;
import io.cuvette.internal.stream.OpenStream;
import org.jspecify.annotations.Nullable;

/** Asks the upstream of a pool for a chunk and checks what comes. Stateless. */
public final class Upstream {
  private Upstream() {}

  public static Memory allocate(MemoryPoolCore pool, long bytes, OpenStream stream) {
    MemoryHooks hooks = pool.hooks();
    return hooks == null
        ? ask(pool, bytes, stream)
        : hooks.grow(pool, stream, bytes, () -> ask(pool, bytes, stream));
  }

  private static Memory ask(MemoryPoolCore pool, long bytes, OpenStream stream) {
    ChunkSource upstream = pool.upstream();
    ThreadState state = pool.session().state();
    state.enter(pool, upstream.user());
    Memory given;
    try {
      given = upstream.allocate(bytes, stream);
    } finally {
      state.leave();
    }
    Memory chunk = check("the upstream resource", given, bytes, pool.session(), stream.on());
    if (chunk.lifetime().home != null) {
      chunk.lifetime().use(stream.state); // upstream may have answered with another stream's memory
    }
    return chunk;
  }

  /** What a resource of the user gave, which is closed if it does not fit. */
  public static Memory check(
      String who, @Nullable Memory given, long bytes, Session session, @Nullable Device device) {
    if (given == null) {
      throw new IllegalStateException("%s returned null for %d bytes".formatted(who, bytes));
    }
    String expected = null;
    if (given.byteSize() < bytes) {
      expected = ">= %d bytes".formatted(bytes);
    } else if (given.lifetime().ended() || (device != null && given.on() != device)) {
      expected = "an open buffer" + (device == null ? "" : " of " + device);
    } else if (given.on().session() != session) {
      expected = "memory of the same Cuda";
    }
    if (expected != null) {
      var wrong =
          new IllegalStateException(
              "%s returned %s (expected: %s)".formatted(who, given, expected));
      Failures.closeAfter(wrong, given::close);
      throw wrong;
    }
    return given;
  }
}
