package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * One pool on one device: its arenas, what it holds and may hold, and the way from a miss to more
 * memory. No lock is held across a call of upstream or of the driver. Thread-safe.
 */
final class DevicePool {
  /**
   * Before the pool grows, no block above this many times the request is taken from another stream:
   * it would be cut for little, and its own stream, wanting it again, would grow by all of it.
   */
  private static final long MOST_TIMES_THE_REQUEST = 8;

  final MemoryPool pool;
  final CudaDevice device;

  private final Chunks chunks = new Chunks();
  private final ConcurrentHashMap<StreamState, PoolArena> arenas = new ConcurrentHashMap<>();

  /** Arenas of closed streams that still have memory. */
  private final Set<PoolArena> orphans = ConcurrentHashMap.newKeySet();

  private final PendingFrees<PooledBlock> pending = new PendingFrees<>(b -> b.arena.giveOrLeave(b));
  private final AtomicLong arenaCount = new AtomicLong();
  private final AtomicLong held = new AtomicLong();
  private final AtomicLong peakHeld = new AtomicLong();
  private final AtomicLong pastAllocations = new AtomicLong();

  /** Blocks of other streams that were taken, found in use, and put back. */
  private final AtomicLong notGivenOut = new AtomicLong();

  private final AtomicLong pastPeakUsed = new AtomicLong();
  private final AtomicLong growths = new AtomicLong();
  private final AtomicLong crossStreamReuses = new AtomicLong();
  private final AtomicLong outOfMemories = new AtomicLong();
  private volatile MemoryLimit limit;
  private volatile long limitBytes;

  DevicePool(MemoryPool pool, CudaDevice device, MemoryLimit limit) {
    this.pool = pool;
    this.device = device;
    this.limit = limit;
    this.limitBytes =
        limit.bytesOf(limit instanceof MemoryLimit.Fraction ? device.totalBytes() : 0);
  }

  Chunks chunks() {
    return chunks;
  }

  PendingFrees<PooledBlock> pending() {
    return pending;
  }

  PoolArena arenaOf(StreamState stream) {
    return arenas.computeIfAbsent(
        stream, s -> new PoolArena(pool, this, s, arenaCount.getAndIncrement()));
  }

  void orphan(PoolArena arena) {
    if (arenas.remove(arena.stream, arena)) {
      orphans.add(arena);
      dropIfEmpty(arena);
    }
  }

  /** An orphaned arena without memory is forgotten, but for what it counted. */
  private void dropIfEmpty(PoolArena orphan) {
    if (orphan.isEmpty() && orphans.remove(orphan)) {
      PoolCensus last = new PoolCensus();
      orphan.count(last);
      pastAllocations.addAndGet(last.allocations);
      pastPeakUsed.addAndGet(last.peakUsedBytes);
    }
  }

  MemoryLimit limit() {
    return limit;
  }

  long limitBytes() {
    return limitBytes;
  }

  void setLimit(MemoryLimit next) {
    limitBytes = next.bytesOf(device.totalBytes());
    limit = next;
  }

  long heldBytes() {
    return held.get();
  }

  /** A block that no cached one of its stream was found for. */
  BufferBase allocateSlow(PoolArena arena, long bytes, long rounded, CudaStream stream) {
    settle();
    BufferBase found = arena.take(bytes, rounded, stream);
    if (found == null) {
      found = takeOrphaned(arena, bytes, rounded, stream);
    }
    if (found == null && rounded >= pool.options().crossStreamBytes()) {
      long most =
          Math.clamp(rounded, 0, Long.MAX_VALUE / MOST_TIMES_THE_REQUEST) * MOST_TIMES_THE_REQUEST;
      found = takeBest(allArenas(), arena, bytes, rounded, most, stream);
    }
    if (found == null) {
      found = grow(arena, bytes, rounded, stream);
    }
    return found != null ? found : new Recovery(this, arena, bytes, rounded, stream).run();
  }

  /** Takes back what is done or forgotten. */
  void settle() {
    pool.cuda().leaks().drain();
    pending.poll();
  }

  private @Nullable BufferBase takeOrphaned(
      PoolArena to, long bytes, long rounded, CudaStream stream) {
    return orphans.isEmpty()
        ? null
        : takeBest(List.copyOf(orphans), to, bytes, rounded, Long.MAX_VALUE, stream);
  }

  /** A cached block of a stream whose work is done, however large. */
  @Nullable BufferBase takeIdle(PoolArena to, long bytes, long rounded, CudaStream stream) {
    return takeBest(allArenas(), to, bytes, rounded, Long.MAX_VALUE, stream);
  }

