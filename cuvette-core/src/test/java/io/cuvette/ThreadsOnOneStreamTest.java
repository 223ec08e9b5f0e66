package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.MemoryInfo;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.index.BlockArena;
import io.cuvette.internal.index.Seeds;
import io.cuvette.internal.streamcache.CachedBlock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import java.util.function.LongUnaryOperator;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Threads that take blocks of random sizes in one stream, and close their own and each other's. */
@Timeout(600)
class ThreadsOnOneStreamTest {
  private static final int SEEDS = 50;
  private static final int THREADS = 4;
  private static final int STEPS = 300;
  private static final long MIB = 1 << 20;
  private static final long LIMIT = 64 * MIB;

  /** Little enough that blocks which lie between others leave room for all. */
  private static final long MOST_LIVE = 3 * MIB;

  private static final long MOST_BYTES = MIB;

  /** What both pools have. */
  private record Pool(
      MemoryResource resource,
      Supplier<PoolStats> counted,
      LongSupplier released,
      LongUnaryOperator trimmed,
      ToLongFunction<Duration> trimmedIdle,
      Runnable checked,
      Runnable closed)
      implements AutoCloseable {
    static Pool of(MemoryPool pool) {
      pool.setLimit(MemoryLimit.ofBytes(LIMIT));
      return new Pool(
          pool,
          pool::stats,
          pool::freeAllBlocks,
          pool::trim,
          pool::trim,
          pool::assertConsistent,
          pool::close);
    }

    static Pool of(ElasticMemoryPool pool) {
      pool.setLimit(MemoryLimit.ofBytes(LIMIT));
      return new Pool(
          pool,
          pool::stats,
          pool::freeAllBlocks,
          pool::trim,
          pool::trim,
          pool::assertConsistent,
          pool::close);
    }

    Buffer allocate(long bytes, CudaStream stream) {
      return resource.allocate(bytes, stream);
    }

    PoolStats stats() {
      return counted.get();
    }

    long freeAllBlocks() {
      return released.getAsLong();
    }

    @Override
    public void close() {
      closed.run();
    }
  }

  private static Pool open(String kind, Cuda cuda) {
    return kind.equals("memory")
        ? Pool.of(new MemoryPool(cuda))
        : Pool.of(new ElasticMemoryPool(cuda));
  }

  private static CudaStream stream(Cuda cuda) {
    return cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
  }

  private static long inUse(Cuda cuda) {
    MemoryInfo info = cuda.currentDevice().memoryInfo();
    return info.totalBytes() - info.freeBytes();
  }

  private static boolean isOfStripe(Buffer buffer) {
    return ((CachedBlock) ((BufferBase) buffer).block()).stripe != null;
  }

  /** Has threads meet, so that stripes are there from now on. */
  private static void meet(Pool pool, CudaStream stream) {
    AtomicBoolean met = new AtomicBoolean();
    OnThreads.run(
        THREADS,
        thread -> {
          while (!met.get()) {
            try (Buffer buffer = pool.allocate(512, stream)) {
              if (isOfStripe(buffer)) {
                met.set(true);
              }
            }
          }
        });
  }

  /** Blocks in use by several threads, of which no two may share a byte. */
  private static final class Live {
    private final ConcurrentSkipListMap<Long, Long> ends = new ConcurrentSkipListMap<>();

    void add(Buffer buffer) {
      long address = buffer.address();
      long end = address + BlockArena.roundUp(buffer.byteSize());
      assertThat(ends.put(address, end)).isNull(); // first: of two that overlap one sees the other
      Map.Entry<Long, Long> before = ends.lowerEntry(address);
      assertThat(before == null || before.getValue() <= address).isTrue();
      Long next = ends.higherKey(address);
      assertThat(next == null || next >= end).isTrue();
    }

    void close(Buffer buffer) {
      assertThat(ends.remove(buffer.address())).isNotNull();
      buffer.close();
    }
  }

