package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
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
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Threads that allocate, hand over, free, release and look, all at once. */
class PoolThreadsTest {
  private static final int THREADS = 6;
  private static final int STEPS = 1500;
  private static final long LIMIT = 4L << 20;
  private static final long ELASTIC_LIMIT = 16L << 20;
  private static final int SHARED_STREAMS = 8;
  private static final int PAIRS = 400;

  private final ConcurrentHashMap<Long, Buffer> owners = new ConcurrentHashMap<>();
  private final Queue<Buffer> handedOver = new ConcurrentLinkedQueue<>();
  private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();

  /** What the two caching pools have both. */
  private record Pool(
      MemoryResource memory,
      Supplier<PoolStats> stats,
      LongSupplier freeAllBlocks,
      Runnable assertConsistent) {
    static Pool of(MemoryPool pool) {
      return new Pool(pool, pool::stats, pool::freeAllBlocks, pool::assertConsistent);
    }

    static Pool of(ElasticMemoryPool pool) {
      return new Pool(pool, pool::stats, pool::freeAllBlocks, pool::assertConsistent);
    }
  }

  @CudaTest(seeds = 4)
  void threads_neverGetTheSameBlock_andAllComesBack(
      Subject subject, Cuda cuda, CudaStream one, CudaStream two) throws InterruptedException {
    PoolOptions options = PoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(LIMIT));
    try (MemoryPool pool = new MemoryPool(cuda, options)) {
      race(Pool.of(pool), LIMIT, subject.seed(), cuda, one, two);
    }
  }

  @CudaTest(seeds = 4)
  void threadsOnAnElasticPool_neverGetTheSameBlock_andAllComesBack(
      Subject subject, Cuda cuda, CudaStream one, CudaStream two) throws InterruptedException {
    ElasticPoolOptions options =
        ElasticPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(ELASTIC_LIMIT));
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda, options)) {
      race(Pool.of(pool), ELASTIC_LIMIT, subject.seed(), cuda, one, two);
    }
  }

  private void race(Pool pool, long limit, long seed, Cuda cuda, CudaStream one, CudaStream two)
      throws InterruptedException {
    List<CudaStream> streams = List.of(one, two, cuda.device(0).nullStream());
    CountDownLatch start = new CountDownLatch(1);
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      SplittableRandom random = new SplittableRandom(seed * THREADS + i);
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
    PoolStats stats = pool.stats().get();
    assertThat(stats.usedBytes()).isZero();
    assertThat(stats.usedBlocks()).isZero();
    assertThat(stats.requestedBytes()).isZero();
    assertThat(stats.pendingBytes()).isZero();
    assertThat(stats.freeBytes()).isEqualTo(stats.heldBytes());
    assertThat(stats.peakHeldBytes()).isLessThanOrEqualTo(limit);
    assertThat(pool.freeAllBlocks().getAsLong()).isEqualTo(stats.heldBytes());
    assertThat(pool.stats().get().chunks()).isZero();
  }

  /** Threads that meet on a stream have blocks ready for it, which end with it. */
  @CudaTest
  void streamsSharedByThreads_leaveNothingWhenTheyClose(Cuda cuda) throws InterruptedException {
    try (MemoryPool memory = new MemoryPool(cuda);
        ElasticMemoryPool elastic = new ElasticMemoryPool(cuda)) {
      for (Pool pool : List.of(Pool.of(memory), Pool.of(elastic))) {
        long allocations = 0;
        for (int i = 0; i < SHARED_STREAMS; i++) {
          share(pool, cuda);
          allocations += THREADS * PAIRS;
        }
        cuda.device(0).synchronize();
        PoolStats stats = pool.stats().get();
        assertThat(stats.allocations()).isEqualTo(allocations);
        assertThat(stats.usedBlocks()).isZero();
        assertThat(pool.freeAllBlocks().getAsLong()).isEqualTo(stats.heldBytes());
        assertThat(pool.stats().get().heldBytes()).isZero();
      }
    }
  }

  /** Of each thread one block outlives the stream. */
  private void share(Pool pool, Cuda cuda) throws InterruptedException {
    Queue<Buffer> late = new ConcurrentLinkedQueue<>();
    try (CudaStream stream = cuda.device(0).createStream()) {
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < THREADS; i++) {
        threads.add(
            Thread.ofPlatform()
                .start(() -> {
                  for (int pair = 1; pair < PAIRS; pair++) {
                    pool.memory().allocate(4096L * (pair % 3 + 1), stream).close();
                  }
                  late.add(pool.memory().allocate(4096, stream));
                }));
      }
      for (Thread thread : threads) {
        thread.join();
      }
    }
    assertThat(late).hasSize(THREADS);
    late.forEach(Buffer::close);
  }

  private void run(Pool pool, CudaStream stream, SplittableRandom random, CountDownLatch go) {
    try {
      go.await();
      for (int step = 0; step < STEPS; step++) {
        step(pool, stream, random);
      }
    } catch (Throwable e) {
      failures.add(e);
    }
  }

  private void step(Pool pool, CudaStream stream, SplittableRandom random) {
    pool.assertConsistent().run();
    int choice = random.nextInt(100);
    if (choice < 45) {
      allocate(pool, stream, random);
    } else if (choice < 97) {
      close(handedOver.poll());
    } else if (choice == 97) {
      long _ = pool.freeAllBlocks().getAsLong();
    } else {
      PoolStats stats = pool.stats().get();
      assertThat(stats.usedBytes() + stats.freeBytes()).isEqualTo(stats.heldBytes());
    }
  }

  /** Sometimes used on the stream, so that a thread of another stream frees it while it runs. */
  private void allocate(Pool pool, CudaStream stream, SplittableRandom random) {
    try {
      Buffer buffer = pool.memory().allocate(1 + random.nextLong(64 << 10), stream);
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
