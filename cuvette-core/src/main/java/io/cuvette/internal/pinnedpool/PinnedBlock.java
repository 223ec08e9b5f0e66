package io.cuvette.internal.pinnedpool;

import io.cuvette.BufferDescriptor;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Memory;

/** The end of a block of a {@code PinnedMemoryPool}. */
public final class PinnedBlock extends Block {
  private final PinnedPoolCore pool;
  public final PinnedChunk chunk;
  public final long requestedBytes;

  /** What counts it, and gets it back. */
  final PinnedStripe stripe;

  PinnedBlock(
      Face buffer, PinnedPoolCore pool, PinnedChunk chunk, PinnedStripe stripe, long bytes) {
    super(buffer, pool.session().leaks().queue, pool.session().leaks().site(), null);
    this.pool = pool;
    this.chunk = chunk;
    this.stripe = stripe;
    this.requestedBytes = bytes;
  }

  @Override
  public long blockBytes() {
    return chunk.bytes();
  }

  @Override
  public long requestedBytes() {
    return requestedBytes;
  }

  @Override
  public boolean isMapped() {
    return chunk.memory.block().isMapped();
  }

  @Override
  public int depth() {
    return BlockReports.depthAbove(chunk.memory);
  }

  @Override
  public BufferDescriptor descriptor(Memory part) {
    return chunk.memory.block().descriptor(part);
  }

  @Override
  public String describe() {
    return "pinned buffer of %d bytes at 0x%x".formatted(requestedBytes, chunk.memory.address());
  }

  @Override
  public void giveBack() {
    pool.free(this);
  }
}
