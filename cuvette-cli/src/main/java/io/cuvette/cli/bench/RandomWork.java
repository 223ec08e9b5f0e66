package io.cuvette.cli.bench;

import io.cuvette.Buffer;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * Frees a random slot and fills it anew; sizes, from 1 byte to 4 MiB, and slots are those of the
 * anchors. Closing frees all. For one thread.
 */
final class RandomWork implements AutoCloseable {
  /** As many as the anchors have. */
  static final int SLOTS = 1024;

  private static final int STEPS = 1 << 16;
  private static final long MOST_BYTES = 4L << 20;
  private static final long[] SIZES = new long[STEPS];
  private static final int[] PLACES = new int[STEPS];

  static {
    SplittableRandom random = new SplittableRandom(1);
    for (int i = 0; i < STEPS; i++) {
      SIZES[i] = 1 + Long.remainderUnsigned(random.nextLong(), MOST_BYTES);
    }
    for (int i = 0; i < STEPS; i++) {
      PLACES[i] = (int) Long.remainderUnsigned(random.nextLong(), SLOTS);
    }
  }

  private final @Nullable Buffer[] live;
  private final int first;

  /**
   * Work with empty slots.
   *
   * @param slots how many, a divisor of {@value #SLOTS}
   * @param first the step to begin with, so that threads do not do the same
   */
  RandomWork(int slots, int first) {
    this.live = new Buffer[slots];
    this.first = first;
  }

  /** Fills all slots. */
  void fill(MemoryResource pool, CudaStream stream) {
    for (int slot = 0; slot < live.length; slot++) {
      close(slot);
      live[slot] = pool.allocate(SIZES[first + slot & STEPS - 1], stream);
    }
  }

  /** Frees and allocates so often. */
  void run(MemoryResource pool, CudaStream stream, int turns) {
    for (int i = 0; i < turns; i++) {
      int step = first + i & STEPS - 1;
      int slot = PLACES[step] % live.length;
      close(slot);
      live[slot] = pool.allocate(SIZES[step], stream);
    }
  }

  private void close(int slot) {
    Buffer buffer = live[slot];
    if (buffer != null) {
      live[slot] = null;
      buffer.close();
    }
  }

  @Override
  public void close() {
    for (int slot = 0; slot < live.length; slot++) {
      close(slot);
    }
  }
}
