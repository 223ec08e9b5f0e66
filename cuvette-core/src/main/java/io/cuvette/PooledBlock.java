package io.cuvette;

import io.cuvette.pool.BlockArena;
import java.lang.ref.ReferenceQueue;
import org.jspecify.annotations.Nullable;

/** The end of a block of a {@link MemoryPool}: it goes back to the arena it came from. */
final class PooledBlock extends BlockLifetime {
  final PoolArena arena;
  final int block;
  final Memory chunk;
  final long address;
  final long requestedBytes;

  /** What gave it out, if not the arena itself, and its neighbours in that one's list. */
  FrontCache.@Nullable Stripe stripe;

  @Nullable PooledBlock older;
  @Nullable PooledBlock newer;

  private PooledBlock(
      Face buffer,
      @Nullable ReferenceQueue<Object> queue,
      @Nullable Throwable site,
      PoolArena arena,
      int block,
      Memory chunk,
      long address,
      long bytes,
      StreamState home) {
    super(buffer, queue, site, home);
    this.arena = arena;
    this.block = block;
    this.chunk = chunk;
    this.address = address;
    this.requestedBytes = bytes;
  }

  /**
   * Has a buffer own a block of an arena. Changes nothing in the arena; once that has the block in
   * use, {@link #opened} follows.
   *
   * @param buffer made of that part of the chunk
   */
  static PooledBlock lend(
      Face buffer,
      PoolArena arena,
      int block,
      Memory chunk,
      long address,
      long bytes,
      OpenStream of) {
    LeakTracker leaks = arena.leaks;
    Throwable site = leaks.remembersSites() ? leaks.site() : null;
    PooledBlock lent =
        new PooledBlock(buffer, leaks.queue, site, arena, block, chunk, address, bytes, of.state);
    chunk.faces().own(buffer, lent);
    return lent;
  }

  @Override
  long blockBytes() {
    return BlockArena.roundUp(requestedBytes);
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
  boolean keepsOut(Device device) {
    return chunk.lifetime().keepsOut(device);
  }

  @Override
  int depth() {
    return BlockReports.depthAbove(chunk);
  }

  @Override
  BufferDescriptor descriptor(Memory part) {
    return chunk.lifetime().descriptor(part);
  }

  @Override
  String describe() {
    return "buffer of %d bytes at 0x%x".formatted(requestedBytes, address);
  }

  @Override
  void giveBack() {
    arena.free(this);
  }
}
