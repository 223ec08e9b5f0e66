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
  private final ReentrantLock lock = new ReentrantLock();
  private volatile @Nullable BufferBase[] buffers = new BufferBase[16];
  private final Set<BufferBase> known = Collections.newSetFromMap(new IdentityHashMap<>());
  private int[] free = new int[16];
  private int freeCount;
  private int count;

  /**
   * Remembers a chunk.
   *
   * @throws IllegalStateException if it is there already: its memory would be handed out twice
   */
  int add(BufferBase buffer) {
    lock.lock();
    try {
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

  BufferBase get(int chunk) {
    BufferBase buffer = buffers[chunk];
    if (buffer == null) {
      throw new AssertionError("chunk " + chunk + " is gone");
    }
    return buffer;
  }

  BufferBase remove(int chunk) {
    lock.lock();
    try {
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
      BufferBase[] all = Arrays.stream(buffers).filter(b -> b != null).toArray(BufferBase[]::new);
      buffers = new BufferBase[16];
      known.clear();
      freeCount = 0;
      count = 0;
      return all;
    } finally {
      lock.unlock();
    }
  }
}
