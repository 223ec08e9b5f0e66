package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolOptions;
import io.cuvette.PoolStats;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;

/** Threads that allocate, hand over, free, release and look, all at once. */
class PoolThreadsTest {
  private static final int THREADS = 6;
  private static final int STEPS = 1500;
  private static final long LIMIT = 4L << 20;

  private final ConcurrentHashMap<Long, Buffer> owners = new ConcurrentHashMap<>();
  private final Queue<Buffer> handedOver = new ConcurrentLinkedQueue<>();
  private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();

  @CudaTest(seeds = 4)
  void threads_neverGetTheSameBlock_andAllComesBack(
      Subject subject, Cuda cuda, CudaStream one, CudaStream two) throws InterruptedException {
    PoolOptions options = PoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(LIMIT));
    try (MemoryPool pool = new MemoryPool(cuda, options)) {
      List<CudaStream> streams = List.of(one, two, cuda.device(0).nullStream());
      CountDownLatch start = new CountDownLatch(1);
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < THREADS; i++) {
        SplittableRandom random = new SplittableRandom(subject.seed() * THREADS + i);
        CudaStream stream = streams.get(i % streams.size());
        Runnable body = () -> run(pool, stream, random, start);
        threads.add(i % 2 == 0 ? Thread.ofPlatform().start(body) : Thread.ofVirtual().start(body));
      }
      start.countDown();
      for (Thread thread : threads) {
        thread.join();
      }
      assertThat(failures).isEmpty();
      closeAll();
      cuda.device(0).synchronize();
      PoolStats stats = pool.stats();
      assertThat(stats.usedBytes()).isZero();
      assertThat(stats.usedBlocks()).isZero();
      assertThat(stats.pendingBytes()).isZero();
      assertThat(stats.freeBytes()).isEqualTo(stats.heldBytes());
      assertThat(stats.peakHeldBytes()).isLessThanOrEqualTo(LIMIT);
      assertThat(pool.freeAllBlocks()).isEqualTo(stats.heldBytes());
      assertThat(pool.stats().chunks()).isZero();
    }
  }

  private void run(MemoryPool pool, CudaStream stream, SplittableRandom random, CountDownLatch go) {
    try {
      go.await();
      for (int step = 0; step < STEPS; step++) {
        step(pool, stream, random);
      }
    } catch (Throwable e) {
      failures.add(e);
    }
  }

  private void step(MemoryPool pool, CudaStream stream, SplittableRandom random) {
    pool.assertConsistent();
    int choice = random.nextInt(100);
    if (choice < 45) {
      allocate(pool, stream, random);
    } else if (choice < 97) {
      close(handedOver.poll());
    } else if (choice == 97) {
      pool.freeAllBlocks();
    } else {
      PoolStats stats = pool.stats();
      assertThat(stats.usedBytes() + stats.freeBytes()).isEqualTo(stats.heldBytes());
    }
  }

  /** Sometimes used on the stream, so that a thread of another stream frees it while it runs. */
  private void allocate(MemoryPool pool, CudaStream stream, SplittableRandom random) {
    try {
      Buffer buffer = pool.allocate(1 + random.nextLong(64 << 10), stream);
      assertThat(owners.putIfAbsent(buffer.address(), buffer)).isNull();
      if (random.nextInt(4) == 0) {
        buffer.fill((byte) 1, stream);
      }
      handedOver.add(buffer);
    } catch (OutOfDeviceMemoryException e) {
      close(handedOver.poll());
    }
  }

  private void close(@Nullable Buffer buffer) {
    if (buffer != null) {
      assertThat(owners.remove(buffer.address(), buffer)).isTrue();
      buffer.close();
    }
  }

  private void closeAll() {
    for (Buffer buffer = handedOver.poll(); buffer != null; buffer = handedOver.poll()) {
      close(buffer);
    }
  }
}
