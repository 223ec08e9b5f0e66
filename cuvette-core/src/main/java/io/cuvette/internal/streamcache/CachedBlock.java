package io.cuvette.internal.streamcache;

import io.cuvette.BufferDescriptor;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.index.BlockArena;
import io.cuvette.internal.lifetime.LeakTracker;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.DriverStream;
import java.lang.ref.ReferenceQueue;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The end of a block of a {@code MemoryPool}: it goes back to the arena it came from. */
public final class CachedBlock extends Block {
  public final BlockCache arena;
  public final int block;
  public final Memory chunk;
  public final long address;
  public final long requestedBytes;

  /** What gave it out, and numbers it, if not the arena itself. */
  public FrontCache.@Nullable Stripe stripe;

  private CachedBlock(
      Face buffer,
      @Nullable ReferenceQueue<Object> queue,
      @Nullable Throwable site,
      BlockCache arena,
      int block,
      Memory chunk,
      long address,
      long bytes,
      DriverStream home) {
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
  public static CachedBlock lend(
      Face buffer,
      BlockCache arena,
      int block,
      Memory chunk,
      long address,
      long bytes,
      OpenStream of) {
    LeakTracker leaks = arena.leaks;
    Throwable site = leaks.remembersSites() ? leaks.site() : null;
    CachedBlock lent =
        new CachedBlock(buffer, leaks.queue, site, arena, block, chunk, address, bytes, of.state);
    chunk.faces().own(buffer, lent);
    return lent;
  }

  @Override
  public long blockBytes() {
    return BlockArena.roundUp(requestedBytes);
  }

  @Override
  public long requestedBytes() {
    return requestedBytes;
  }

  @Override
  public boolean isMapped() {
    return chunk.block().isMapped();
  }

  @Override
  public boolean deniesAccess(Device device) {
    return chunk.block().deniesAccess(device);
  }

  @Override
  public boolean isPlain() {
    return chunk.block().isPlain();
  }

  @Override
  public int depth() {
    return BlockReports.depthAbove(chunk);
  }

  @Override
  public BufferDescriptor descriptor(Memory part) {
    return chunk.block().descriptor(part);
  }

  @Override
  public String describe() {
    return "buffer of %d bytes at 0x%x".formatted(requestedBytes, address);
  }

  /** Gives it back to the stripe it is of; false if the Java heap is full. */
  public boolean giveToStripe() {
    try {
      Objects.requireNonNull(stripe).give(this);
      return true;
    } catch (OutOfMemoryError e) {
      return false;
    }
  }

  @Override
  public void giveBack() {
    arena.of.free(this);
  }
}
