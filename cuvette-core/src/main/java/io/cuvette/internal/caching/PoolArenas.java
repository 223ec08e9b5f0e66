package io.cuvette.internal.caching;

import io.cuvette.internal.block.HeldBytes;
import io.cuvette.internal.stream.StreamState;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The arenas of one pool on one device, and what those that are over had counted. An arena is here
 * from its start to its end, so that all its memory can be found. Thread-safe.
 */
public final class PoolArenas {
  private final Set<PoolArena> all = ConcurrentHashMap.newKeySet();
  private final AtomicLong made = new AtomicLong();
  private final AtomicLong pastAllocations = new AtomicLong();
  private final AtomicLong pastPeakUsed = new AtomicLong();

  public PoolArena make(DevicePool devicePool, StreamState stream) {
    PoolArena arena = new PoolArena(devicePool.pool, devicePool, stream, made.getAndIncrement());
    all.add(arena);
    return arena;
  }

  /** Forgets an arena that is over, but for what it counted. */
  public void remove(PoolArena arena) {
    if (all.remove(arena)) {
      PoolCensus last = new PoolCensus();
      arena.count(last);
      pastAllocations.addAndGet(last.allocations);
      pastPeakUsed.addAndGet(last.peakUsedBytes);
    }
  }

  public List<PoolArena> all() {
    return new ArrayList<>(all);
  }

  /** Those of closed streams, which still have memory. */
  public List<PoolArena> retired() {
    List<PoolArena> retired = new ArrayList<>();
    for (PoolArena arena : all) {
      if (arena.isRetired()) {
        retired.add(arena);
      }
    }
    return retired;
  }

  public PoolCensus count() {
    PoolCensus census = new PoolCensus();
    census.allocations = pastAllocations.get();
    census.peakUsedBytes = pastPeakUsed.get();
    all.forEach(arena -> arena.count(census));
    return census;
  }

  public void resetPeaks() {
    all.forEach(PoolArena::resetPeak);
    pastPeakUsed.set(0);
  }

  public void clear() {
    all.forEach(arena -> StreamArenas.of(arena.stream).remove(arena));
    all.clear();
  }

  /** Compares the books with what is in the arenas, and with the chunks if none is in transit. */
  public void assertConsistent(HeldBytes held, Chunks chunks) {
    boolean checked = false;
    while (!checked) {
      List<PoolArena> paused = all();
      paused.sort(Comparator.comparingLong(arena -> arena.number));
      long bytes = 0;
      for (PoolArena arena : paused) {
        bytes += arena.pause();
      }
      try {
        checked = held.assertConsistent(bytes, chunks::bytes, () -> paused.containsAll(all));
      } finally {
        paused.forEach(PoolArena::resume);
      }
    }
  }
}
