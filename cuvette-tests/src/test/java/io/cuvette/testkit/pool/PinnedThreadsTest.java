package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.MemoryLimit;
import io.cuvette.OutOfPinnedMemoryException;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedPoolOptions;
import io.cuvette.PinnedPoolStats;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.support.AtOnce;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Timeout;

/** Threads on one pool of page-locked memory: each finds what others have freed, wherever it is. */
@Timeout(60)
class PinnedThreadsTest {
  private static final int THREADS = 8;
  private static final int BLOCK = 64 << 10;

  private final AtOnce threads = new AtOnce();

  /** Has threads meet until the pool has a stripe for each of them. */
  private void meet(PinnedMemoryPool pool) throws InterruptedException {
    threads.run(
        THREADS,
        _ -> {
          for (int i = 0; i < 2_000; i++) {
            pool.allocate(BLOCK).close();
          }
        });
  }

  /** At the limit it would not grow: the block is another thread's, which is gone. */
  @CudaTest
  void blocksOfThreadsThatEnded_areFoundByOthers(Cuda cuda) throws InterruptedException {
    try (PinnedMemoryPool pool = limited(cuda, (long) THREADS * BLOCK)) {
      meet(pool);
      pool.freeAllBlocks();
      List<PinnedBuffer> all = new ArrayList<>();
      for (int i = 0; i < THREADS; i++) {
        all.add(pool.allocate(BLOCK));
      }
      long growths = pool.stats().growths();
      for (PinnedBuffer each : all) {
        threads.start(each::close).join();
      }
      all.clear();
      for (int i = 0; i < THREADS; i++) {
        threads.start(() -> all.add(pool.allocate(BLOCK))).join();
      }
      threads.assertNoFailures();
      assertThat(pool.stats().growths()).isEqualTo(growths);
      assertThat(pool.usedBytes()).isEqualTo((long) THREADS * BLOCK);
      assertThatThrownBy(() -> pool.allocate(BLOCK)).isInstanceOf(OutOfPinnedMemoryException.class);
      all.forEach(PinnedBuffer::close);
      pool.assertConsistent();
    }
  }

  /** The block that a consumer frees is the producer's next one: nothing grows without need. */
  @CudaTest
  void producerAndConsumer_needNoMoreThanIsOnItsWay(Cuda cuda) throws InterruptedException {
    int most = 16;
    try (PinnedMemoryPool pool = limited(cuda, (long) (most + 2) * BLOCK)) {
      meet(pool);
      pool.freeAllBlocks();
      BlockingQueue<PinnedBuffer> queue = new ArrayBlockingQueue<>(most);
      int turns = 5_000;
      threads.run(
          2,
          thread -> {
            for (int i = 0; i < turns; i++) {
              if (thread == 0) {
                put(queue, pool.allocate(BLOCK));
              } else {
                take(queue).close();
              }
            }
          });
      PinnedPoolStats stats = pool.stats();
      assertThat(stats.usedBlocks()).isZero();
      assertThat(stats.requestedBytes()).isZero();
      assertThat(stats.outOfMemories()).isZero();
      assertThat(stats.heldBytes()).isLessThanOrEqualTo((long) (most + 2) * BLOCK);
      pool.assertConsistent();
    }
  }

  private static void put(BlockingQueue<PinnedBuffer> queue, PinnedBuffer buffer) {
    try {
      queue.put(buffer);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private static PinnedBuffer take(BlockingQueue<PinnedBuffer> queue) {
    try {
      return queue.take();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Whoever frees, from wherever, is counted at once. */
  @CudaTest
  void blocksFreedByOtherThreads_areCountedAndReleased(Cuda cuda) throws InterruptedException {
    try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda)) {
      meet(pool);
      pool.freeAllBlocks();
      AtomicLong bytes = new AtomicLong();
      ConcurrentLinkedQueue<PinnedBuffer> live = new ConcurrentLinkedQueue<>();
      threads.run(
          THREADS,
          seed -> {
            SplittableRandom random = new SplittableRandom(seed);
            for (int i = 0; i < 200; i++) {
              PinnedBuffer one = pool.allocate(1 + random.nextInt(BLOCK));
              bytes.addAndGet(one.byteSize());
              live.add(one);
            }
          });
      PinnedPoolStats before = pool.stats();
      assertThat(before.usedBlocks()).isEqualTo(THREADS * 200);
      assertThat(before.requestedBytes()).isEqualTo(bytes.get());
      assertThat(before.peakUsedBytes())
          .isGreaterThanOrEqualTo(before.usedBytes())
          .isLessThanOrEqualTo(before.peakHeldBytes());
      threads.run(
          THREADS,
          _ -> {
            for (PinnedBuffer one = live.poll(); one != null; one = live.poll()) {
              one.close();
            }
          });
      PinnedPoolStats after = pool.stats();
      assertThat(after.usedBlocks()).isZero();
      assertThat(after.usedBytes()).isZero();
      assertThat(after.requestedBytes()).isZero();
      assertThat(after.freeBytes()).isEqualTo(after.heldBytes()).isEqualTo(before.heldBytes());
      assertThat(after.allocations()).isEqualTo(before.allocations());
      assertThat(pool.freeAllBlocks()).isEqualTo(before.heldBytes());
      assertThat(pool.totalBytes()).isZero();
      pool.assertConsistent();
    }
  }

  /** Alone, a thread has blocks of the class it asked for, whatever is cached. */
  @CudaTest
  void blocksOfOneThread_areOfTheirClass(Cuda cuda) {
    try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda)) {
      assertThat(bytesBeside(9 << 10, pool)).isEqualTo(8 << 10);
    }
  }

