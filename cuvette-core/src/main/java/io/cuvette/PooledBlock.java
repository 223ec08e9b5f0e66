package io.cuvette;

import io.cuvette.pool.BlockArena;
import java.lang.ref.ReferenceQueue;
import org.jspecify.annotations.Nullable;

/** The end of a block of a {@link MemoryPool}: it goes back to the arena it came from. */
final class PooledBlock extends BlockLifetime {
  final PoolArena arena;
  final int block;
  final BufferBase chunk;
  final long address;
  final long requestedBytes;

  /** What gave it out, if not the arena itself, and its neighbours in that one's list. */
  FrontCache.@Nullable Stripe stripe;

  @Nullable PooledBlock older;
  @Nullable PooledBlock newer;

  private PooledBlock(
      BufferBase buffer,
      @Nullable ReferenceQueue<Object> queue,
      @Nullable Throwable site,
      PoolArena arena,
      int block,
      BufferBase chunk) {
    super(buffer, queue, site, buffer.order().state);
    this.arena = arena;
    this.block = block;
    this.chunk = chunk;
    this.address = buffer.address();
    this.requestedBytes = buffer.byteSize();
  }

  /**
   * A buffer of a block of an arena. Changes nothing in the arena; once that has the block in use,
   * {@link #opened} follows.
   */
  static BufferBase lend(
      PoolArena arena, int block, BufferBase chunk, long offset, long bytes, OpenStream of) {
    BufferBase buffer = chunk.block(offset, bytes, of);
    LeakTracker leaks = arena.leaks;
    Throwable site = leaks.remembersSites() ? leaks.site() : null;
    buffer.attach(new PooledBlock(buffer, leaks.queue, site, arena, block, chunk));
    return buffer;
  }

  /** One more buffer of this block, which has ended. */
  BufferBase again(long bytes, OpenStream of) {
    return lend(arena, block, chunk, address - chunk.address(), bytes, of);
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
  BufferDescriptor descriptor(BufferBase part) {
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
