package io.cuvette.internal.streamcache;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.index.BlockArena;
import io.cuvette.internal.pool.Chunks;
import org.junit.jupiter.api.Test;

/** Since when chunks are free, of which there are more with time. */
class FreeChunksTest {
  private static final int CHUNKS = 1_000;

  /** Room is made for each chunk, and takes more of the Java heap only if there is none. */
  @Test
  void chunks_areFoundByTheTimeTheyAreFree_howeverManyThereAre() {
    BlockArena arena = new BlockArena();
    FreeChunks chunks = new FreeChunks();
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
      chunks.reserve(chunk);
      int block = arena.add(chunk + 1L << 32, 1 << 20, chunk);
      chunks.freed(chunk, block, chunk);
      for (int i = 0; i < 3; i++) {
        chunks.reserve(chunk / 2);
      }
    }
    for (int until : new int[] {-1, 0, 1, 15, 16, 31, 32, CHUNKS - 1, CHUNKS}) {
      int found = 0;
      for (int chunk = chunks.find(arena, 0, until);
          chunk != Chunks.NONE;
          chunk = chunks.find(arena, chunk + 1, until)) {
        assertThat(chunk).isEqualTo(found++);
        assertThat(arena.chunk(chunks.block(chunk))).isEqualTo(chunk);
      }
      assertThat(found).as("until %d", until).isEqualTo(Math.min(until + 1, CHUNKS));
    }
  }
}