  /** Threads that share a pool take a block that is close: half as large again at most. */
  @CudaTest
  void blocksOfSeveralThreads_areOfAClassThatIsClose(Cuda cuda) throws InterruptedException {
    try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda)) {
      AtomicBoolean isOver = new AtomicBoolean();
      Thread other = threads.start(() -> lookUntil(isOver, pool)); // under the locks of all
      while (other.isAlive() && bytesBeside(9 << 10, pool) == 8 << 10) {
        pool.freeAllBlocks(); // they have not met yet
      }
      isOver.set(true);
      other.join();
      threads.assertNoFailures();
      assertThat(bytesBeside(11 << 10, pool)).isEqualTo(11 << 10);
      assertThat(bytesBeside(12 << 10, pool)).isEqualTo(8 << 10);
      assertThat(bytesBeside(1 << 20, pool)).isEqualTo(8 << 10);
      assertThat(pool.stats().requestedBytes()).isZero();
      pool.assertConsistent();
    }
  }

  /** The size of the block for 8 KiB, when one of another size alone is cached. */
  private static long bytesBeside(long cached, PinnedMemoryPool pool) {
    pool.freeAllBlocks();
    pool.allocate(cached).close();
    try (PinnedBuffer buffer = pool.allocate(8 << 10)) {
      return buffer.blockBytes();
    }
  }

  private static void lookUntil(AtomicBoolean isOver, PinnedMemoryPool pool) {
    while (!isOver.get()) {
      assertThat(pool.stats().usedBlocks()).isBetween(0, 1);
    }
  }

  /** One thread after the other is no reason for stripes: the peak is exact. */
  @CudaTest
  void threadsThatNeverMeet_haveAnExactPeak(Cuda cuda) throws InterruptedException {
    try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda)) {
      for (int i = 0; i < THREADS; i++) {
        int bytes = 512 << i;
        threads.start(() -> pool.allocate(bytes).close()).join();
      }
      threads.assertNoFailures();
      assertThat(pool.stats().peakUsedBytes()).isEqualTo(512 << (THREADS - 1));
    }
  }

  /** Thousands of threads that are gone leave nothing behind; no more have a block than fit. */
  @CudaTest
  void virtualThreads_shareWhatThereIs(Cuda cuda) throws InterruptedException {
    try (PinnedMemoryPool pool = limited(cuda, 64L * BLOCK)) {
      List<Thread> all = new ArrayList<>();
      ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();
      Semaphore turns = new Semaphore(32);
      for (int i = 0; i < 4_000; i++) {
        all.add(
            Thread.ofVirtual()
                .start(() -> {
                  turns.acquireUninterruptibly();
                  try (PinnedBuffer buffer = pool.allocate(BLOCK)) {
                    assertThat(buffer.isClosed()).isFalse();
                  } catch (RuntimeException | Error e) {
                    failures.add(e);
                  } finally {
                    turns.release();
                  }
                }));
      }
      for (Thread each : all) {
        each.join();
      }
      assertThat(failures).isEmpty();
      assertThat(pool.usedBytes()).isZero();
      assertThat(pool.freeAllBlocks()).isLessThanOrEqualTo(64L * BLOCK);
      assertThat(pool.totalBytes()).isZero();
    }
  }

  private static PinnedMemoryPool limited(Cuda cuda, long bytes) {
    return new PinnedMemoryPool(
        cuda, PinnedPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(bytes)));
  }
}