  /** An arena and the smallest block of it that fits. */
  private record Fit(PoolArena arena, long bytes) {}

  /**
   * The best fit of at most {@code most} bytes over several arenas; the next best if that arena's
   * stream is busy.
   */
  private @Nullable BufferBase takeBest(
      List<PoolArena> from, PoolArena to, long bytes, long rounded, long most, CudaStream stream) {
    List<Fit> fits = new ArrayList<>();
    for (PoolArena arena : from) {
      long fit = arena == to ? 0 : arena.bestFitBytes(rounded);
      if (fit > 0 && fit <= most) {
        fits.add(new Fit(arena, fit));
      }
    }
    fits.sort(Comparator.comparingLong(Fit::bytes).thenComparingLong(fit -> fit.arena.number));
    for (Fit fit : fits) {
      BufferBase found = takeFrom(fit.arena, to, bytes, rounded, stream);
      dropIfEmpty(fit.arena);
      if (found != null) {
        return found;
      }
    }
    return null;
  }

  /**
   * A whole chunk moves to the asking arena; a part of one is only lent. The memory is taken first
   * and the stream asked after that, so that its answer covers every use before the memory was
   * freed.
   */
  private @Nullable BufferBase takeFrom(
      PoolArena from, PoolArena to, long bytes, long rounded, CudaStream stream) {
    PoolArena.FreeChunk chunk = from.removeWhole(rounded);
    if (chunk != null) {
      return move(chunk, from, to, bytes, rounded, stream);
    }
    BufferBase lent = from.take(bytes, rounded, stream);
    if (lent == null) {
      return null;
    }
    if (isIdle(from, lent)) {
      crossStreamReuses.incrementAndGet();
      return lent;
    }
    putBack(from, lent);
    return null;
  }

  private void putBack(PoolArena from, BufferBase taken) {
    PooledBlock block = (PooledBlock) taken.lifetime();
    if (block.end()) {
      block.clear();
      notGivenOut.incrementAndGet();
      from.giveOrLeave(block);
    }
  }

  private boolean isIdle(PoolArena from, BufferBase taken) {
    try {
      return from.stream.isIdle();
    } catch (RuntimeException e) {
      putBack(from, taken);
      throw e;
    }
  }

  private @Nullable BufferBase move(
      PoolArena.FreeChunk chunk,
      PoolArena from,
      PoolArena to,
      long bytes,
      long rounded,
      CudaStream stream) {
    boolean moves = false;
    try {
      moves = from.stream.isIdle();
    } finally {
      if (!moves) {
        from.restore(chunk);
      }
    }
    if (!moves) {
      return null;
    }
    crossStreamReuses.incrementAndGet();
    chunks.get(chunk.chunk()).lifetime().use(stream.state);
    BufferBase block =
        to.adopt(chunk.address(), chunk.chunk(), chunk.bytes(), bytes, rounded, stream);
    keepIfOrphaned(to);
    return block;
  }

