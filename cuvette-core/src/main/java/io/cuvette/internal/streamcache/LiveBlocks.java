package io.cuvette.internal.streamcache;

import io.cuvette.internal.base.SpinLock;
import java.util.Arrays;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of an arena that are in use, by number: what keeps them reachable for the leak
 * tracker. Segments never move, so that growing takes no longer the more blocks there are. Not
 * thread-safe.
 */
public final class LiveBlocks {
  private static final int SHIFT = 12;
  private static final int SEGMENT = 1 << SHIFT;
  private static final int FIRST = 64;

  /** The first segment, which grows; most arenas never have another. */
  private @Nullable CachedBlock[] first = new CachedBlock[FIRST];

  /** The others, and nothing in the place of the first. */
  private @Nullable CachedBlock[][] segments = {new CachedBlock[0]};

  private int room = FIRST;

  private void grow() {
    if (room < SEGMENT) {
      first = Arrays.copyOf(first, room * 2);
      room *= 2;
    } else {
      @Nullable CachedBlock[] segment = new CachedBlock[SEGMENT];
      int count = segments.length;
      segments = Arrays.copyOf(segments, count + 1);
      segments[count] = segment;
      room += SEGMENT;
    }
  }

  /** Sets what a number stands for. Changes nothing if the Java heap is full. */
  public void put(int block, @Nullable CachedBlock cached) {
    @Nullable CachedBlock[] most = first;
    if (block < most.length) {
      most[block] = cached;
    } else if (cached != null || block < room) {
      putBeyond(block, cached);
    }
  }

  private void putBeyond(int block, @Nullable CachedBlock cached) {
    while (block >= room) {
      grow();
    }
    segment(block >>> SHIFT)[block & (SEGMENT - 1)] = cached;
  }

  public void forEach(Consumer<CachedBlock> action) {
    for (int i = 0; i < segments.length; i++) {
      for (CachedBlock block : segment(i)) {
        if (block != null) {
          action.accept(block);
        }
      }
    }
  }

  private @Nullable CachedBlock[] segment(int index) {
    return index == 0 ? first : segments[index];
  }

  /** The number of segments. */
  public int segments() {
    return segments.length;
  }

  /** Whether the collector has found the buffer of a block of a segment. */
  public boolean hasForgotten(int segment) {
    for (CachedBlock block : segment(segment)) {
      if (block != null && block.isForgotten()) {
        return true;
      }
    }
    return false;
  }

  /** The same of all segments, for a short time each under the lock that guards them. */
  public boolean hasForgotten(SpinLock lock) {
    boolean found = false;
    int segments = 1;
    for (int i = 0; i < segments && !found; i++) {
      lock.lock();
      try {
        found = hasForgotten(i);
        segments = segments();
      } finally {
        lock.unlock();
      }
    }
    return found;
  }

  public void clear() {
    for (int i = 0; i < segments.length; i++) {
      Arrays.fill(segment(i), null);
    }
  }
}