  /** What one thread does. */
  private static final class Worker {
    private final SplittableRandom random;
    private final Pool pool;
    private final CudaStream stream;
    private final Live live;
    private final Queue<Buffer> handedOver;
    private final List<Buffer> own = new ArrayList<>();
    private long ownBytes;
    long allocations;

    Worker(
        SplittableRandom random,
        Pool pool,
        CudaStream stream,
        Live live,
        Queue<Buffer> handedOver) {
      this.random = random;
      this.pool = pool;
      this.stream = stream;
      this.live = live;
      this.handedOver = handedOver;
    }

    void run(boolean releases) {
      for (int i = 0; i < STEPS; i++) {
        int what = random.nextInt(100);
        if (what < 50) {
          allocate(1 + (random.nextLong(MOST_BYTES) >>> random.nextInt(12)));
        } else if (what < 80) {
          closeOne();
        } else if (what < 92) {
          handOver();
        } else if (releases) {
          release(random.nextInt(5));
        }
      }
    }

    private void allocate(long bytes) {
      while (ownBytes + bytes > MOST_LIVE) {
        closeOne();
      }
      Buffer buffer = pool.allocate(bytes, stream);
      allocations++;
      live.add(buffer);
      own.add(buffer);
      ownBytes += bytes;
    }

    private @Nullable Buffer removeOne() {
      if (own.isEmpty()) {
        return null;
      }
      Buffer buffer = own.remove(random.nextInt(own.size()));
      ownBytes -= buffer.byteSize();
      return buffer;
    }

    private void closeOne() {
      Buffer buffer = removeOne();
      if (buffer != null) {
        live.close(buffer);
      }
    }

    /** Another thread closes it, and this one what another left, of which there are few. */
    private void handOver() {
      Buffer theirs = handedOver.poll();
      if (theirs != null) {
        live.close(theirs);
      }
      Buffer mine = removeOne();
      if (mine != null) {
        handedOver.add(mine);
      }
    }

    private void release(int how) {
      switch (how) {
        case 0 -> assertThat(pool.freeAllBlocks()).isNotNegative();
        case 1 -> assertThat(pool.trimmed.applyAsLong(LIMIT / 4)).isNotNegative();
        case 2 -> assertThat(pool.trimmedIdle.applyAsLong(Duration.ZERO)).isNotNegative();
        case 3 -> pool.checked.run();
        default -> assertThat(pool.stats().usedBytes()).isLessThanOrEqualTo(LIMIT);
      }
    }
  }

  /** All threads rest: the books are exact, and all that is free is there for one block. */
  private static void checkAtRest(Pool pool, CudaStream stream, List<Worker> workers, Live live) {
    PoolStats stats = pool.stats();
    List<Buffer> open = new ArrayList<>();
    workers.forEach(worker -> open.addAll(worker.own));
    open.addAll(workers.getFirst().handedOver);
    long used = open.stream().mapToLong(each -> BlockArena.roundUp(each.byteSize())).sum();
    assertThat(stats.usedBytes()).isEqualTo(used);
    assertThat(stats.usedBlocks()).isEqualTo(open.size());
    assertThat(stats.requestedBytes()).isEqualTo(open.stream().mapToLong(Buffer::byteSize).sum());
    assertThat(stats.freeBytes()).isEqualTo(stats.heldBytes() - used);
    pool.checked.run();
    open.forEach(live::close);
    assertThat(pool.stats().usedBytes()).isZero();
    assertThat(pool.stats().usedBlocks()).isZero();
    assertThat(pool.stats().releasableBytes()).isEqualTo(pool.stats().heldBytes());
    pool.allocate(LIMIT, stream).close(); // no stripe holds any of it back
    assertThat(pool.freeAllBlocks()).isEqualTo(LIMIT);
  }

