package io.cuvette.internal.devicepool;

import io.cuvette.MemoryLimit;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolStats;
import io.cuvette.RecoveryStep;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.base.Turns;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.fence.CachingPool;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.streamcache.BlockCache;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.DeviceCache;
import io.cuvette.internal.streamcache.Request;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * One pool on one device: what it holds and may hold, and what is done when memory is short.
 * Thread-safe.
 */
public abstract class DevicePool extends DeviceCache {
  /** How many streams a miss asks about at most, before the pool grows. */
  protected static final int MOST_ASKED = 8;

  public final MemoryPoolCore pool;
  private final Turns turns = new Turns();
  private final AtomicLong growths = new AtomicLong();
  private final AtomicLong outOfMemories = new AtomicLong();
  private volatile MemoryLimit limit;

  /** The bytes that may stay cached after a free; Long.MAX_VALUE for all. */
  protected final long releaseThreshold;

  /**
   * A pool that holds nothing.
   *
   * @param releaseThreshold the bytes that may stay cached after a free; Long.MAX_VALUE for all
   * @param clock the time in nanoseconds
   */
  protected DevicePool(
      MemoryPoolCore pool,
      Device device,
      MemoryLimit limit,
      long releaseThreshold,
      LongSupplier clock) {
    super(
        device,
        limit.bytesOf(limit instanceof MemoryLimit.Fraction ? device.totalBytes() : 0),
        clock,
        releaseThreshold != Long.MAX_VALUE);
    this.pool = pool;
    this.limit = limit;
    this.releaseThreshold = releaseThreshold;
  }

  @Override
  public final CachingPool owner() {
    return pool;
  }

  @Override
  public final void free(CachedBlock block) {
    MemoryHooks hooks = pool.hooks();
    if (hooks != null) {
      hooks.free(pool, block);
    } else {
      block.arena.free(block);
    }
  }

  public final MemoryLimit limit() {
    return limit;
  }

  public final long limitBytes() {
    return held.limit();
  }

  public final void setLimit(MemoryLimit next) {
    held.setLimit(next.bytesOf(device.totalBytes()));
    limit = next;
  }

  public final long heldBytes() {
    return held.held();
  }

  /** Whether it has nothing from upstream. */
  public boolean isEmpty() {
    return heldBytes() == 0;
  }

  /** Takes back what is done or forgotten. */
  public final void settle() {
    pool.session().leaks().drain();
    pending.poll();
  }

  /** Takes note of a growth. */
  protected final void grown() {
    growths.incrementAndGet();
    held.grown();
  }

  protected final long growths() {
    return growths.get();
  }

  protected final long outOfMemories() {
    return outOfMemories.get();
  }

  @Override
  public final Face allocateSlow(BlockCache cache, long bytes, long rounded, OpenStream stream) {
    pool.session().leaks().drain();
    pending.pollKnown();
    Face found = cache.take(bytes, rounded, stream);
    if (found != null) {
      return found;
    }
    int asked = pending.poll(MOST_ASKED / 2);
    found = cache.take(bytes, rounded, stream);
    if (found != null) {
      return found;
    }
    Request request = new Request(cache, bytes, rounded, stream, new Refusals());
    found = takeBeforeGrowth(request, MOST_ASKED - asked);
    if (found == null) {
      found = grow(request);
    }
    return found != null ? found : new DeviceShortage(this, request).run();
  }

  /** What can be had without releasing anything or waiting, however large the block. */
  public final @Nullable Face search(Request request) {
    settle();
    Face found = request.arena().take(request.bytes(), request.rounded(), request.stream());
    if (found == null) {
      found = takeOfOthers(request);
    }
    return found != null ? found : grow(request);
  }

  /** Takes memory that other streams have freed, asking so many of them at most. */
  protected abstract @Nullable Face takeBeforeGrowth(Request request, int asks);

