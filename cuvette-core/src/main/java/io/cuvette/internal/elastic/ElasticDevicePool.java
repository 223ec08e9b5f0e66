package io.cuvette.internal.elastic;

import io.cuvette.MemoryLimit;
import io.cuvette.PoolStats;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Rotation;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.devicepool.CachesOfStream;
import io.cuvette.internal.devicepool.DevicePool;
import io.cuvette.internal.devicepool.MemoryHooks;
import io.cuvette.internal.devicepool.MemoryPoolCore;
import io.cuvette.internal.paged.Window;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.space.Growth;
import io.cuvette.internal.space.HeapCensus;
import io.cuvette.internal.space.Victim;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.streamcache.BlockCache;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.Request;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongBinaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * One elastic pool on one device: the way from a miss to memory where it is needed. No lock is held
 * across a call of the driver. Thread-safe.
 */
public final class ElasticDevicePool extends DevicePool {
  /** Nearly full leaves such a part; pieces are then no larger than that part of a hole. */
  private static final int FINE = 4;

  private final Memory memory;
  private final long deviceBytes;
  private final Window window;
  private final ElasticHeap heap;
  private final Set<ElasticCache> caches = ConcurrentHashMap.newKeySet();
  private final Rotation turn = new Rotation();
  private final AtomicLong reuses = new AtomicLong();

  /** Here, so that giving memory back that was mapped in vain needs no Java heap. */
  private final LongBinaryOperator stranding = this::strand;

  /**
   * A pool that holds nothing.
   *
   * @param memory all addresses, from {@link Window#reserve}; they end with the pool
   * @param smallBytes how many of them are for small blocks
   * @param deviceBytes the memory of the device
   * @param releaseThreshold the bytes that may be cached after a free
   */
  public ElasticDevicePool(
      MemoryPoolCore pool,
      Device device,
      MemoryLimit limit,
      Memory memory,
      long smallBytes,
      long deviceBytes,
      long releaseThreshold) {
    super(pool, device, limit, releaseThreshold, System::nanoTime);
    this.memory = memory;
    this.deviceBytes = deviceBytes;
    this.window = (Window) memory.block();
    this.heap = new ElasticHeap(memory, smallBytes, held, clock);
  }

  ElasticHeap heap() {
    return heap;
  }

  @Override
  public BlockCache newCache(DriverStream stream) {
    ElasticCache cache = new ElasticCache(this, stream, heap.newTag());
    caches.add(cache);
    return cache;
  }

  void endIfEmpty(ElasticCache cache) {
    if (heap.endIfEmpty(cache)) {
      caches.remove(cache);
      CachesOfStream.of(cache.stream).remove(cache);
    }
  }

  @Override
  public void discard() {
    window.free();
  }

  // a miss

  @Override
  protected @Nullable Face takeBeforeGrowth(Request request, int asks) {
    Face found = takeAfterOthers(request);
    return found != null || heap.leavesApart(request.rounded()) ? found : takeOfIdle(request, asks);
  }

  @Override
  protected @Nullable Face takeOfOthers(Request request) {
    return takeOfIdle(request, Integer.MAX_VALUE);
  }

  /** Takes what a stream has freed whose work comes before that of the asking one. */
  private @Nullable Face takeAfterOthers(Request request) {
    ElasticCache own = (ElasticCache) request.arena();
    for (ElasticCache cache : caches) {
      if (cache.isBefore(own.stream.clock)) {
        Face found =
            heap.take(own, cache, request.bytes(), request.rounded(), request.stream(), null);
        if (found != null) {
          reuses.incrementAndGet();
          return found;
        }
      }
    }
    return null;
  }

  /** Takes what streams have freed that are idle by now. */
  private @Nullable Face takeOfIdle(Request request, int most) {
    if (!settleIdle(most)) {
      return null;
    }
    Face found = request.arena().take(request.bytes(), request.rounded(), request.stream());
    if (found != null) {
      reuses.incrementAndGet();
    }
    return found;
  }

  /** Notes what is done by now, of so many streams at most; false if that is nothing. */
  private boolean settleIdle(int most) {
    boolean any = false;
    int asked = 0;
    for (ElasticCache cache : turn.of(caches, most)) {
      if (heap.freeBytesOf(cache) > 0) {
        any |= settleIdle(cache);
        if (++asked >= most) {
          break;
        }
      }
    }
    return any;
  }

