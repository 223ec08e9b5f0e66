package io.cuvette.internal.streamcache;

import io.cuvette.internal.index.BlockArena;
import io.cuvette.internal.pool.Chunks;
import java.util.Arrays;

/** Since when the chunks of an arena are free, those that are. Not thread-safe. */
final class FreeChunks {
  private int[] blocks = new int[16];
  private long[] times = new long[16];

  /** Makes room for a chunk. */
  void reserve(int chunk) {
    if (chunk >= times.length) {
      int room = Math.max(chunk + 1, times.length * 2);
      int[] more = Arrays.copyOf(blocks, room);
      times = Arrays.copyOf(times, room);
      blocks = more;
    }
  }

  /** A chunk became free. */
  void freed(int chunk, int block, long time) {
    blocks[chunk] = block;
    times[chunk] = time;
  }

  /**
   * Finds a chunk that is free since some time.
   *
   * @param from the first number to look at
   * @param until the latest time
   * @return its number, or {@link Chunks#NONE}
   */
  int find(BlockArena arena, int from, long until) {
    for (int chunk = from; chunk < times.length; chunk++) {
      if (arena.isFreeChunk(blocks[chunk], chunk) && times[chunk] - until <= 0) {
        return chunk;
      }
    }
    return Chunks.NONE;
  }

  /** The block that a chunk is, which was found. */
  int block(int chunk) {
    return blocks[chunk];
  }
}
