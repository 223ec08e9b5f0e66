package io.cuvette;

import io.cuvette.pool.SizeClasses;
import io.cuvette.pool.SpinLock;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of a {@link PinnedMemoryPool} and their counts, under one short lock: cached blocks by
 * size class, last in first out. Makes no driver call. Thread-safe.
 */
final class PinnedStore {
  private final SpinLock lock = new SpinLock();
  private final Map<Integer, ArrayDeque<PinnedBuffer>> cached = new HashMap<>();

  /** What keeps the blocks in use reachable for the leak tracker. */
  private final Set<PinnedBlock> live = new HashSet<>();

  /** Whether the pool was torn down. */
  private boolean over;

  private long limitBytes;
  private long heldBytes;
  private long usedBytes;
  private long requestedBytes;
  private int freeBlocks;
  private long peakUsedBytes;
  private long peakHeldBytes;
  private long allocations;
  private long growths;
  private long outOfMemories;

  PinnedStore(long limitBytes) {
    this.limitBytes = limitBytes;
  }

  void setLimit(long bytes) {
    lock.lock();
    try {
      limitBytes = bytes;
    } finally {
      lock.unlock();
    }
  }

  @Nullable PinnedBuffer takeCached(int sizeClass) {
    lock.lock();
    try {
      ArrayDeque<PinnedBuffer> blocks = cached.get(sizeClass);
      PinnedBuffer chunk = blocks == null ? null : blocks.poll();
      if (chunk != null) {
        freeBlocks--;
      }
      return chunk;
    } finally {
      lock.unlock();
    }
  }

  /** Counts bytes as held if the limit allows them. */
  boolean reserve(long bytes) {
    lock.lock();
    try {
      if (bytes > limitBytes - heldBytes) {
        return false;
      }
      heldBytes += bytes;
      return true;
    } finally {
      lock.unlock();
    }
  }

  void unreserve(long bytes) {
    lock.lock();
    try {
      heldBytes -= bytes;
    } finally {
      lock.unlock();
    }
  }

  void grown() {
    lock.lock();
    try {
      growths++;
      peakHeldBytes = Math.max(peakHeldBytes, heldBytes);
    } finally {
      lock.unlock();
    }
  }

  void failed() {
    lock.lock();
    try {
      outOfMemories++;
    } finally {
      lock.unlock();
    }
  }

  /** Counts a block as in use; false if all were taken out and the pool is over. */
  boolean lend(PinnedBlock block) {
    lock.lock();
    try {
      if (over) {
        return false;
      }
      live.add(block);
      allocations++;
      usedBytes += block.blockBytes();
      requestedBytes += block.requestedBytes;
      peakUsedBytes = Math.max(peakUsedBytes, usedBytes);
      return true;
    } finally {
      lock.unlock();
    }
  }

  void give(PinnedBlock block) {
    lock.lock();
    try {
      if (live.remove(block)) {
        usedBytes -= block.blockBytes();
        requestedBytes -= block.requestedBytes;
        cached.computeIfAbsent(block.sizeClass, c -> new ArrayDeque<>()).push(block.chunk);
        freeBlocks++;
      }
    } finally {
      lock.unlock();
    }
  }

  /** A cached block: what upstream gave may be larger. */
  record Cached(PinnedBuffer chunk, long blockBytes) {}

  /** Takes all cached blocks out; they count as held until {@link #unreserve}. */
  List<Cached> removeCached() {
    lock.lock();
    try {
      List<Cached> all = new ArrayList<>();
      cached.forEach((sizeClass, chunks) ->
          chunks.forEach(chunk -> all.add(new Cached(chunk, blockBytes(sizeClass)))));
      cached.clear();
      freeBlocks = 0;
      return all;
    } finally {
      lock.unlock();
    }
  }

  /** Takes all blocks in use out, for a pool that is torn down. */
  List<PinnedBlock> removeLive() {
    lock.lock();
    try {
      over = true;
      List<PinnedBlock> all = List.copyOf(live);
      live.clear();
      usedBytes = 0;
      requestedBytes = 0;
      return all;
    } finally {
      lock.unlock();
    }
  }

  PinnedPoolStats stats(PendingFrees<PinnedBlock> waiting) {
    lock.lock();
    try {
      long pending = Math.min(waiting.bytes(), usedBytes);
      int pendingBlocks = Math.min(waiting.blocks(), live.size());
      return new PinnedPoolStats(
          usedBytes - pending,
          heldBytes - usedBytes + pending,
          heldBytes,
          Math.max(0, requestedBytes - waiting.requestedBytes()),
          pending,
          live.size() - pendingBlocks,
          freeBlocks + pendingBlocks,
          peakUsedBytes,
          peakHeldBytes,
          allocations,
          growths,
          outOfMemories,
          limitBytes);
    } finally {
      lock.unlock();
    }
  }

  static long blockBytes(int sizeClass) {
    return SizeClasses.classBytes(sizeClass);
  }
}
