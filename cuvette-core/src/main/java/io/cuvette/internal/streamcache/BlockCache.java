package io.cuvette.internal.streamcache;

import io.cuvette.internal.block.Face;
import io.cuvette.internal.fence.CachingPool;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.lifetime.LeakTracker;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.stream.DriverStream;
import org.jspecify.annotations.Nullable;

/** Where the blocks of one pool come from and go back to in order of one stream. Thread-safe. */
public abstract class BlockCache {
  /** The pool, by which the caches of a stream are distinguished. */
  public final CachingPool pool;

  public final DeviceCache of;
  public final DriverStream stream;
  public final LeakTracker leaks;
  private volatile boolean retired;

  protected BlockCache(DeviceCache of, DriverStream stream) {
    this.pool = of.owner();
    this.of = of;
    this.stream = stream;
    this.leaks = stream.session.leaks();
  }

  /** A cached block; null if none fits. */
  public abstract @Nullable Face take(long bytes, long rounded, OpenStream of);

  /** Takes a block back whose buffer was closed; never waits. */
  public final void free(CachedBlock block) {
    if ((block.isUsedAtHomeAlone() && block.home == stream) || isFreeInCapture(block)) {
      giveOrLeave(block);
    } else {
      of.pending.free(block, stream);
    }
  }

  /** Whether this stands for captures, and the one that took the block may use it again now. */
  private boolean isFreeInCapture(CachedBlock block) {
    DriverStream home = block.home;
    if (home == null || !stream.isOfCapture()) {
      return false;
    }
    Capture capture = block.captureAtHomeAlone();
    return capture != null && stream.isMemoryOf(home, capture);
  }

  /** Gives a block back that may be used again in order of the stream; never waits. */
  public abstract void giveOrLeave(CachedBlock block);

  /** Waits for the work before what is free here: whatever follows, that may be used elsewhere. */
  public abstract void awaitFrees();

  /** Releases what is free if the pool is closed, which had to leave it while graphs used it. */
  public final void releaseIfClosed() {
    if (of.isClosed()) {
      of.releaseClosed(this);
    }
  }

  /** The stream or the pool is closed: what is cached here becomes everybody's. */
  public final void retire() {
    retired = true;
    endIfEmpty();
  }

  /** Whether its stream or its pool is closed. */
  public final boolean isRetired() {
    return retired;
  }

  /** Ends a retired cache that has no memory. */
  public abstract void endIfEmpty();
}
