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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Memory is handed out again only when all work that used it happens before the next work of the
 * stream it is for: a million random operations of threads that share streams and events, wait for
 * them and record them anew, near the limit of the pool; streams and events come and go with work
 * in them. {@code -Dcuvette.seeds=10000} runs as many short programs.
 */
@Timeout(600)
class ReuseOrderTest {
  private static final int OPERATIONS = 1_000_000;
  private static final int THREADS = 4;
  private static final int STREAMS = 6;
  private static final int EVENTS = 4;
  private static final int MOST_LIVE = 12;
  private static final long LIMIT = 96L << 10;
  private static final long SMALL_BYTES = 3000;
  private static final long ELASTIC_LIMIT = 6L << 20;
  private static final long ELASTIC_BYTES = 1L << 20;
  private static final int FEW_REPLACED = 3;
  private static final int RARELY = 20;

  /** With each such seed handles are given out. */
  private static final int EXPOSING = 4;

  /** The numbers of streams that are gone are used again: so that others meet them. */
  private static final int MANY_REPLACED = 40;

  /** Of a short program: it is for many seeds. */
  private static final int STEPS = 2_000;

  private static final long SEED = Long.getLong("cuvette.seed", 1);
  private static final int SEEDS = Integer.getInteger("cuvette.seeds", 20);

  private @Nullable ClockDriver made;
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withLeakLevel(LeakLevel.OFF)
              .withDecorator(driver -> made = new ClockDriver(driver)));
  private final ClockDriver driver = Objects.requireNonNull(made);
  private final AtomicReferenceArray<CudaStream> streams = new AtomicReferenceArray<>(STREAMS);
  private final AtomicReferenceArray<CudaEvent> events = new AtomicReferenceArray<>(EVENTS);
  private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
  private long seed = SEED;

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

  @Test
  @Timeout(7200)
  void reuseInShortPrograms_happensAfterAllUses() {
    ElasticPoolOptions options =
        ElasticPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(ELASTIC_LIMIT));
    for (int i = 0; i < SEEDS; i++, seed++) {
      run(1, STEPS, PoolOptions.DEFAULTS.withCrossStreamBytes(0));
      run(THREADS, STEPS, PoolOptions.DEFAULTS);
      run(1, STEPS / 4, ELASTIC_BYTES, elastic(options));
      run(THREADS, STEPS / 4, ELASTIC_BYTES, elastic(options));
    }
  }

  /** The check sees what it is for. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void waitsThatTheDeviceLoses_areFound(boolean isElastic) {
    driver.loseWaits();
    Subject pool =
        isElastic
            ? elastic(ElasticPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(ELASTIC_LIMIT)))
            : caching(PoolOptions.DEFAULTS);
    open();
    new Program(pool, isElastic ? ELASTIC_BYTES : SMALL_BYTES, new SplittableRandom(SEED))
        .run(OPERATIONS / 50);
    assertThat(failures).hasSize(1);
    assertThat(failures.peek()).hasMessageContaining("work");
    driver.devices().ctxSynchronize(0);
    pool.close.run();
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

  private Subject caching(PoolOptions options) {
    MemoryPool pool = new MemoryPool(cuda, options.withLimit(MemoryLimit.ofBytes(LIMIT)));
    return new Subject(pool, pool::freeAllBlocks, pool::stats, pool::assertConsistent, pool::close);
  }

  private void run(int threads, int operations, PoolOptions options) {
    run(threads, operations, SMALL_BYTES, caching(options));
  }

  private void open() {
    for (int i = 0; i < STREAMS; i++) {
      streams.set(i, stream());
    }
    for (int i = 0; i < EVENTS; i++) {
      events.set(i, event());
    }
  }

  private void run(int threads, int operations, long mostBytes, Subject pool) {
    open();
    try {
      List<Thread> all = new ArrayList<>();
      for (int i = 0; i < threads; i++) {
        SplittableRandom random = new SplittableRandom(seed * THREADS + i);
        Program program = new Program(pool, mostBytes, random);
        all.add(Thread.ofPlatform().start(() -> program.run(operations / threads)));
      }
      all.forEach(thread -> Await.until(() -> !thread.isAlive()));
      assertThat(failures).as("rerun with -Dcuvette.seed=%d -Dcuvette.seeds=1", seed).isEmpty();
      assertThat(driver.unmapped()).as("seed=%d", seed).isNull();
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
    for (int i = 0; i < EVENTS; i++) {
      events.get(i).close();
    }
    assertThat(driver.liveEvents())
        .as("events of streams and blocks that are gone")
        .isEqualTo(cuda.device(0).core().spareEvents.count());
  }

  private CudaEvent event() {
    return cuda.device(0).createEvent(EventOptions.ORDER_ONLY);
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
      if (choice < 330) {
        allocate();
      } else if (choice < 600) {
        closeOne();
      } else if (choice < 780) {
        use();
      } else if (choice < 900) {
        order();
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

    /** Somebody else may close what is ordered, or record it anew. */
    private void order() {
      CudaStream stream = any();
      CudaStream other = any();
      int index = random.nextInt(EVENTS);
      CudaEvent event = events.get(index);
      try {
        switch (random.nextInt(16)) {
          case 0, 1, 2, 3, 4 -> stream.waitFor(other);
          case 5, 6, 7 -> event.record(stream);
          case 8, 9, 10, 11 -> stream.waitFor(event);
          case 12 -> events.getAndSet(index, event()).close();
          case 13 -> {
            boolean _ = random.nextBoolean() ? event.isDone() : stream.isDone();
          }
          case 14 -> rarely(event::synchronize);
          default -> expose(event, stream);
        }
      } catch (IllegalStateException e) {
        if (!event.isClosed() && !other.isClosed()) {
          checkClosed(stream, e);
        }
      }
    }

    /** What waits for either can be captured by others then, and so on. */
    private void expose(CudaEvent event, CudaStream stream) {
      if (seed % EXPOSING == 0) {
        rarely(random.nextBoolean() ? event::handle : stream::handle);
      }
    }

    private void rarely(Runnable step) {
      if (random.nextInt(RARELY) == 0) {
        step.run();
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
