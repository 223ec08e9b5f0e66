package io.cuvette;

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
final class PoolArenas {
  private final Set<PoolArena> all = ConcurrentHashMap.newKeySet();
  private final AtomicLong made = new AtomicLong();
  private final AtomicLong pastAllocations = new AtomicLong();
  private final AtomicLong pastPeakUsed = new AtomicLong();

  PoolArena make(DevicePool devicePool, StreamState stream) {
    PoolArena arena = new PoolArena(devicePool.pool, devicePool, stream, made.getAndIncrement());
    all.add(arena);
    return arena;
  }

  /** Forgets an arena that is over, but for what it counted. */
  void remove(PoolArena arena) {
    if (all.remove(arena)) {
      PoolCensus last = new PoolCensus();
      arena.count(last);
      pastAllocations.addAndGet(last.allocations);
      pastPeakUsed.addAndGet(last.peakUsedBytes);
    }
  }

  List<PoolArena> all() {
    return new ArrayList<>(all);
  }

  /** Those of closed streams, which still have memory. */
  List<PoolArena> retired() {
    List<PoolArena> retired = new ArrayList<>();
    for (PoolArena arena : all) {
      if (arena.isRetired()) {
        retired.add(arena);
      }
    }
    return retired;
  }

  PoolCensus count() {
    PoolCensus census = new PoolCensus();
    census.allocations = pastAllocations.get();
    census.peakUsedBytes = pastPeakUsed.get();
    all.forEach(arena -> arena.count(census));
    return census;
  }

  void resetPeaks() {
    all.forEach(PoolArena::resetPeak);
    pastPeakUsed.set(0);
  }

  void clear() {
    all.forEach(arena -> StreamArenas.of(arena.stream).remove(arena));
    all.clear();
  }

  /** Compares the books with what is in the arenas, and with the chunks if none is in transit. */
  void assertConsistent(HeldBytes held, Chunks chunks) {
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
