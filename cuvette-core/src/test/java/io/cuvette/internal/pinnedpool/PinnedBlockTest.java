package io.cuvette.internal.pinnedpool;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.EngineMemory;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.internal.base.Spread;
import io.cuvette.internal.pool.Budget;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

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

  /** Of its own stripe a thread has seen that it is not there: it could wait for itself. */
  @Test
  @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void cachedChunk_isBroughtToEachOtherStripe_andNotToItsOwn() {
    PinnedChunk chunk;
    try (Buffer buffer = pool.allocate(BYTES)) {
      chunk = block(buffer).chunk;
    }
    PinnedStripes stripes = new PinnedStripes(new Budget(BYTES));
    assertThat(stripes.bring(chunk.sizeClass, stripes.mine())).as("the only stripe").isFalse();
    stripes.met();
    assertThat(stripes.areSeveral()).isTrue();
    PinnedStripe mine = stripes.mine();
    assertThat(stripes.isMine(mine)).isTrue();
    for (int i = 0; i < Spread.PLACES; i++) {
      mine.push(chunk);
      PinnedStripe to = i == mine.index ? mine : new PinnedStripe(stripes, i);
      assertThat(stripes.isMine(to)).isEqualTo(to == mine);
      assertThat(stripes.bring(chunk.sizeClass + 1, to)).as("of another class").isFalse();
      assertThat(stripes.bring(chunk.sizeClass, to)).as("stripe %d", i).isEqualTo(to != mine);
      assertThat(to.cachedBytes()).isEqualTo(BYTES);
      assertThat(mine.freeBlocks()).isEqualTo(to == mine ? 1 : 0);
      assertThat(to.bring(chunk.sizeClass)).isSameAs(chunk);
    }
    mine.push(chunk);
    stripes.end();
    PinnedStripe other = new PinnedStripe(stripes, mine.index ^ 1);
    assertThat(stripes.bring(chunk.sizeClass, other)).as("of a pool that is over").isFalse();
  }

  /** So that threads that share a store miss less; alone, what fits is had without that. */
  @Test
  void littleLargerChunk_isTaken_whereThreadsShareAStore_andNotAfterTheEnd() {
    PinnedChunk chunk;
    try (Buffer buffer = pool.allocate(BYTES)) {
      chunk = block(buffer).chunk;
    }
    int own = chunk.sizeClass;
    PinnedStripes stripes = new PinnedStripes(new Budget(BYTES));
    PinnedStripe mine = stripes.mine();
    mine.push(chunk);
    assertThat(mine.take(own - 1)).as("the only stripe").isNull();
    stripes.met();
    for (int smaller : new int[] {0, 1, 2, 3}) {
      assertThat(mine.take(own - smaller)).isSameAs(chunk);
      assertThat(mine.usedBytes()).isEqualTo(BYTES);
      mine.putBack(chunk);
    }
    assertThat(mine.take(own - 4)).as("much larger").isNull();
    assertThat(mine.take(own + 1)).as("smaller").isNull();
    stripes.end();
    for (int smaller : new int[] {0, 1, 2, 3}) {
      assertThat(mine.take(own - smaller)).as("over").isNull();
    }
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
