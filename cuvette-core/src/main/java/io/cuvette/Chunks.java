package io.cuvette;

import java.util.Arrays;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The allocations that a pool holds from upstream, by number. Reading is free of locks.
 * Thread-safe.
 */
final class Chunks {
  static final int NONE = -1;

  private final ReentrantLock lock = new ReentrantLock();
  private volatile @Nullable BufferBase[] buffers = new BufferBase[16];
  private final Set<BufferBase> known = Collections.newSetFromMap(new IdentityHashMap<>());
  private int[] free = new int[16];
  private int freeCount;
  private int count;

  /** Whether all were removed, and none comes any more. */
  private boolean over;

  /**
   * Remembers a chunk; false, by a number below 0, if all were removed.
   *
   * @throws IllegalStateException if it is there already: its memory would be handed out twice
   */
  int add(BufferBase buffer) {
    lock.lock();
    try {
      if (over) {
        return NONE;
      }
      if (!known.add(buffer)) {
        throw new IllegalStateException(
            "the upstream resource returned %s again (expected: memory that the pool does not hold)"
                .formatted(buffer.asBuffer()));
      }
      int chunk = freeCount > 0 ? free[--freeCount] : count++;
      @Nullable BufferBase[] current = buffers;
      if (chunk >= current.length) {
        current = Arrays.copyOf(current, chunk * 2);
      }
      current[chunk] = buffer;
      buffers = current;
      return chunk;
    } finally {
      lock.unlock();
    }
  }

  /**
   * A chunk.
   *
   * @throws IllegalStateException if the pool was torn down by another thread
   */
  BufferBase get(int chunk) {
    @Nullable BufferBase[] all = buffers;
    BufferBase buffer = chunk < all.length ? all[chunk] : null;
    if (buffer == null) {
      throw new IllegalStateException("the pool is closed: its chunk " + chunk + " is gone");
    }
    return buffer;
  }

  /** Takes a chunk out; null if all were removed. */
  @Nullable BufferBase remove(int chunk) {
    lock.lock();
    try {
      if (over) {
        return null;
      }
      BufferBase buffer = get(chunk);
      buffers[chunk] = null;
      known.remove(buffer);
      if (freeCount == free.length) {
        free = Arrays.copyOf(free, freeCount * 2);
      }
      free[freeCount++] = chunk;
      return buffer;
    } finally {
      lock.unlock();
    }
  }

  /** Removes all, for a pool that is torn down. */
  BufferBase[] removeAll() {
    lock.lock();
    try {
      over = true;
      BufferBase[] all = Arrays.stream(buffers).filter(b -> b != null).toArray(BufferBase[]::new);
      buffers = new BufferBase[0];
      known.clear();
      return all;
    } finally {
      lock.unlock();
    }
  }
}
