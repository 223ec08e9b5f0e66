package io.cuvette;

/** The end of a block of a {@link PinnedMemoryPool}. */
final class PinnedBlock extends BlockLifetime {
  private final PinnedMemoryPool pool;
  final PinnedBuffer chunk;
  final int sizeClass;
  final long requestedBytes;

  PinnedBlock(PinnedBuffer buffer, PinnedMemoryPool pool, PinnedBuffer chunk, int sizeClass) {
    super(buffer, pool.cuda().leaks().queue, pool.cuda().leaks().site(), null);
    this.pool = pool;
    this.chunk = chunk;
    this.sizeClass = sizeClass;
    this.requestedBytes = buffer.byteSize();
  }

  @Override
  long blockBytes() {
    return PinnedStore.blockBytes(sizeClass);
  }

  @Override
  long requestedBytes() {
    return requestedBytes;
  }

  @Override
  boolean isMapped() {
    return chunk.lifetime().isMapped();
  }

  @Override
  BufferDescriptor descriptor(BufferBase part) {
    return chunk.lifetime().descriptor(part);
  }

  @Override
  String describe() {
    return "pinned buffer of %d bytes at 0x%x".formatted(requestedBytes, chunk.address());
  }

  @Override
  void giveBack() {
    pool.free(this);
  }
}
