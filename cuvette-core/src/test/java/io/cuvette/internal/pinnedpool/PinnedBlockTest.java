package io.cuvette.internal.pinnedpool;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.EngineMemory;
import io.cuvette.PinnedMemoryPool;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A block of page-locked memory is lent to one buffer at a time, and not after the end. */
class PinnedBlockTest {
  private static final long BYTES = 4096;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
  private final PinnedStore store = new PinnedStore(BYTES);

  @AfterEach
  void close() {
    cuda.close();
  }

  private static PinnedBlock block(Buffer buffer) {
    return (PinnedBlock) EngineMemory.of(buffer).block();
  }

  @Test
  void chunk_knowsItsBlock_untilThatIsBack() {
    Buffer buffer = pool.allocate(BYTES);
    PinnedBlock block = block(buffer);
    assertThat(block.chunk.lentTo).isSameAs(block);
    assertThat(block.chunk.stripe).isSameAs(block.stripe);
    buffer.close();
    assertThat(block.chunk.lentTo).isNull();
  }

  @Test
  void blockThatComesBackAgain_isNotTakenTwice() {
    Buffer buffer = pool.allocate(BYTES);
    PinnedBlock block = block(buffer);
    buffer.close();
    for (int i = 0; i < 2; i++) {
      store.give(block);
      assertThat(pool.stats().freeBytes()).isEqualTo(BYTES);
      assertThat(pool.stats().usedBytes()).isZero();
      pool.assertConsistent();
    }
    try (Buffer next = pool.allocate(BYTES)) {
      store.give(block);
      assertThat(pool.stats().usedBytes()).isEqualTo(BYTES);
      assertThat(block(next).chunk.lentTo).isSameAs(block(next));
    }
    pool.assertConsistent();
  }

  @Test
  void chunkInHand_isNotLentAfterTheEnd() {
    PinnedBlock block = block(pool.allocate(BYTES));
    PinnedChunk chunk = block.chunk;
    chunk.lentTo = null;
    assertThat(store.lend(block)).isTrue();
    assertThat(chunk.lentTo).isSameAs(block);
    chunk.lentTo = null;
    cuda.close();
    assertThat(store.lend(block)).isFalse();
    assertThat(chunk.lentTo).isNull();
  }
}
