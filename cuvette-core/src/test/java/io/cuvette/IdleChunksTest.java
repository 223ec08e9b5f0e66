package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.devicepool.MemoryPoolCore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Which chunks a trim by idle time releases, by a clock of the test. */
@Timeout(60)
class IdleChunksTest {
  private static final long MIB = 1L << 20;

  /** A reading of the clock is shared by no more. */
  private static final int QUESTIONS = 64;

  private static final Duration MINUTE = Duration.ofMinutes(1);
  private static final long SEED = Long.getLong("cuvette.seed", 1);

  private final AtomicLong time = new AtomicLong(Long.MAX_VALUE - MINUTE.toNanos());
  private final AtomicLong readings = new AtomicLong();
  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final CudaStream one = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final CudaStream two = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final MemoryPool owner = new MemoryPool(cuda);
  private final MemoryPoolCore pool =
      MemoryPool.core(owner, cuda, PoolOptions.DEFAULTS, this::readClock);

  /** What is done while the clock is read, under the lock of a stream's blocks. */
  private Runnable meanwhile = () -> {};

  private long readClock() {
    readings.incrementAndGet();
    Runnable now = meanwhile;
    meanwhile = () -> {};
    now.run();
    return time.get();
  }

  private BufferBase allocate(long bytes, CudaStream stream) {
    return BufferKind.base(pool.allocate(bytes, stream.core()));
  }

  /** Frees a block some time after the last, so that the clock is read for it. */
  private void free(BufferBase block) {
    pass(Duration.ofNanos(200_000));
    block.close();
  }

  private long trim(Duration idleFor) {
    return pool.trim(cuda.device(0).core(), idleFor);
  }

  private void pass(Duration time) {
    this.time.addAndGet(time.toNanos());
  }

  @AfterEach
  void close() {
    pool.assertConsistent();
    pool.close(this);
    cuda.close();
  }

  @Test
  void chunk_goesOnceItWasFreeForSoLong_andNotBefore() {
    allocate(MIB, one).close();
    pass(MINUTE.minusNanos(1));
    assertThat(trim(MINUTE)).isZero();
    pass(Duration.ofNanos(1));
    assertThat(trim(MINUTE)).isEqualTo(MIB);
    assertThat(pool.heldBytes()).isZero();
  }

  @Test
  void chunk_isNotIdle_whileAnyPartOfItIsUsed_norSoonAfter() {
    allocate(3 * MIB, one).close();
    BufferBase first = allocate(MIB, one);
    BufferBase second = allocate(MIB, one);
    pass(MINUTE);
    first.close();
    pass(MINUTE);
    assertThat(trim(MINUTE)).isZero();
    second.close();
    pass(MINUTE.minusNanos(1));
    assertThat(trim(MINUTE)).isZero();
    pass(Duration.ofNanos(1));
    assertThat(trim(MINUTE)).isEqualTo(3 * MIB);
  }

  /** Each launch of the graph uses it, however long that is not. */
  @Test
  void chunkOfAGraph_isNotIdle_asLongAsThatCanRun() {
    CudaGraph graph = one.capture(() -> allocate(2 * MIB, one).close());
    CudaGraphExec executable = graph.instantiate();
    graph.close();
    pass(MINUTE.multipliedBy(2));
    assertThat(trim(MINUTE)).isZero();
    assertThat(trim(Duration.ZERO)).isZero();
    executable.launch(one);
    one.synchronize();
    executable.close();
    Await.until(() -> cuda.leaksFound() > 0 || trim(MINUTE) > 0);
    assertThat(pool.heldBytes()).isZero();
  }

  /** What was asked for is in the other block, and all of the new one is free. */
  @Test
  void chunkThatIsNotUsed_asUpstreamFreedWhatFitsMeanwhile_isIdleAsOfThen() {
    List<BufferBase> parts = new ArrayList<>();
    MemoryResource upstream =
        (bytes, stream) -> {
          parts.forEach(BufferBase::close);
          return MemoryResource.direct().allocate(bytes, stream);
        };
    PoolOptions options = PoolOptions.DEFAULTS.withUpstream(upstream);
    MemoryPoolCore freeing = MemoryPool.core(owner, cuda, options, this::readClock);
    BufferKind.base(freeing.allocate(3 * MIB, one.core())).close();
    for (int i = 0; i < 3; i++) {
      parts.add(BufferKind.base(freeing.allocate(MIB, one.core())));
    }
    long address = parts.getFirst().address();
    parts.removeLast();
    BufferBase given = BufferKind.base(freeing.allocate(2 * MIB, one.core()));
    assertThat(given.address()).isEqualTo(address);
    pass(MINUTE);
    assertThat(freeing.trim(cuda.device(0).core(), MINUTE)).isEqualTo(2 * MIB);
    assertThat(freeing.heldBytes()).isEqualTo(3 * MIB);
    freeing.assertConsistent();
    freeing.close(this);
  }

