package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.PoolOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.AtOnce;
import io.cuvette.testkit.support.CountingUpstream;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * What the limit counts is what upstream gave and what the pool can reach, whatever threads do. The
 * full run is {@code -Dcuvette.streams=100000 -Dcuvette.threads=8}.
 */
class PoolBooksTest {
  private static final int THREADS = Integer.getInteger("cuvette.threads", 4);
  private static final int STREAMS = Integer.getInteger("cuvette.streams", 500);
  private static final int LARGEST = 64 << 10;

  /** One buffer for each thread, each from a chunk of its own. */
  private static final long LIMIT = (long) THREADS * LARGEST;

  private final AtOnce threads = new AtOnce();
  private final CountingUpstream upstream = new CountingUpstream();

  @CudaTest(sanitized = false)
  @Timeout(600)
  void streamsThatComeAndGo_loseNothing(Cuda cuda) throws InterruptedException {
    try (MemoryPool pool = pool(cuda)) {
      threads.run(THREADS, seed -> useStreams(cuda, pool, new SplittableRandom(seed)));
      checkBooks(cuda, pool);
    }
  }

  /**
   * Some buffers outlive their stream, and all streams are busy when they are closed. The books are
   * looked at after each, beside the others.
   */
  private void useStreams(Cuda cuda, MemoryPool pool, SplittableRandom random) {
    for (int i = 0; i < STREAMS; i++) {
      Buffer buffer;
      try (CudaStream stream = cuda.device(0).createStream()) {
        pool.allocate(1 + random.nextInt(LARGEST), stream).close();
        buffer = pool.allocate(1 + random.nextInt(LARGEST), stream);
        buffer.fill((byte) 1, stream);
        if (random.nextBoolean()) {
          buffer.close();
        }
      }
      buffer.close();
      pool.assertConsistent();
      assertThat(upstream.liveBytes()).isLessThanOrEqualTo(LIMIT);
    }
  }

  /** Releasing, closing of pools and of streams meet allocations. */
  @CudaTest(sanitized = false)
  void poolsThatComeAndGo_loseNothing(Cuda cuda) throws InterruptedException {
    for (int round = 0; round < 20; round++) {
      MemoryPool pool = pool(cuda);
      int first = round * THREADS;
      threads.run(THREADS, seed -> useUntilClosed(cuda, pool, new SplittableRandom(first + seed)));
      cuda.device(0).synchronize();
      pool.freeAllBlocks();
      pool.assertConsistent();
      assertThat(pool.totalBytes()).isZero();
      assertThat(upstream.liveBytes()).isZero();
    }
  }

  private static void useUntilClosed(Cuda cuda, MemoryPool pool, SplittableRandom random) {
    int closing = random.nextInt(40);
    for (int i = 0; i < 40; i++) {
      try (CudaStream stream = cuda.device(0).createStream();
          Buffer buffer = pool.allocate(1 + random.nextInt(LARGEST), stream)) {
        buffer.fill((byte) 1, stream);
      } catch (IllegalStateException e) {
        assertThat(e).hasMessageContaining("is closed");
        return;
      }
      if (i == closing) {
        pool.close();
      } else if (i % 8 == 0) {
        pool.freeAllBlocks();
      }
    }
  }

  /** Whoever allocates while a free is under way must not get the same bytes of the limit. */
  @Test
  @Timeout(60)
  void memoryThatTheDriverIsFreeing_countsAsHeld() throws Exception {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        MemoryPool pool = pool(cuda)) {
      pool.allocate(LIMIT).close();
      Hold hold = script.hold("memFree");
      Thread releasing = threads.start(pool::freeAllBlocks);
      hold.awaitBegun();
      Thread allocating = threads.start(() -> pool.allocate(LIMIT).close());
      while (allocating.getState() == Thread.State.RUNNABLE) {
        pool.assertConsistent();
        assertThat(upstream.liveBytes()).isLessThanOrEqualTo(LIMIT);
      }
      hold.release();
      releasing.join();
      allocating.join();
      assertThat(upstream.mostBytes()).isEqualTo(LIMIT);
      assertThat(upstream.asked()).isLessThanOrEqualTo(2);
    }
  }

  /** Two slices are two objects, and one memory. */
  @CudaTest(tidy = false)
  void chunkThatOverlapsAnother_isRefused(Cuda cuda) {
    try (Buffer all = cuda.allocate(8192)) {
      List<Buffer> given =
          new ArrayList<>(
              List.of(
                  all.slice(1024, 512),
                  all.slice(0, 1024),
                  all.slice(1024, 512),
                  all.slice(512, 1024),
                  all.slice(1024 + 256, 512),
                  all.slice(512, 2048),
                  all.slice(1536, 512)));
      MemoryPool pool =
          new MemoryPool(
              cuda, PoolOptions.DEFAULTS.withUpstream((bytes, stream) -> given.removeFirst()));
      pool.allocate(512);
      pool.allocate(1024); // ends where the first begins
      for (int bytes : new int[] {512, 1024, 512, 2048}) {
        assertThatThrownBy(() -> pool.allocate(bytes))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageMatching(
                "upstream returned .* again, or a part of it: the pool holds 0x\\p{XDigit}+ to"
                    + " 0x\\p{XDigit}+ \\(expected: memory that the pool does not hold\\)")
            .hasMessageNotContaining("%");
      }
      pool.allocate(512); // begins where the first ends
      assertThat(pool.totalBytes()).isEqualTo(2048);
      pool.assertConsistent();
    }
  }

  private MemoryPool pool(Cuda cuda) {
    return new MemoryPool(
        cuda, PoolOptions.DEFAULTS.withUpstream(upstream).withLimit(MemoryLimit.ofBytes(LIMIT)));
  }

  private void checkBooks(Cuda cuda, MemoryPool pool) {
    cuda.device(0).synchronize();
    pool.assertConsistent();
    long held = upstream.liveBytes();
    assertThat(pool.totalBytes()).isEqualTo(held);
    assertThat(pool.usedBytes()).isZero();
    assertThat(pool.freeAllBlocks()).isEqualTo(held);
    assertThat(upstream.liveBytes()).isZero();
    assertThat(upstream.mostBytes()).isLessThanOrEqualTo(LIMIT);
  }
}
