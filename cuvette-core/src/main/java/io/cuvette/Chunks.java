package io.cuvette;

import io.cuvette.Spans.Span;
import java.util.Arrays;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The allocations that a pool holds from upstream, by number; no two of them overlap. Reading is
 * free of locks. Thread-safe.
 */
final class Chunks {
  static final int NONE = -1;

  private final ReentrantLock lock = new ReentrantLock();
  private volatile @Nullable BufferBase[] buffers = new BufferBase[16];

  /** The addresses of each, and all of these in order. */
  private @Nullable Span[] spans = new Span[16];

  private final Spans all = new Spans();
  private int[] free = new int[16];
  private int freeCount;
  private int count;

  /** Whether all were removed, and none comes any more. */
  private boolean over;

  /**
   * Remembers a chunk; false, by a number below 0, if all were removed.
   *
   * @param bytes what the pool uses of it
   * @throws IllegalStateException if some of it is there already: it would be handed out twice
   */
  int add(BufferBase buffer, long bytes) {
    lock.lock();
    try {
      if (over) {
        return NONE;
      }
      int chunk = freeCount > 0 ? free[freeCount - 1] : count;
      reserve(chunk);
      Span span = all.add(buffer, bytes);
      if (chunk == count) {
        count++;
      } else {
        freeCount--;
      }
      spans[chunk] = span;
      @Nullable BufferBase[] current = buffers;
      current[chunk] = buffer;
      buffers = current;
      return chunk;
    } finally {
      lock.unlock();
    }
  }

  /** Makes room for a chunk, and for its number once it is removed. */
  private void reserve(int chunk) {
    int room = spans.length;
    if (chunk == room) {
      free = Arrays.copyOf(free, room * 2);
      buffers = Arrays.copyOf(buffers, room * 2);
      spans = Arrays.copyOf(spans, room * 2);
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

  /** Takes a chunk out; null if all were removed. Allocates nothing in the Java heap. */
  @Nullable BufferBase remove(int chunk) {
    lock.lock();
    try {
      if (over || chunk == NONE) {
        return null;
      }
      BufferBase buffer = get(chunk);
      Span span = spans[chunk];
      buffers[chunk] = null;
      spans[chunk] = null;
      if (span != null) {
        all.remove(span);
      }
      free[freeCount++] = chunk;
      return buffer;
    } finally {
      lock.unlock();
    }
  }

  /** Whether all were removed, at the end of the Cuda. */
  boolean isOver() {
    lock.lock();
    try {
      return over;
    } finally {
      lock.unlock();
    }
  }

  /** The bytes of a chunk, as the pool uses them; 0 if all were removed. */
  long bytes(int chunk) {
    lock.lock();
    try {
      Span span = over ? null : spans[chunk];
      return span == null ? 0 : span.bytes();
    } finally {
      lock.unlock();
    }
  }

  /** The bytes of all chunks, as the pool uses them. */
  long bytes() {
    return all.bytes();
  }

  /** Removes all, for a pool that is torn down. */
  BufferBase[] removeAll() {
    lock.lock();
    try {
      over = true;
      BufferBase[] gone = Arrays.stream(buffers).filter(b -> b != null).toArray(BufferBase[]::new);
      buffers = new BufferBase[0];
      all.clear();
      return gone;
    } finally {
      lock.unlock();
    }
  }
}
