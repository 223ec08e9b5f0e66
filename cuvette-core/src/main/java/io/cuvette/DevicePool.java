package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.util.List;
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
  private final HeldBytes held;
  private final PoolArenas arenas = new PoolArenas();
  private final OtherStreams others = new OtherStreams(this);
  private final PendingFrees<PooledBlock> pending = new PendingFrees<>(b -> b.arena.giveOrLeave(b));
  private final AtomicLong growths = new AtomicLong();
  private final AtomicLong outOfMemories = new AtomicLong();
  private volatile MemoryLimit limit;

  DevicePool(MemoryPool pool, CudaDevice device, MemoryLimit limit) {
    this.pool = pool;
    this.device = device;
    this.limit = limit;
    this.held =
        new HeldBytes(
            limit.bytesOf(limit instanceof MemoryLimit.Fraction ? device.totalBytes() : 0));
  }

  Chunks chunks() {
    return chunks;
  }

  HeldBytes held() {
    return held;
  }

  PoolArenas arenas() {
    return arenas;
  }

  PendingFrees<PooledBlock> pending() {
    return pending;
  }

  PoolArena newArena(StreamState stream) {
    return arenas.make(this, stream);
  }

  MemoryLimit limit() {
    return limit;
  }

  long limitBytes() {
    return held.limit();
  }

  void setLimit(MemoryLimit next) {
    held.setLimit(next.bytesOf(device.totalBytes()));
    limit = next;
  }

  long heldBytes() {
    return held.held();
  }

  /** A block that no cached one of its stream was found for. */
  BufferBase allocateSlow(PoolArena arena, long bytes, long rounded, CudaStream stream) {
    settle();
    BufferBase found = arena.take(bytes, rounded, stream);
    if (found == null) {
      found = others.takeBest(arenas.retired(), arena, bytes, rounded, Long.MAX_VALUE, stream);
    }
    if (found == null && rounded >= pool.options().crossStreamBytes()) {
      long most =
          Math.clamp(rounded, 0, Long.MAX_VALUE / MOST_TIMES_THE_REQUEST) * MOST_TIMES_THE_REQUEST;
      found = others.takeBest(arenas.all(), arena, bytes, rounded, most, stream);
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

  /** A cached block of a stream whose work is done, however large. */
  @Nullable BufferBase takeIdle(PoolArena to, long bytes, long rounded, CudaStream stream) {
    return others.takeBest(arenas.all(), to, bytes, rounded, Long.MAX_VALUE, stream);
  }

  /** More memory from upstream; null if the limit or upstream says no. */
  @Nullable BufferBase grow(PoolArena arena, long bytes, long rounded, CudaStream stream) {
    if (!held.reserve(rounded)) {
      return null;
    }
    BufferBase block = null;
    try {
      pool.checkOpen(); // again: whoever closes it may not have seen the bytes just reserved
      BufferBase chunk = Upstream.allocate(pool, rounded, stream);
      block = adopt(chunk, arena, bytes, rounded, stream);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY) {
        throw e;
      }
    } finally {
      if (block == null) {
        held.unreserve(rounded);
      }
    }
    if (block != null) {
      growths.incrementAndGet();
      held.grown();
    }
    return block;
  }

  /** What cannot be adopted goes back, but for memory that the pool has already. */
  private BufferBase adopt(
      BufferBase chunk, PoolArena arena, long bytes, long rounded, CudaStream stream) {
    int number;
    try {
      number = chunks.add(chunk, rounded);
    } catch (OutOfMemoryError e) {
      chunk.close();
      throw e;
    }
    BufferBase block = null;
    try {
      if (number == Chunks.NONE) {
        throw isOver(arena);
      }
      block = adopt(number, arena, bytes, rounded, stream);
    } finally {
      if (block == null) {
        chunks.remove(number);
        chunk.close();
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
  BufferBase adopt(int chunk, PoolArena arena, long bytes, long rounded, CudaStream stream) {
    BufferBase memory = chunks.get(chunk);
    BufferBase block =
        arena.adopt(memory.address(), chunk, chunks.bytes(chunk), bytes, rounded, stream);
    if (block == null) {
      throw isOver(arena);
    }
    return block;
  }

  private IllegalStateException isOver(PoolArena arena) {
    arena.stream.forget(arena);
    pool.checkOpen();
    return new IllegalStateException(arena.stream + " is closed");
  }

  /** Gives a chunk that is in no arena back to upstream: only then it counts as held no more. */
  long giveBack(int chunk) {
    long bytes = chunks.bytes(chunk);
    BufferBase memory = chunks.remove(chunk);
    try {
      if (memory != null) {
        memory.close();
      }
    } finally {
      held.unreserve(bytes);
    }
    return bytes;
  }

  /** Releases every cached whole chunk of one stream, or of all if null; gives the bytes. */
  long freeAllBlocks(@Nullable StreamState stream) {
    settle();
    long released = 0;
    Failures failures = new Failures();
    for (PoolArena arena : stream == null ? arenas.all() : arenasOf(stream)) {
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
    for (int chunk = arena.removeAnyWhole(); chunk != Chunks.NONE; chunk = arena.removeAnyWhole()) {
      try {
        released += giveBack(chunk);
      } catch (RuntimeException | Error e) {
        failures.add(e);
      }
    }
    arena.endIfEmpty();
    return released;
  }

  private List<PoolArena> arenasOf(StreamState stream) {
    PoolArena arena = stream.knownArena(pool);
    return arena == null ? List.of() : List.of(arena);
  }

  /** Gives the cached memory back; each arena ends with its last chunk. */
  void shut() {
    arenas.all().forEach(PoolArena::retire);
    freeAllBlocks(null);
  }

  /**
   * Waits for the streams whose arenas or uses hold cached memory back and, if only the driver is
   * short, for those that hold memory of its pools back.
   */
  void awaitOthers(long wantedBytes) {
    pending.await();
    for (PoolArena arena : arenas.all()) {
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
    arenas.all().forEach(arena -> arena.endAll(failures));
    arenas.clear();
    pending.clear();
    for (BufferBase chunk : gone) {
      failures.run(chunk::close);
    }
    held.end();
    failures.throwFirst();
  }

  void assertConsistent() {
    arenas.assertConsistent(held, chunks);
  }

  PoolStats stats() {
    settle();
    PoolCensus census = arenas.count();
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
        Math.min(census.peakUsedBytes, held.peak()),
        held.peak(),
        census.allocations,
        growths.get(),
        others.reuses(),
        outOfMemories.get(),
        limitBytes());
  }

  void resetPeaks() {
    arenas.resetPeaks();
    held.resetPeak();
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
            limitBytes(),
            DirectMemory.driverFree(device),
            step));
  }
}
