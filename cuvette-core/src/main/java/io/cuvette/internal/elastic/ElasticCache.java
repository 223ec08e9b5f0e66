package io.cuvette.internal.elastic;

import io.cuvette.internal.block.Face;
import io.cuvette.internal.clock.StreamClock;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.space.Space;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.streamcache.BlockCache;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.FrontCache;
import org.jspecify.annotations.Nullable;

/** What a stream frees, in the memory that all streams of a device share. Thread-safe. */
final class ElasticCache extends BlockCache {
  /** Tells its free memory from others'. */
  final int tag;

  private final ElasticDevicePool devicePool;

  /** Blocks in use, and places taken for one; guarded by the heap's lock. */
  int live;

  /** Made when threads first met; {@link FreedBlocks} alone writes it. */
  volatile @Nullable FrontCache front;

  /** The next of those that have a front; guarded by the heap's lock. */
  @Nullable ElasticCache nextWithFront;

  /** What the stream's clock showed when something was freed last; the heap's lock guards it. */
  volatile long freedAt;

  ElasticCache(ElasticDevicePool of, DriverStream stream, int tag) {
    super(of, stream);
    this.devicePool = of;
    this.tag = tag;
  }

  /** Whether its tag is another's by now; under the heap's lock. */
  boolean hasEnded() {
    return live < 0;
  }

  /** The tag of what is freed now. */
  int tagOfFree() {
    return (stream.calm.lasts() && !stream.isExposed()) ? Space.DONE : tag;
  }

  /** Whether all that used what is free comes before what another stream does. */
  boolean isBefore(StreamClock other) {
    return freedAt != 0 && other.isAfter(stream.clock, StreamClock.NOT_NOTED, freedAt);
  }

  /** Whether all work queued so far is certainly done. */
  boolean isIdle() {
    boolean isOurs = stream.isOwned() && !stream.isExposed() && !stream.isClosed();
    return isOurs
        ? stream.calm.ask(() -> stream.ending().holds(), stream::isIdleSoon)
        : stream.isIdleSoon();
  }

  @Override
  public @Nullable Face take(long bytes, long rounded, OpenStream of) {
    FrontCache ready = front;
    if (ready == null || !FrontCache.keeps(rounded)) {
      return devicePool.heap().take(this, this, bytes, rounded, of, null);
    }
    FrontCache.Stripe stripe = ready.mine();
    Face found = stripe.take(rounded, bytes, of);
    return found != null ? found : devicePool.heap().take(this, this, bytes, rounded, of, stripe);
  }

  @Override
  public void giveOrLeave(CachedBlock block) {
    devicePool.heap().giveOrLeave(block);
    devicePool.releaseAfterFree(this);
  }

  /** A front to have, as threads have met here; null if there is one, or is to be none. */
  @Nullable FrontCache newFront() {
    ElasticHeap heap = devicePool.heap();
    return front == null && !of.releases()
        ? new FrontCache(this, heap.slabs(this, 0), heap.slabs(this, 1))
        : null;
  }

  /** Whether the collector has found a buffer that the front gave out. */
  boolean hasForgottenInFront() {
    FrontCache ready = front;
    return ready != null && ready.hasForgotten();
  }

  @Override
  public void awaitFrees() {
    ElasticHeap heap = devicePool.heap();
    long until = heap.sequence();
    if (stream.await()) {
      heap.done(this, until);
    }
  }

  @Override
  public void endIfEmpty() {
    if (isRetired()) {
      devicePool.endIfEmpty(this);
    }
  }

  @Override
  public String toString() {
    return "cache of " + stream;
  }
}