  @ParameterizedTest
  @ValueSource(strings = {"memory", "elastic"})
  void blocksNeverOverlap_andAllBytesAreCounted_whateverThreadsDo(String kind) {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        CudaStream stream = stream(cuda)) {
      long before = inUse(cuda);
      Seeds.forEach(SEEDS, random -> run(open(kind, cuda), stream, random));
      stream.synchronize();
      assertThat(inUse(cuda)).isEqualTo(before);
    }
  }

  private static void run(Pool pool, CudaStream stream, SplittableRandom random) {
    try (pool) {
      meet(pool, stream);
      long before = pool.stats().allocations();
      Live live = new Live();
      Queue<Buffer> handedOver = new ConcurrentLinkedQueue<>();
      List<Worker> workers = new ArrayList<>();
      for (int i = 0; i < THREADS; i++) {
        workers.add(new Worker(random.split(), pool, stream, live, handedOver));
      }
      boolean releases = random.nextBoolean();
      OnThreads.run(THREADS, i -> workers.get(i).run(releases && i == 0));
      long made = workers.stream().mapToLong(worker -> worker.allocations).sum();
      assertThat(pool.stats().allocations()).isEqualTo(before + made);
      checkAtRest(pool, stream, workers, live);
    }
  }

  /** Whichever stream ends first: what others have ready stays theirs, and in the numbers. */
  @ParameterizedTest
  @ValueSource(strings = {"memory", "elastic"})
  void streamThatEnds_takesNothingOfOthersAlong(String kind) {
    for (int ended = 0; ended < 3; ended++) {
      try (Cuda cuda = Cuda.open(CudaOptions.simulated());
          Pool pool = open(kind, cuda)) {
        List<CudaStream> streams = List.of(stream(cuda), stream(cuda), stream(cuda));
        List<Buffer> blocks = new ArrayList<>();
        for (CudaStream each : streams) {
          meet(pool, each);
          blocks.add(pool.allocate(512, each));
          blocks.add(pool.allocate(MIB, each));
        }
        long allocations = pool.stats().allocations();
        blocks.subList(2 * ended, 2 * ended + 2).forEach(Buffer::close);
        streams.get(ended).close();
        cuda.currentDevice().synchronize();
        pool.freeAllBlocks();
        assertThat(pool.stats().allocations()).isEqualTo(allocations);
        assertThat(pool.stats().usedBlocks()).isEqualTo(4);
        assertThat(pool.stats().requestedBytes()).isEqualTo(2 * (512 + MIB));
        blocks.forEach(Buffer::close);
        cuda.currentDevice().synchronize();
        pool.allocate(LIMIT, streams.get((ended + 1) % 3)).close();
        assertThat(pool.freeAllBlocks()).isEqualTo(LIMIT);
      }
    }
  }

  /** A block that only all stripes together have room for is no reason to grow, or to fail. */
  @ParameterizedTest
  @ValueSource(strings = {"memory", "elastic"})
  void whatLiesInOtherStripes_isFoundBeforeThePoolGrows(String kind) {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        CudaStream stream = stream(cuda);
        Pool pool = open(kind, cuda)) {
      pool.allocate(LIMIT, stream).close(); // one piece, to be cut by all
      meet(pool, stream);
      for (int round = 0; round < 20; round++) {
        OnThreads.run(
            THREADS,
            thread -> {
              List<Buffer> own = new ArrayList<>();
              for (int i = 0; i < 24; i++) {
                own.add(pool.allocate((i % 4 + 1) * MIB / 4, stream));
              }
              own.forEach(Buffer::close);
            });
        assertThat(pool.stats().heldBytes()).isEqualTo(LIMIT);
        try (Buffer all = pool.allocate(LIMIT, stream)) {
          assertThat(all.byteSize()).isEqualTo(LIMIT);
        }
      }
      long forSmallBlocksAndBack = kind.equals("memory") ? 0 : THREADS + 1;
      assertThat(pool.stats().growths()).isLessThanOrEqualTo(1 + forSmallBlocksAndBack);
    }
  }

  /**
   * What threads have free apart is left to them while there is more, and comes when there is not.
   */
  @ParameterizedTest
  @ValueSource(strings = {"limit", "device", "neither"})
  void elasticPool_refusesNothingThatFits_andGivesAllBack_whateverIsShort(String shortOf) {
    int slots = 16;
    long most = THREADS * slots * MIB + 24 * MIB; // and what lies between blocks
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDevice("sim:memory=4GiB"));
        CudaStream stream = stream(cuda);
        ElasticMemoryPool elastic = new ElasticMemoryPool(cuda)) {
      if (shortOf.equals("limit")) {
        elastic.setLimit(MemoryLimit.ofBytes(most));
      } else if (shortOf.equals("device")) {
        Buffer _ = cuda.allocate(cuda.currentDevice().memoryInfo().freeBytes() - most);
      }
      OnThreads.run(
          THREADS,
          thread -> {
            SplittableRandom random = new SplittableRandom(thread);
            Buffer[] own = new Buffer[slots];
            for (int step = 0; step < 4_000; step++) {
              int at = random.nextInt(slots);
              if (own[at] != null) {
                own[at].close();
              }
              long bytes = random.nextLong(64 << 10, MIB);
              own[at] = elastic.allocate(bytes, stream);
              Thread.yield();
            }
            List.of(own).forEach(Buffer::close);
          });
      elastic.assertConsistent();
      assertThat(elastic.stats().usedBytes()).isZero();
      assertThat(elastic.freeAllBlocks()).isPositive();
      assertThat(elastic.stats().heldBytes()).isZero();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"memory", "elastic"})
  void poolThatIsClosedMeanwhile_hasAllBack_onceBlocksAreClosed(String kind) {
    for (int round = 0; round < SEEDS; round++) {
      try (Cuda cuda = Cuda.open(CudaOptions.simulated());
          CudaStream stream = stream(cuda)) {
        long before = inUse(cuda);
        Pool pool = open(kind, cuda);
        meet(pool, stream);
        AtomicLong made = new AtomicLong();
        OnThreads.run(THREADS, thread -> allocateUntilClosed(pool, stream, thread == 0, made));
        stream.synchronize();
        cuda.currentDevice().synchronize();
        assertThat(inUse(cuda)).isEqualTo(before);
        assertThat(made.get()).isPositive();
      }
    }
  }

  private static void allocateUntilClosed(
      Pool pool, CudaStream stream, boolean closes, AtomicLong made) {
    List<Buffer> own = new ArrayList<>();
    try {
      for (int i = 0; i < 10_000; i++) {
        own.add(pool.allocate(1 + i * 37L % (MIB / 4), stream));
        made.incrementAndGet();
        if (own.size() > 20) {
          own.remove(i * 7 % own.size()).close();
        }
        if (closes && i == 50) {
          pool.close();
        }
      }
    } catch (IllegalStateException e) {
      assertThat(e).hasMessageContaining("closed");
    }
    own.forEach(Buffer::close);
  }

  /** What the collector finds comes back to its stripe as what is closed does. */
  @ParameterizedTest
  @ValueSource(strings = {"memory", "elastic"})
  void forgottenBlocks_comeBack(String kind) {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        CudaStream stream = stream(cuda);
        Pool pool = open(kind, cuda)) {
      meet(pool, stream);
      forget(() -> pool.allocate(MIB, stream));
      Await.until(() -> {
        System.gc();
        return pool.stats().usedBytes() == 0;
      });
      assertThat(pool.stats().usedBlocks()).isZero();
      pool.allocate(LIMIT, stream).close();
    }
  }

  private static void forget(Supplier<Buffer> allocate) {
    OnThreads.run(
        THREADS,
        thread -> {
          for (int i = 0; i < 5; i++) {
            assertThat(allocate.get().byteSize()).isEqualTo(MIB);
          }
        });
  }
}
