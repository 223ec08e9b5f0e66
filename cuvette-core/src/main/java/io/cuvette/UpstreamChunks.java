package io.cuvette;

import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import org.jspecify.annotations.Nullable;

/** A memory resource as the upstream of a pool. */
record UpstreamChunks(MemoryResource user) implements ChunkSource {
  @Override
  public @Nullable Memory allocate(long bytes, OpenStream stream) {
    return BufferBase.memoryOf(user.allocate(bytes, CudaStream.of(stream).forUpstream()));
  }
}
