package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.base.Spread;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Threads have met in a pool of page-locked memory: what each has cached is there for all. */
@Timeout(600)
class PinnedStripesTest {
  private static final int BYTES = 8 << 10;
  private static final int BLOCKS = 16;

  private @Nullable BusyDriver made;
  private final Cuda cuda =
      Cuda.open(CudaOptions.simulated().withDecorator(driver -> made = new BusyDriver(driver)));
  private final BusyDriver driver = Objects.requireNonNull(made);
  private final PinnedMemoryPool pool =
      new PinnedMemoryPool(
          cuda, PinnedPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes((long) BLOCKS * BYTES)));

  @AfterEach
  void close() {
    cuda.close();
  }

  /** One thread takes all locks again and again, until the other has found one taken. */
  private void meet() throws InterruptedException {
    AtomicBoolean isOver = new AtomicBoolean();
    Thread looking =
        Thread.ofPlatform()
            .start(() -> {
              while (!isOver.get()) {
                PinnedPoolStats _ = pool.stats();
              }
            });
    try {
      while (!hasCloseOnes()) {
        Thread.onSpinWait();
      }
    } finally {
      isOver.set(true);
      looking.join();
    }
    assertThat(pool.freeAllBlocks()).isPositive();
  }

  /** Whether a block is taken that is larger than need be, as threads do that have met. */
  private boolean hasCloseOnes() {
    long _ = pool.freeAllBlocks();
    pool.allocate(BYTES + 1024).close();
    try (PinnedBuffer buffer = pool.allocate(BYTES)) {
      return buffer.blockBytes() > BYTES;
    }
  }

  /** None of the threads is the one that had the blocks, and all of the limit is in these. */
  @Test
  void blocksThatOtherThreadsFreed_areTakenWithoutAShortage() throws InterruptedException {
    meet();
    List<PinnedBuffer> all = new ArrayList<>();
    for (int i = 0; i < BLOCKS; i++) {
      all.add(pool.allocate(BYTES));
    }
    for (PinnedBuffer each : all) {
      Thread.ofPlatform().start(each::close).join();
    }
    List<PinnedBuffer> taken = new ArrayList<>();
    for (int i = 0; i < BLOCKS; i++) {
      Thread.ofPlatform().start(() -> taken.add(pool.tryAllocate(BYTES))).join();
    }
    assertThat(taken).hasSize(BLOCKS).doesNotContainNull();
    assertThat(pool.tryAllocate(BYTES)).as("the limit").isNull();
    PinnedPoolStats stats = pool.stats();
    assertThat(stats.usedBlocks()).isEqualTo(BLOCKS);
    assertThat(stats.freeBlocks()).isZero();
    pool.assertConsistent();
  }

  /** Runs in a thread that has another stripe than this one. */
  private static void elsewhere(Runnable code) throws InterruptedException {
    AtomicBoolean isDone = new AtomicBoolean();
    while (!isDone.get()) {
      int here = Spread.mine(Spread.PLACES);
      Thread.ofPlatform()
          .start(() -> {
            if (Spread.mine(Spread.PLACES) != here) {
              code.run();
              isDone.set(true);
            }
          })
          .join();
    }
  }

  @Test
  void threadThatHasABlockItself_takesNoneOfAnothers() throws InterruptedException {
    meet();
    PinnedBuffer mine = pool.allocate(BYTES);
    elsewhere(() -> pool.allocate(BYTES).close());
    mine.close();
    try (PinnedBuffer again = pool.allocate(BYTES)) {
      assertThat(again.address()).isEqualTo(mine.address());
      assertThat(pool.stats().usedBlocks()).isEqualTo(1);
      assertThat(pool.stats().freeBlocks()).isEqualTo(1);
    }
    pool.assertConsistent();
  }

  @Test
  void blockThatAnotherHasCached_isFoundBeforeTheDriverIsAsked() throws InterruptedException {
    meet();
    CudaStream busy = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    PinnedBuffer used = pool.allocate(BYTES);
    driver.begin(busy);
    used.fill((byte) 1, busy);
    used.close();
    elsewhere(() -> pool.allocate(BYTES).close());
    AtomicBoolean isAsked = new AtomicBoolean();
    driver.atNextQuery(() -> isAsked.set(true));
    pool.allocate(BYTES).close();
    assertThat(isAsked).isFalse();
    PinnedPoolStats _ = pool.stats();
    assertThat(isAsked).as("there is something to ask about").isTrue();
    driver.finish(busy);
  }

  /** Each thread has it last of a stripe that may be any other's. */
  @Test
  void onlyBlock_isFoundInWhicheverStripe() throws InterruptedException {
    meet();
    pool.setLimit(MemoryLimit.ofBytes(BYTES));
    pool.allocate(BYTES).close();
    List<Object> found = new ArrayList<>();
    for (int i = 0; i < 8 * BLOCKS; i++) {
      Thread.ofPlatform()
          .start(() -> {
            PinnedBuffer block = pool.tryAllocate(BYTES);
            found.add(block == null ? "nothing" : block.address());
            if (block != null) {
              block.close();
            }
          })
          .join();
    }
    assertThat(found).hasSize(8 * BLOCKS).containsOnly(found.getFirst()).doesNotContain("nothing");
    pool.assertConsistent();
  }

  @Test
  void endOfTheCuda_isTheirsWhereverTheyAre() throws InterruptedException {
    meet();
    PinnedBuffer mine = pool.allocate(BYTES);
    List<PinnedBuffer> theirs = new ArrayList<>();
    Thread.ofPlatform().start(() -> theirs.add(pool.allocate(BYTES))).join();
    pool.allocate(BYTES).close();
    cuda.close();
    assertThat(mine.isClosed()).isTrue();
    assertThat(theirs).hasSize(1).allMatch(PinnedBuffer::isClosed);
    assertThatThrownBy(() -> pool.allocate(BYTES)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> pool.tryAllocate(BYTES))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("Cuda");
    assertThat(pool.stats().heldBytes()).isZero();
  }
}
