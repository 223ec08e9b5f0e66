package io.cuvette;

import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.pool.Upstream;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.session.ThreadState;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * An allocator of page-locked memory as the upstream of a pool, and of transfers.
 *
 * @param user allocates
 * @param behind the allocator that this ends at now
 */
record PinnedChunks(PinnedAllocator user, Supplier<PinnedAllocator> behind) implements ChunkSource {
  @Override
  public @Nullable Memory allocate(long bytes, OpenStream stream) {
    return BufferBase.memoryOf(user.allocate(bytes));
  }

  @Override
  public @Nullable Memory tryAllocate(long bytes, OpenStream stream) {
    return behind.get() instanceof PinnedMemoryPool pool
        ? BufferBase.memoryOf(pool.tryAllocate(bytes))
        : ChunkSource.super.tryAllocate(bytes, stream);
  }

  /** Allocates by code of the user, and checks what comes. */
  static PinnedBuffer allocate(PinnedAllocator allocator, long bytes, Session session) {
    if (allocator instanceof PinnedMemoryPool pool) {
      return pool.allocate(bytes);
    }
    ThreadState state = session.state();
    state.enter(allocator);
    PinnedBuffer given;
    try {
      given = allocator.allocate(bytes);
    } finally {
      state.leave();
    }
    Memory _ =
        Upstream.check("the pinned allocator", BufferBase.memoryOf(given), bytes, session, null);
    return given;
  }
}