  /** More memory from upstream; null if the limit or upstream says no. */
  @Nullable BufferBase grow(PoolArena arena, long bytes, long rounded, CudaStream stream) {
    if (!reserve(rounded)) {
      return null;
    }
    BufferBase chunk = null;
    int number;
    try {
      pool.checkOpen(); // again: whoever closes it may not have seen the bytes just reserved
      BufferBase given = Upstream.allocate(pool, rounded, stream);
      number = chunks.add(given);
      if (number == Chunks.NONE) {
        given.close();
        pool.checkOpen();
      }
      chunk = given;
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY) {
        throw e;
      }
      return null;
    } finally {
      if (chunk == null) {
        held.addAndGet(-rounded);
      }
    }
    growths.incrementAndGet();
    peakHeld.accumulateAndGet(held.get(), Math::max);
    BufferBase block = arena.adopt(chunk.address(), number, rounded, bytes, rounded, stream);
    keepIfOrphaned(arena);
    return block;
  }

  /** Another thread may have closed the stream after this one asked for its arena. */
  private void keepIfOrphaned(PoolArena arena) {
    if (arena.stream.isClosed()) {
      arenas.remove(arena.stream, arena);
      orphans.add(arena);
    }
  }

  private boolean reserve(long bytes) {
    long before;
    do {
      before = held.get();
      if (bytes > limitBytes - before) {
        return false;
      }
    } while (!held.compareAndSet(before, before + bytes));
    return true;
  }

  /** Releases every cached whole chunk of one stream, or of all if null; gives the bytes. */
  long freeAllBlocks(@Nullable StreamState stream) {
    settle();
    long released = 0;
    Failures failures = new Failures();
    for (PoolArena arena : stream == null ? allArenas() : arenasOf(stream)) {
      released += release(arena, failures);
    }
    failures.throwFirst();
    return released;
  }

  long release(PoolArena arena) {
    Failures failures = new Failures();
    long released = release(arena, failures);
    failures.throwFirst();
    return released;
  }

  private long release(PoolArena arena, Failures failures) {
    long released = 0;
    for (var chunk = arena.removeAnyWhole(); chunk != null; chunk = arena.removeAnyWhole()) {
      BufferBase buffer = chunks.remove(chunk.chunk());
      if (buffer != null) {
        held.addAndGet(-chunk.bytes());
        released += chunk.bytes();
        failures.run(buffer::close);
      }
    }
    if (arena.stream.isClosed()) {
      dropIfEmpty(arena);
    }
    return released;
  }

  private List<PoolArena> arenasOf(StreamState stream) {
    PoolArena arena = arenas.get(stream);
    return arena == null ? List.of() : List.of(arena);
  }

  private List<PoolArena> allArenas() {
    List<PoolArena> all = new ArrayList<>(arenas.values());
    all.addAll(orphans);
    return all;
  }

  /**
   * Waits for the streams whose arenas or uses hold cached memory back and, if only the driver is
   * short, for those that hold memory of its pools back.
   */
  void awaitOthers(long wantedBytes) {
    pending.await();
    for (PoolArena arena : allArenas()) {
      if (arena.hasFree(1)) {
        arena.stream.await();
      }
    }
    if (wantedBytes <= limitBytes() - heldBytes()) {
      device.cuda().driverPools().awaitFrees(device);
    }
  }

  /** Frees everything, also what is in use: the buffers are closed by this. */
  void destroy() {
    Failures failures = new Failures();
    BufferBase[] gone = chunks.removeAll(); // first: what is lent from now on finds no chunk
    allArenas().forEach(arena -> arena.endAll(failures));
    arenas.keySet().forEach(stream -> stream.forget(pool));
    arenas.clear();
    orphans.clear();
    pending.clear();
    held.set(0);
    for (BufferBase chunk : gone) {
      failures.run(chunk::close);
    }
    failures.throwFirst();
  }

  PoolStats stats() {
    settle();
    PoolCensus census = new PoolCensus();
    allArenas().forEach(arena -> arena.count(census));
    long pendingBytes = Math.min(pending.bytes(), census.usedBytes);
    int pendingBlocks = Math.min(pending.blocks(), census.usedBlocks);
    long holds = census.usedBytes + census.freeBytes;
    return new PoolStats(
        census.usedBytes - pendingBytes,
        census.freeBytes + pendingBytes,
        holds,
        Math.max(0, census.requestedBytes - pending.requestedBytes()),
        pendingBytes,
        census.releasableBytes,
        census.largestFreeBytes,
        census.usedBlocks - pendingBlocks,
        census.freeBlocks + pendingBlocks,
        census.chunks,
        Math.min(census.peakUsedBytes + pastPeakUsed.get(), peakHeld.get()),
        peakHeld.get(),
        census.allocations + pastAllocations.get() - notGivenOut.get(),
        growths.get(),
        crossStreamReuses.get(),
        outOfMemories.get(),
        limitBytes);
  }

  void resetPeaks() {
    allArenas().forEach(PoolArena::resetPeak);
    pastPeakUsed.set(0);
    peakHeld.set(held.get());
  }

  OutOfDeviceMemoryException outOfMemory(
      PoolArena arena, long bytes, long rounded, RecoveryStep step) {
    outOfMemories.incrementAndGet();
    PoolCensus own = new PoolCensus();
    arena.count(own);
    PoolStats all = stats();
    return new OutOfDeviceMemoryException(
        "allocate(bytes=%d, stream=%s)".formatted(bytes, arena.stream),
        new OutOfDeviceMemoryException.Details(
            device.id(),
            bytes,
            rounded,
            all.heldBytes(),
            all.usedBytes(),
            all.freeBytes(),
            all.freeBlocks(),
            all.largestFreeBytes(),
            all.freeBytes() - own.freeBytes,
            limitBytes,
            DirectMemory.driverFree(device),
            step));
  }
}
