package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.base.Await;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Memory is handed out again only when all work that used it happens before the next work of the
 * stream it is for: a million random operations of threads that share streams, which come and go
 * with work in them, near the limit of the pool.
 */
@Timeout(60)
class ReuseOrderTest {
  private static final int OPERATIONS = 1_000_000;
  private static final int THREADS = 4;
  private static final int STREAMS = 6;
  private static final int MOST_LIVE = 12;
  private static final long LIMIT = 96L << 10;
  private static final long ELASTIC_LIMIT = 6L << 20;
  private static final long ELASTIC_BYTES = 1L << 20;
  private static final int FEW_REPLACED = 3;

  /** The numbers of streams that are gone are used again: so that others meet them. */
  private static final int MANY_REPLACED = 40;

  private static final long SEED = Long.getLong("cuvette.seed", 1);

  private @Nullable ClockDriver made;
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withLeakLevel(LeakLevel.OFF)
              .withDecorator(driver -> made = new ClockDriver(driver)));
  private final ClockDriver driver = Objects.requireNonNull(made);
  private final AtomicReferenceArray<CudaStream> streams = new AtomicReferenceArray<>(STREAMS);
  private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();

  @AfterEach
  void close() {
    cuda.close();
  }

  @Test
  void reuse_happensAfterAllUses_oneThread() {
    run(1, OPERATIONS / 10 * 9, PoolOptions.DEFAULTS.withCrossStreamBytes(0));
  }

  @Test
  void reuse_happensAfterAllUses_severalThreads() {
    run(THREADS, OPERATIONS / 10, PoolOptions.DEFAULTS);
    run(
        THREADS,
        OPERATIONS / 50,
        PoolOptions.DEFAULTS.withReleaseThresholdBytes(LIMIT / 4).withTargetRatio(1.25));
  }

  @Test
  void reuseInAnElasticPool_happensAfterAllUses() {
    MemoryLimit limit = MemoryLimit.ofBytes(ELASTIC_LIMIT);
    ElasticPoolOptions options = ElasticPoolOptions.DEFAULTS.withLimit(limit);
    run(1, OPERATIONS / 50, ELASTIC_BYTES, elastic(options));
    run(THREADS, OPERATIONS / 50, ELASTIC_BYTES, elastic(options.withReleaseThresholdBytes(0)));
  }

  /** A pool, and how it is emptied and checked. */
  private record Subject(
      MemoryResource resource,
      Runnable empty,
      Supplier<PoolStats> stats,
      Runnable check,
      Runnable close) {}

  private Subject elastic(ElasticPoolOptions options) {
    ElasticMemoryPool pool = new ElasticMemoryPool(cuda, options);
    return new Subject(pool, pool::freeAllBlocks, pool::stats, pool::assertConsistent, pool::close);
  }

  private void run(int threads, int operations, PoolOptions options) {
    MemoryPool pool = new MemoryPool(cuda, options.withLimit(MemoryLimit.ofBytes(LIMIT)));
    run(
        threads,
        operations,
        3000,
        new Subject(pool, pool::freeAllBlocks, pool::stats, pool::assertConsistent, pool::close));
  }

  private void run(int threads, int operations, long mostBytes, Subject pool) {
    for (int i = 0; i < STREAMS; i++) {
      streams.set(i, stream());
    }
    try {
      List<Thread> all = new ArrayList<>();
      for (int i = 0; i < threads; i++) {
        SplittableRandom random = new SplittableRandom(SEED * THREADS + i);
        Program program = new Program(pool, mostBytes, random);
        all.add(Thread.ofPlatform().start(() -> program.run(operations / threads)));
      }
      all.forEach(thread -> Await.until(() -> !thread.isAlive()));
      assertThat(failures).as("seed=%d", SEED).isEmpty();
      driver.devices().ctxSynchronize(0);
      assertThat(pool.stats().get().usedBytes()).isZero();
      assertThat(pool.stats().get().pendingBytes()).isZero();
      pool.check().run();
    } finally {
      pool.close().run();
    }
    for (int i = 0; i < STREAMS; i++) {
      streams.get(i).close();
    }
    assertThat(driver.liveEvents()).as("events of streams and blocks that are gone").isZero();
  }

  private CudaStream stream() {
    return cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  }

  /** What one thread does. */
  private final class Program {
    private final Subject pool;
    private final long mostBytes;
    private final SplittableRandom random;
    private final List<Buffer> live = new ArrayList<>();

    /** Of a thousand steps. */
    private final int replaced;

    Program(Subject pool, long mostBytes, SplittableRandom random) {
      this.replaced = pool.resource() instanceof ElasticMemoryPool ? MANY_REPLACED : FEW_REPLACED;
      this.pool = pool;
      this.mostBytes = mostBytes;
      this.random = random;
    }

    void run(int steps) {
      try {
        for (int i = 0; i < steps && failures.isEmpty(); i++) {
          step();
        }
        live.forEach(Buffer::close);
      } catch (Throwable e) { // of a thread of the test
        failures.add(e);
      }
    }

    private void step() {
      int choice = random.nextInt(1000);
      if (choice < 350) {
        allocate();
      } else if (choice < 650) {
        closeOne();
      } else if (choice < 850) {
        use();
      } else if (choice < 998 - replaced) {
        driver.progress(random);
      } else if (choice < 998) {
        replaceStream();
      } else {
        pool.empty().run();
      }
    }

    private CudaStream any() {
      return streams.get(random.nextInt(STREAMS));
    }

    private void allocate() {
      CudaStream stream = any();
      try {
        Buffer buffer = pool.resource().allocate(1 + random.nextLong(mostBytes), stream);
        live.add(buffer);
        String beside =
            driver.useBeside(buffer.address(), buffer.blockBytes(), stream.state.handle);
        if (beside != null && !stream.isClosed()) {
          throw new AssertionError(beside);
        }
      } catch (OutOfDeviceMemoryException e) {
        closeOne();
      } catch (IllegalStateException e) {
        checkClosed(stream, e);
      }
      if (live.size() > MOST_LIVE) {
        closeOne();
      }
    }

    private void closeOne() {
      if (!live.isEmpty()) {
        live.remove(random.nextInt(live.size())).close();
      }
    }

    private void use() {
      CudaStream stream = any();
      if (!live.isEmpty()) {
        try {
          live.get(random.nextInt(live.size())).fill((byte) 1, stream);
        } catch (IllegalStateException e) {
          checkClosed(stream, e);
        }
      }
    }

    private void checkClosed(CudaStream stream, IllegalStateException e) {
      if (!stream.isClosed()) {
        throw e;
      }
    }

    /** Its work goes on. */
    private void replaceStream() {
      CudaStream next = stream();
      streams.getAndSet(random.nextInt(STREAMS), next).close();
    }
  }
}
