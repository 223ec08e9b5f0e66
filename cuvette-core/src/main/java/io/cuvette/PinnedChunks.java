package io.cuvette;

import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import org.jspecify.annotations.Nullable;

/** An allocator of page-locked memory as the upstream of a pool, and of staged copies. */
record PinnedChunks(PinnedAllocator user) implements ChunkSource {
  @Override
  public @Nullable Memory allocate(long bytes, OpenStream stream) {
    return BufferBase.memoryOf(user.allocate(bytes));
  }
}
