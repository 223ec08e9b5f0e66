package io.cuvette.internal.pinnedpool;

import io.cuvette.OutOfPinnedMemoryException;
import io.cuvette.RecoveryStep;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.pool.Shortage;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** What is done about an allocation that a pool of page-locked memory has no memory for. */
public final class PinnedShortage extends Shortage<PinnedChunk> {
  private final PinnedPoolCore pool;
  private final PinnedStore store;
  private final long bytes;
  private final int sizeClass;
  private final OpenStream stream;
  private final long blockBytes;
  private final Refusals refusals;

  public PinnedShortage(
      PinnedPoolCore pool,
      PinnedStore store,
      long bytes,
      int sizeClass,
      OpenStream stream,
      Refusals refusals) {
    super(pool.session().leaks(), refusals);
    this.pool = pool;
    this.store = store;
    this.bytes = bytes;
    this.sizeClass = sizeClass;
    this.stream = stream;
    this.blockBytes = PinnedStore.blockBytes(sizeClass);
    this.refusals = refusals;
  }

  @Override
  public PinnedChunk inTurn(Supplier<PinnedChunk> steps) {
    return pool.turns().take(steps);
  }

  @Override
  public boolean isBeyondLimit() {
    return blockBytes > store.held().limit();
  }

  @Override
  public @Nullable PinnedChunk search() {
    return pool.search(sizeClass, stream, refusals);
  }

  @Override
  public long releaseCached() {
    boolean limited = blockBytes > store.held().room();
    long released = pool.release();
    return limited ? released : released + pool.streams().relief().releaseCached(null);
  }

  @Override
  public @Nullable PinnedChunk awaitOnce() {
    PinnedChunk found = pool.pending().await(this::search);
    if (found == null) {
      if (!pool.session().isInsideCallback()) { // else it may wait for the callback
        store.held().awaitRoom(blockBytes);
      }
      if (blockBytes <= store.held().room()) {
        pool.streams().relief().awaitFrees(null);
      }
      found = searchAndRelease();
    }
    return found;
  }

  @Override
  public boolean mayHave() {
    return store.held().isBeingFreed() || pool.stats().freeBytes() >= blockBytes;
  }

  @Override
  public long takes() {
    return store.takes();
  }

  @Override
  public boolean hasForgotten() {
    return store.hasForgotten() || pool.streams().relief().hasForgottenPools();
  }

  @Override
  public OutOfPinnedMemoryException outOfMemory(RecoveryStep step) {
    return pool.outOfMemory(bytes, blockBytes, step, refusals);
  }
}