  private boolean settleIdle(ElasticCache cache) {
    long until = heap.sequence(); // first: the answer covers what was freed before
    if (!cache.isIdle()) {
      return false;
    }
    heap.done(cache, until);
    cache.endIfEmpty();
    return true;
  }

  /** Maps memory for a block, new or from where it is free; null if there is none to have. */
  @Override
  protected @Nullable Face grow(Request request) {
    if (!request.refusals().isWorthAsking()) {
      return null;
    }
    Plan plan = heap.plan(request);
    if (plan == null) {
      ElasticCache cache = (ElasticCache) request.arena();
      if (heap.isOver() || cache.isRetired()) {
        throw isOver(cache);
      }
      return null; // no addresses
    }
    Face block = null;
    boolean reserved = false;
    try {
      long _ = unmap(plan.victims);
      reserved = held.reserve(plan.bytes);
      block = reserved ? map(plan, request) : null;
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY) {
        throw e;
      }
      request.refusals().add(e);
      heap.refused();
    } finally {
      if (block == null) {
        heap.abort(plan);
        plan.cache.endIfEmpty(); // whoever closes the stream could not
        if (reserved) {
          held.unreserve(plan.bytes);
        }
        endIfClosed();
      }
    }
    return block;
  }

  private Face map(Plan plan, Request request) {
    pool.checkOpen(); // again: whoever closes it may not have seen the bytes just reserved
    Face block = null;
    try {
      MemoryHooks hooks = plan.bytes == 0 ? null : pool.hooks();
      if (hooks == null) {
        Memory _ = mapAll(plan.growth);
      } else {
        Memory _ = hooks.grow(pool, request.stream(), plan.bytes, () -> mapAll(plan.growth));
      }
      block = heap.publish(plan, request);
      if (block == null) {
        throw isOver(request.arena());
      }
      grown();
      return block;
    } catch (Throwable e) { // a hook is code of the user
      if (block == null) {
        long _ = plan.growth.eachHole(stranding);
        window.settleAfter(e);
      }
      throw e;
    }
  }

  private Memory mapAll(Growth growth) {
    long largest = heap.largestPiece();
    boolean isNearlyFull = isNearlyFull();
    long _ =
        growth.eachHole((at, bytes) -> {
          window.map(at, bytes, isNearlyFull ? Math.min(largest, bytes / FINE) : largest);
          return bytes;
        });
    return memory.part(growth.address - memory.address(), growth.end() - growth.address);
  }

  /**
   * Whether there is little left to map: small pieces are then worth more calls, since a block that
   * holds a part of a piece holds all of it.
   */
  private boolean isNearlyFull() {
    long most = Math.min(held.limit(), deviceBytes);
    return held.held() > most - most / FINE;
  }

  private long strand(long at, long bytes) {
    window.strand(at, bytes);
    return bytes;
  }

  // releasing

  /** Unmaps a list of memory; what could not be unmapped is free again. */
  private long unmap(@Nullable Victim first) {
    long bytes = 0;
    Throwable failure = null;
    for (Victim victim = first; victim != null; ) {
      Victim next = victim.next;
      try {
        window.unmap(victim.address, victim.bytes);
      } catch (RuntimeException | Error e) {
        failure = Failures.joined(failure, e);
      }
      if (window.isMapped(victim.address, victim.bytes)) {
        heap.restore(victim);
      } else {
        heap.unmapped(victim);
        bytes += victim.bytes;
      }
      victim = next;
    }
    Failures.rethrow(failure);
    return bytes;
  }

  /** Unmaps memory whose work is done, what was freed first comes first. */
  @Override
  public long trim(long keptBytes, OptionalLong idleNanos) {
    settle();
    boolean _ = settleIdle(Integer.MAX_VALUE);
    try {
      window.settleLeft();
      return release(keptBytes, idleNanos);
    } finally {
      endIfClosed();
    }
  }

  private long release(long keptBytes, OptionalLong idleNanos) {
    long released = 0;
    long wanted = held.held() - keptBytes;
    while (released < wanted) {
      Victim victims = heap.carve(wanted - released, idleNanos);
      if (victims == null) {
        break;
      }
      released += unmap(victims);
    }
    return released;
  }

  @Override
  public long freeAllBlocks(@Nullable DriverStream stream) {
    return trim(0, OptionalLong.empty());
  }

  @Override
  public void releaseAfterFree(BlockCache cache) {
    if (isClosed()) {
      releaseClosed(cache);
      return;
    }
    cache.endIfEmpty();
    if (releaseThreshold != Long.MAX_VALUE && !releaseBeyond() && settleIdle(MOST_ASKED)) {
      boolean _ = releaseBeyond();
    }
  }

  /** Releases what is done beyond the threshold; false if that is not enough. */
  private boolean releaseBeyond() {
    long beyond = heap.cachedBytes() - releaseThreshold;
    return beyond <= 0 || release(held.held() - beyond, OptionalLong.empty()) >= beyond;
  }

  @Override
  public void releaseClosed(BlockCache cache) {
    releaseAll();
  }

  private void releaseAll() {
    boolean _ = settleIdle(Integer.MAX_VALUE);
    long _ = release(0, OptionalLong.empty());
    endIfClosed();
  }

  @Override
  public boolean isEmpty() {
    return super.isEmpty() && window.isFreed();
  }

  /** What this thread had taken to map or unmap may have been the last of a closed pool. */
  private void endIfClosed() {
    if (isClosed()) {
      caches.forEach(ElasticCache::endIfEmpty);
      if (heap.endIfEmpty()) {
        window.free();
        pool.forgetIfEmpty();
      }
    }
  }

  @Override
  public void settleClosed() {
    pending.poll();
    releaseAll();
  }

  @Override
  public void awaitClosed() {
    pending.await();
    busyCaches(1).forEach(ElasticCache::awaitFrees);
    settleClosed();
  }

  @Override
  public void shut() {
    closeCaches();
    caches.forEach(BlockCache::retire);
    Failures failures = new Failures();
    failures.run(pending::poll);
    failures.run(this::releaseAll);
    failures.throwFirst();
  }

  @Override
  public void endLent() {
    closeCaches();
    Failures failures = new Failures();
    for (CachedBlock block : heap.end()) {
      failures.run(block::abandon);
    }
    caches.forEach(cache -> CachesOfStream.of(cache.stream).remove(cache));
    caches.clear();
    pending.clear();
    held.end();
    failures.throwFirst();
  }

  // waiting

  @Override
  public List<ElasticCache> busyCaches(long rounded) {
    return caches.stream().filter(cache -> heap.freeBytesOf(cache) > 0).toList();
  }

  @Override
  public void awaitOthers(long wantedBytes) {
    pending.await();
    busyCaches(1).forEach(ElasticCache::awaitFrees);
    awaitRoom(wantedBytes, heap::isStill);
  }

  @Override
  public long takes() {
    return heap.allocations() + held.reservations();
  }

  @Override
  public boolean hasForgotten() {
    return heap.hasForgotten(caches);
  }

  // numbers

  @Override
  public PoolStats stats() {
    settle();
    HeapCensus census = heap.count(caches);
    long held = heldBytes();
    long pendingBytes = Math.min(pending.bytes(), census.usedBytes);
    int pendingBlocks = Math.min(pending.blocks(), census.usedBlocks);
    long used = census.usedBytes - pendingBytes;
    long free = Math.max(0, held - used);
    return new PoolStats(
        used,
        free,
        used + free,
        Math.max(0, census.requestedBytes - pending.requestedBytes()),
        pendingBytes,
        Math.min(free, census.graphBytes + pending.graphBytes()),
        census.releasableBytes,
        census.largestFreeBytes,
        census.usedBlocks - pendingBlocks,
        census.freeRuns + pendingBlocks,
        census.pieces,
        census.peakUsedBytes,
        this.held.peak(),
        census.allocations,
        growths(),
        reuses.get(),
        outOfMemories(),
        limitBytes());
  }

  /** All numbers of the heap. */
  public HeapCensus census() {
    settle();
    HeapCensus census = heap.count(caches);
    census.pendingBytes = Math.min(pending.bytes(), census.usedBytes);
    return census;
  }

  @Override
  public void resetPeaks() {
    heap.resetPeak();
    held.resetPeak();
  }

  @Override
  protected long freeBytesOf(BlockCache cache) {
    return heap.freeBytesOf((ElasticCache) cache) + heap.count(caches).doneBytes; // of no stream
  }

  @Override
  public void assertConsistent() {
    heap.assertConsistent();
  }
}
