package io.cuvette.internal.devicepool;

import io.cuvette.MemoryLimit;
import io.cuvette.PoolStats;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Loans.Loan;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.pool.Chunks;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.streamcache.BlockCache;
import io.cuvette.internal.streamcache.PoolCensus;
import io.cuvette.internal.streamcache.Request;
import io.cuvette.internal.streamcache.StreamCache;
import io.cuvette.internal.streamcache.StreamCaches;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * One pool on one device: its arenas, what it holds and may hold, and the way from a miss to more
 * memory. No lock is held across a call of upstream or of the driver. Thread-safe.
 */
public final class CachingDevicePool extends DevicePool {
  /**
   * Before the pool grows, no block above this many times the request is taken from another stream:
   * it would be cut for little, and its own stream, wanting it again, would grow by all of it.
   */
  private static final long MOST_TIMES_THE_REQUEST = 8;

  /**
   * When it takes memory of other streams, and when it releases any.
   *
   * @param crossStreamBytes from which size on memory of idle streams is taken before it grows
   * @param releaseThreshold the bytes that may stay cached after a free; Long.MAX_VALUE for all
   * @param targetRatio of what is held to the most in use at once, kept if chunks are free
   */
  public record Rules(long crossStreamBytes, long releaseThreshold, double targetRatio) {}

  private final OtherStreams others = new OtherStreams(this);
  public final Chunks chunks = new Chunks();
  private final StreamCaches caches = new StreamCaches(chunks, this::ended);
  private final Rules rules;

  /** The most bytes in use at once, as far as misses saw. */
  private final AtomicLong peakLive = new AtomicLong();

  /**
   * A pool that holds nothing.
   *
   * @param rules when it takes memory of other streams, and when it releases any
   * @param clock tells the time in nanoseconds
   */
  public CachingDevicePool(
      MemoryPoolCore pool, Device device, MemoryLimit limit, Rules rules, LongSupplier clock) {
    super(pool, device, limit, rules.releaseThreshold, clock);
    this.rules = rules;
  }

  @Override
  public BlockCache newCache(DriverStream stream) {
    return caches.make(this, stream);
  }

  private void ended(StreamCache cache) {
    caches.remove(cache);
    CachesOfStream.of(cache.stream).remove(cache);
  }

  @Override
  public void releaseClosed(BlockCache cache) {
    Failures failures = new Failures();
    release((StreamCache) cache, 0, failures);
    pool.forgetIfEmpty();
    failures.throwFirst();
  }

  @Override
  public void assertConsistent() {
    try {
      caches.assertConsistent(held);
    } catch (AssertionError e) {
      if (!chunks.isOver()) { // else the Cuda is closing, and all of it goes
        throw e;
      }
    }
  }

  @Override
  protected @Nullable Face takeBeforeGrowth(Request request, int asks) {
    Asks left = new Asks(asks);
    Face found = others.takeBest(caches.retired(), request, Long.MAX_VALUE, left);
    long rounded = request.rounded();
    if (found == null && rounded >= rules.crossStreamBytes) {
      long most =
          Math.clamp(rounded, 0, Long.MAX_VALUE / MOST_TIMES_THE_REQUEST) * MOST_TIMES_THE_REQUEST;
      found = others.takeBest(caches.all(), request, most, left);
    }
    return found;
  }

  @Override
  protected @Nullable Face takeOfOthers(Request request) {
    return others.takeBest(caches.all(), request, Long.MAX_VALUE, new Asks(Integer.MAX_VALUE));
  }

