package io.cuvette.internal.streamcache;

import io.cuvette.internal.block.Face;
import io.cuvette.internal.fence.CachingPool;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.pending.PendingFrees;
import io.cuvette.internal.pool.Budget;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.DriverStream;
import java.util.function.LongSupplier;

/**
 * What one pool keeps on one device, in the caches of its streams, and what these leave to the
 * pool. Thread-safe.
 */
public abstract class DeviceCache {
  public final Device device;
  public final Budget held;
  public final PendingFrees<CachedBlock> pending = new PendingFrees<>(b -> b.arena.giveOrLeave(b));

  /** Tells the time in nanoseconds. */
  public final LongSupplier clock;

  private volatile boolean closed;
  private volatile boolean releases;

  /**
   * The cache of a pool.
   *
   * @param limitBytes of what it may hold
   * @param clock the time in nanoseconds
   * @param releases whether it bounds what stays cached after a free
   */
  protected DeviceCache(Device device, long limitBytes, LongSupplier clock, boolean releases) {
    this.device = device;
    this.held = new Budget(limitBytes);
    this.clock = clock;
    this.releases = releases;
  }

  /** The pool, by which the caches of a stream are distinguished. */
  public abstract CachingPool owner();

  /** A block that no cached one of its stream was found for. */
  public abstract Face allocateSlow(BlockCache arena, long bytes, long rounded, OpenStream stream);

  /** What has the blocks of one more stream. */
  public abstract BlockCache newCache(DriverStream stream);

  /** Frees a block whose buffer was closed, and notifies the hooks of the pool; never waits. */
  public abstract void free(CachedBlock block);

  /** Whether what comes back goes on to upstream. */
  public final boolean isClosed() {
    return closed;
  }

  /** What comes back from now on goes on to upstream. */
  protected final void closeCaches() {
    closed = true;
    releases = true;
  }

  /** Whether a free is followed by {@link #releaseAfterFree}. */
  public final boolean releases() {
    return releases;
  }

  /** Releases what a block that came back leaves beyond the threshold, or to a closed pool. */
  public abstract void releaseAfterFree(BlockCache cache);

  /** Releases what came back to a closed pool. */
  public abstract void releaseClosed(BlockCache cache);

  /** Compares the books with what is in the caches, unless all of it goes. */
  public abstract void assertConsistent();
}