  @Test
  void onlyChunksThatAreIdle_go_ofAllStreams() {
    BufferBase used = allocate(MIB, one);
    free(allocate(2 * MIB, one));
    BufferBase busy = allocate(4 * MIB, two);
    free(allocate(8 * MIB, two));
    pass(MINUTE);
    free(allocate(2 * MIB, one));
    free(busy);
    pass(Duration.ofNanos(1));
    assertThat(trim(MINUTE)).isEqualTo(8 * MIB);
    assertThat(trim(Duration.ZERO)).isEqualTo(6 * MIB);
    assertThat(pool.heldBytes()).isEqualTo(MIB);
    used.close();
  }

  @Test
  void aBurstOfFrees_readsTheClockSeldom_andNoHitReadsIt() {
    allocate(MIB, one).close();
    long before = readings.get();
    for (int i = 0; i < 6400; i++) {
      allocate(MIB, one).close();
    }
    assertThat(readings.get() - before).isLessThan(120);
    List<BufferBase> parts = new ArrayList<>();
    before = readings.get();
    parts.add(allocate(512, one));
    parts.add(allocate(512, one));
    parts.removeLast().close();
    parts.add(allocate(1024, one));
    assertThat(readings.get()).isEqualTo(before);
    parts.forEach(BufferBase::close);
    pass(MINUTE);
    assertThat(trim(MINUTE)).isEqualTo(MIB);
  }

  /** Many threads on one stream keep blocks in front of its arena. */
  @Test
  void chunksOfManyThreads_goAtTheFirstTrim() throws Exception {
    try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
      Callable<Boolean> work =
          () -> {
            for (int i = 0; i < 5_000; i++) {
              allocate(MIB, one).close();
            }
            return true;
          };
      for (Future<Boolean> each : threads.invokeAll(List.of(work, work, work, work))) {
        each.get();
      }
    }
    pool.stats(cuda.device(0).core()); // finds what a thread left to the next
    pass(MINUTE);
    long held = pool.heldBytes();
    assertThat(held).isPositive();
    assertThat(trim(MINUTE)).isEqualTo(held);
  }

  @Test
  void releasedChunks_areThoseThatAModelFindsIdle() {
    SplittableRandom random = new SplittableRandom(SEED);
    Map<Long, Long> freedAt = new HashMap<>();
    List<BufferBase> live = new ArrayList<>();
    for (int i = 0; i < 20_000; i++) {
      pass(Duration.ofNanos(200_000 + random.nextInt(1_000_000)));
      if (live.isEmpty() || random.nextInt(100) < 49) {
        long bytes = (1 + random.nextInt(64)) * 65_536L + random.nextInt(2) * 512L;
        BufferBase taken = allocate(bytes, one);
        live.add(taken);
        freedAt.remove(taken.address());
      } else {
        BufferBase given = live.remove(random.nextInt(live.size()));
        given.close();
        freedAt.put(given.address(), time.get());
      }
      if (random.nextInt(500) == 0) {
        trimAsTheModel(Duration.ofMillis(random.nextInt(300)), freedAt);
      }
    }
    live.forEach(BufferBase::close);
  }

  /** What is idle at all has no part that was freed later. */
  private void trimAsTheModel(Duration idleFor, Map<Long, Long> freedAt) {
    long usedBefore = pool.stats(cuda.device(0).core()).usedBytes();
    long releasable = pool.stats(cuda.device(0).core()).releasableBytes();
    long latest = time.get() - idleFor.toNanos();
    boolean anyIdle = freedAt.values().stream().anyMatch(at -> at - latest <= 0);
    boolean allIdle = freedAt.values().stream().allMatch(at -> at - latest <= 0);
    long released = trim(idleFor);
    assertThat(released).isLessThanOrEqualTo(releasable);
    assertThat(pool.stats(cuda.device(0).core()).usedBytes()).isEqualTo(usedBefore);
    if (!anyIdle) {
      assertThat(released).isZero();
    } else if (allIdle) {
      assertThat(released).isEqualTo(releasable);
    }
  }

  /** Who finds the lock taken leaves the block there; the next who frees one brings it along. */
  @Test
  void blockThatWasLeft_isIdleSinceTheNextWasFreed() {
    List<BufferBase> blocks = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      blocks.add(allocate(MIB, one));
    }
    List<BufferBase> others = new ArrayList<>();
    for (int i = 0; i < QUESTIONS; i++) {
      others.add(allocate(512, one));
    }
    others.forEach(this::free); // each question reads the clock from here on
    meanwhile = blocks.get(1)::close;
    free(blocks.get(0));
    free(blocks.get(2));
    pass(MINUTE);
    assertThat(trim(MINUTE)).isPositive();
    assertThat(pool.heldBytes()).isZero();
  }
}