  /** The same, whatever has to be asked or cut for it. */
  protected abstract @Nullable Face takeOfOthers(Request request);

  /** Gets more memory; null if the limit or the driver refuses. */
  protected abstract @Nullable Face grow(Request request);

  /** Releases what is cached of one stream, or of all if null; gives the bytes. */
  public abstract long freeAllBlocks(@Nullable DriverStream stream);

  /**
   * Releases what is cached, and was free for some time, until no more than some bytes are held.
   *
   * @param keptBytes these bytes
   * @param idleNanos how long it was free; any time if empty
   * @return the bytes released
   */
  public abstract long trim(long keptBytes, OptionalLong idleNanos);

  /** Gives the cached memory back; each cache ends with its last memory. */
  public abstract void shut();

  /** Closes the buffers in use; nothing is held after. */
  public abstract void endLent();

  public abstract PoolStats stats();

  public abstract void resetPeaks();

  /** The bytes that a stream could reuse at once. */
  protected abstract long freeBytesOf(BlockCache cache);

  /** What has a block that is free and large enough, but for the work of its stream. */
  public abstract List<? extends BlockCache> busyCaches(long rounded);

  /**
   * Waits for the streams whose caches or uses hold cached memory back; for memory that other
   * threads are freeing; and if only the driver is short, for the frees in its pools.
   */
  public abstract void awaitOthers(long wantedBytes);

  /** The last two of these. */
  protected final void awaitRoom(long wantedBytes, BooleanSupplier isStill) {
    if (!pool.session().isInsideCallback()) { // else they may wait for the callback
      held.awaitRoom(wantedBytes, isStill);
    }
    if (wantedBytes <= held.room()) {
      pool.streams().relief().awaitFrees(device);
    }
  }

  /** How often memory was taken so far: whether others got what this thread waited for. */
  public abstract long takes();

  /** Whether the collector has found a buffer of this pool that was not taken back yet. */
  public abstract boolean hasForgotten();

  /** Ends one that nobody used: another was there first. */
  public void discard() {}

  /** Takes back what is done of a closed pool. */
  public void settleClosed() {
    pending.poll();
  }

  /** The same, after waiting for it. */
  public void awaitClosed() {
    pending.await();
  }

  /** Whether memory that is not in use could do, if no other thread takes it. */
  public final boolean mayHave(long rounded) {
    PoolStats now = stats();
    return now.freeBytes() - now.graphBytes() >= rounded || held.isBeingFreed();
  }

  public final Turns turns() {
    return turns;
  }

  protected final IllegalStateException isOver(BlockCache arena) {
    CachesOfStream.of(arena.stream).remove(arena);
    pool.checkOpen();
    return arena.stream.isOfCapture()
        ? new Capture.EndedException(arena.stream)
        : new IllegalStateException(arena.stream + " is closed");
  }

  public final OutOfDeviceMemoryException outOfMemory(Request request, RecoveryStep step) {
    outOfMemories.incrementAndGet();
    BlockCache arena = request.arena();
    long own = freeBytesOf(arena);
    PoolStats all = stats();
    long ofOthers = all.freeBytes() - Math.max(all.pendingBytes(), all.graphBytes()) - own;
    return request
        .refusals()
        .explain(
            new OutOfDeviceMemoryException(
                "allocate(bytes=%d, stream=%s)".formatted(request.bytes(), arena.stream),
                new OutOfDeviceMemoryException.Details(
                    device.id(),
                    request.bytes(),
                    request.rounded(),
                    all.heldBytes(),
                    all.usedBytes(),
                    all.freeBytes(),
                    all.freeBlocks(),
                    all.pendingBytes(),
                    all.graphBytes(),
                    all.largestFreeBytes(),
                    Math.max(0, ofOthers),
                    limitBytes(),
                    DirectMemory.driverFree(device),
                    step),
                all.limitBytes() - all.usedBytes() - all.pendingBytes()));
  }
}
