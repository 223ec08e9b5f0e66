package io.cuvette;

/** The end of a block of a {@link PinnedMemoryPool}. */
final class PinnedBlock extends BlockLifetime {
  private final PinnedPoolCore pool;
  final PinnedChunk chunk;
  final long requestedBytes;

  PinnedBlock(Face buffer, PinnedPoolCore pool, PinnedChunk chunk, long bytes) {
    super(buffer, pool.session().leaks().queue, pool.session().leaks().site(), null);
    this.pool = pool;
    this.chunk = chunk;
    this.requestedBytes = bytes;
  }

  @Override
  long blockBytes() {
    return chunk.bytes();
  }

  @Override
  long requestedBytes() {
    return requestedBytes;
  }

  @Override
  boolean isMapped() {
    return chunk.memory.lifetime().isMapped();
  }

  @Override
  int depth() {
    return BlockReports.depthAbove(chunk.memory);
  }

  @Override
  BufferDescriptor descriptor(Memory part) {
    return chunk.memory.lifetime().descriptor(part);
  }

  @Override
  String describe() {
    return "pinned buffer of %d bytes at 0x%x".formatted(requestedBytes, chunk.memory.address());
  }

  @Override
  void giveBack() {
    pool.free(this);
  }
}
