package io.cuvette.internal.pool;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.session.ThreadState;
import org.jspecify.annotations.Nullable;

/**
 * Requests the chunks of a pool and checks what is returned. Immutable.
 *
 * @param pool that requests; nothing inside may allocate from it
 * @param name for messages: {@code the upstream resource}
 * @param source code of the user, or the library's own
 */
public record Upstream(Object pool, String name, ChunkSource source, Session session) {
  /**
   * Requests a chunk.
   *
   * @param device that it must be of; null if any will do
   */
  public Memory ask(long bytes, OpenStream stream, @Nullable Device device) {
    ThreadState state = session.state();
    state.enter(pool, source.user());
    Memory given;
    try {
      given = source.allocate(bytes, stream);
    } finally {
      state.leave();
    }
    return check(name, given, bytes, session, device);
  }

  /** Checks what a resource of the user returned, and closes it if it does not fit. */
  public static Memory check(
      String who, @Nullable Memory given, long bytes, Session session, @Nullable Device device) {
    if (given == null) {
      throw new IllegalStateException("%s returned null for %d bytes".formatted(who, bytes));
    }
    String expected = null;
    if (given.byteSize() < bytes) {
      expected = ">= %d bytes".formatted(bytes);
    } else if (given.block().ended() || (device != null && given.on() != device)) {
      expected = "an open buffer" + (device == null ? "" : " of " + device);
    } else if (given.on().session() != session) {
      expected = "memory of the same Cuda";
    }
    if (expected != null) {
      var wrong =
          new IllegalStateException(
              "%s returned %s (expected: %s)".formatted(who, given, expected));
      Failures.runAfter(wrong, given::close);
      throw wrong;
    }
    return given;
  }
}