  /** Requests more memory from upstream; null if the limit or upstream refuses. */
  @Override
  protected @Nullable Face grow(Request request) {
    long rounded = request.rounded();
    if (!request.refusals().isWorthAsking()) {
      return null;
    }
    releaseAboveRatio(rounded);
    if (!held.reserve(rounded)) {
      return null;
    }
    Face block = null;
    try {
      pool.checkOpen(); // again: whoever closes it may not have seen the bytes just reserved
      block = adopt(ask(rounded, request.stream()), request);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY) {
        throw e;
      }
      request.refusals().add(e);
    } finally {
      if (block == null) {
        held.unreserve(rounded);
      }
    }
    if (block != null) {
      grown();
    }
    return block;
  }

  /** Releases free chunks, as far as that keeps a growth below the target ratio. */
  private void releaseAboveRatio(long rounded) {
    if (rules.targetRatio == Double.POSITIVE_INFINITY) {
      return;
    }
    long live = rounded;
    for (StreamCache arena : caches.all()) {
      live += arena.usedBytes();
    }
    long most = (long) (rules.targetRatio * peakLive.accumulateAndGet(live, Math::max)) - rounded;
    if (held.held() > most) {
      long _ = release(null, most);
    }
  }

  private Memory ask(long bytes, OpenStream stream) {
    MemoryHooks hooks = pool.hooks();
    return hooks == null
        ? askNow(bytes, stream)
        : hooks.grow(pool, stream, bytes, () -> askNow(bytes, stream));
  }

  private Memory askNow(long bytes, OpenStream stream) {
    Memory chunk = pool.upstream().ask(bytes, stream, device);
    if (chunk.block().home != null || chunk.block().depth() == BlockReports.FOREIGN) {
      chunk.block().use(stream.state); // another stream's, or others', whose free does not wait
    }
    return chunk;
  }

  /** What cannot be adopted goes back, but for memory that the pool has already. */
  private Face adopt(Memory chunk, Request request) {
    int number;
    try {
      number = chunks.add(chunk, request.rounded());
    } catch (OutOfMemoryError e) {
      chunk.close();
      throw e;
    }
    if (number == Chunks.NONE) {
      chunk.close();
      throw isOver(request.arena());
    }
    Face block = null;
    try {
      block = adopt(number, request);
    } finally {
      if (block == null) {
        closeChunk(number);
      }
    }
    return block;
  }

  /**
   * Puts a chunk into an arena and gives the first part of it.
   *
   * @throws IllegalStateException if the arena's stream or the pool was closed meanwhile; the chunk
   *     is not in it then
   */
  public Face adopt(int chunk, Request request) {
    long address = chunks.get(chunk).address();
    StreamCache arena = (StreamCache) request.arena();
    Face block = arena.adopt(address, chunk, chunks.bytes(chunk), request);
    if (block == null) {
      throw isOver(request.arena());
    }
    return block;
  }

  /** Gives a chunk that left its arena for good back to upstream; it counts as held until then. */
  private long free(int chunk) {
    long bytes = chunks.bytes(chunk);
    if (pool.session().frees().mayPutOff() && putOffFree(chunk)) {
      return bytes;
    }
    try {
      closeChunk(chunk);
    } finally {
      held.freed(bytes);
    }
    return bytes;
  }

  /** Needs Java heap, but only while callbacks hold streams. */
  private boolean putOffFree(int chunk) {
    Memory memory = chunks.get(chunk);
    return pool.session().frees().putOff(memory.block().wouldWait(), () -> free(chunk));
  }

  /** Gives a chunk that could not come into another arena back to upstream. */
  public void freeMoved(int chunk) {
    long bytes = chunks.bytes(chunk);
    try {
      closeChunk(chunk);
    } finally {
      held.unreserve(bytes);
    }
  }

  private void closeChunk(int chunk) {
    Loan loan = chunks.remove(chunk);
    if (loan != null) {
      loan.giveBack();
    }
  }

  @Override
  public long freeAllBlocks(@Nullable DriverStream stream) {
    settle();
    return release(stream, 0);
  }

  @Override
  public long trim(long keptBytes, OptionalLong idleNanos) {
    settle();
    return idleNanos.isEmpty()
        ? release(null, keptBytes)
        : releaseIdle(keptBytes, clock.getAsLong() - idleNanos.getAsLong());
  }

  @Override
  public void releaseAfterFree(BlockCache cache) {
    if (isClosed()) {
      releaseClosed(cache);
      return;
    }
    if (held.held() <= releaseThreshold) {
      return; // what is cached is part of it
    }
    long cached = 0;
    for (StreamCache arena : caches.all()) {
      cached += arena.cachedBytes();
    }
    if (cached > releaseThreshold) {
      long _ = release(null, held.held() - (cached - releaseThreshold));
    }
  }

  private long release(@Nullable DriverStream stream, long keptBytes) {
    long released = 0;
    Failures failures = new Failures();
    for (StreamCache arena : stream == null ? caches.all() : arenasOf(stream)) {
      released += release(arena, keptBytes, failures);
    }
    failures.throwFirst();
    return released;
  }

  private long releaseIdle(long keptBytes, long until) {
    long released = 0;
    Failures failures = new Failures();
    for (StreamCache arena : caches.all()) {
      released += releaseIdle(arena, keptBytes, until, failures);
    }
    failures.throwFirst();
    return released;
  }

  private long releaseIdle(StreamCache arena, long keptBytes, long until, Failures failures) {
    long released = 0;
    int chunk = arena.removeIdle(0, until);
    while (chunk != Chunks.NONE) {
      released += free(chunk, failures);
      chunk = held.held() > keptBytes ? arena.removeIdle(chunk + 1, until) : Chunks.NONE;
    }
    arena.endIfEmpty();
    return released;
  }

  private long release(StreamCache arena, long keptBytes, Failures failures) {
    long released = 0;
    while (held.held() > keptBytes) {
      int chunk = arena.removeAnyWhole();
      if (chunk == Chunks.NONE) {
        break;
      }
      released += free(chunk, failures);
    }
    arena.endIfEmpty();
    return released;
  }

  private long free(int chunk, Failures failures) {
    try {
      return free(chunk);
    } catch (RuntimeException | Error e) {
      failures.add(e);
      return 0;
    }
  }

  private List<StreamCache> arenasOf(DriverStream stream) {
    BlockCache arena = CachesOfStream.of(stream).known(pool);
    return arena == null ? List.of() : List.of((StreamCache) arena);
  }

  @Override
  public void shut() {
    closeCaches();
    caches.all().forEach(StreamCache::retire);
    Failures failures = new Failures();
    failures.run(pending::poll);
    failures.run(() -> release(null, 0));
    failures.throwFirst();
  }

  @Override
  public void awaitOthers(long wantedBytes) {
    pending.await();
    for (StreamCache arena : caches.all()) {
      if (arena.hasFree(1)) {
        arena.awaitFrees();
      }
    }
    awaitRoom(wantedBytes, () -> true);
  }

  @Override
  public List<StreamCache> busyCaches(long rounded) {
    return caches.all().stream().filter(arena -> arena.hasFree(rounded)).toList();
  }

  @Override
  public long takes() {
    return caches.count().allocations + held.reservations();
  }

  @Override
  public boolean hasForgotten() {
    return caches.all().stream().anyMatch(StreamCache::hasForgotten);
  }

  /** The chunks end with their session. */
  @Override
  public void endLent() {
    closeCaches();
    Failures failures = new Failures();
    chunks.end(); // first: what is lent from now on finds no chunk
    caches.all().forEach(arena -> arena.endAll(failures));
    caches.clear();
    pending.clear();
    held.end();
    failures.throwFirst();
  }

  @Override
  public PoolStats stats() {
    settle();
    long beingFreed = held.beingFreed(); // first: what leaves an arena is not counted twice
    PoolCensus census = caches.count();
    long pendingBytes = Math.min(pending.bytes(), census.usedBytes);
    int pendingBlocks = Math.min(pending.blocks(), census.usedBlocks);
    long free = census.freeBytes + pendingBytes + beingFreed;
    long used = census.usedBytes - pendingBytes;
    return new PoolStats(
        used,
        free,
        used + free,
        Math.max(0, census.requestedBytes - pending.requestedBytes()),
        pendingBytes + beingFreed,
        Math.min(free, census.graphBytes + pending.graphBytes()),
        census.releasableBytes,
        census.largestFreeBytes,
        census.usedBlocks - pendingBlocks,
        census.freeBlocks + pendingBlocks,
        census.chunks,
        Math.min(census.peakUsedBytes, held.peak()),
        held.peak(),
        census.allocations,
        growths(),
        others.reuses(),
        outOfMemories(),
        limitBytes());
  }

  @Override
  public void resetPeaks() {
    caches.resetPeaks();
    peakLive.set(0);
    held.resetPeak();
  }

  @Override
  protected long freeBytesOf(BlockCache cache) {
    PoolCensus own = new PoolCensus();
    ((StreamCache) cache).count(own);
    return own.freeBytes;
  }
}
