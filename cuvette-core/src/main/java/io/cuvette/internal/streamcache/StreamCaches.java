package io.cuvette.internal.streamcache;

import io.cuvette.internal.pool.Budget;
import io.cuvette.internal.pool.Chunks;
import io.cuvette.internal.stream.DriverStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * The arenas of one pool on one device, and what those that are over had counted. An arena is here
 * from its start to its end, so that all its memory can be found. Thread-safe.
 */
public final class StreamCaches {
  /** In the order in which they were made, so that what is taken does not depend on luck. */
  private final CopyOnWriteArrayList<StreamCache> all = new CopyOnWriteArrayList<>();

  private final Chunks chunks;
  private final Consumer<StreamCache> ended;
  private final AtomicLong pastAllocations = new AtomicLong();
  private final AtomicLong pastPeakUsed = new AtomicLong();

  /**
   * No arenas yet.
   *
   * @param ended is notified when one has ended with its stream or its pool
   */
  public StreamCaches(Chunks chunks, Consumer<StreamCache> ended) {
    this.chunks = chunks;
    this.ended = ended;
  }

  public StreamCache make(DeviceCache of, DriverStream stream) {
    StreamCache arena = new StreamCache(of, stream, chunks, ended);
    all.add(arena);
    return arena;
  }

  /** Forgets an arena that is over, but for what it counted. */
  public void remove(StreamCache arena) {
    if (all.remove(arena)) {
      PoolCensus last = new PoolCensus();
      arena.count(last);
      pastAllocations.addAndGet(last.allocations);
      pastPeakUsed.addAndGet(last.peakUsedBytes);
    }
  }

  /** Whoever iterates sees those of that moment. */
  public List<StreamCache> all() {
    return all;
  }

  /** Those of closed streams, which still have memory. */
  public List<StreamCache> retired() {
    List<StreamCache> retired = new ArrayList<>();
    for (StreamCache arena : all) {
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
    all.forEach(StreamCache::resetPeak);
    pastPeakUsed.set(0);
  }

  public void clear() {
    all.forEach(ended);
    all.clear();
  }

  /** Compares the books with what is in the arenas, and with the chunks if none is in transit. */
  public void assertConsistent(Budget held) {
    boolean checked = false;
    while (!checked) {
      List<StreamCache> paused = List.copyOf(all);
      long bytes = 0;
      for (StreamCache arena : paused) {
        bytes += arena.pause();
      }
      try {
        checked = held.assertConsistent(bytes, chunks::bytes, () -> paused.containsAll(all));
      } finally {
        paused.forEach(StreamCache::resume);
      }
    }
  }
}
