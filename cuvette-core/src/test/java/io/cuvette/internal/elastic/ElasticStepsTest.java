package io.cuvette.internal.elastic;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.EngineMemory;
import io.cuvette.Fragmentation;
import io.cuvette.MemoryHook;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolStats;
import io.cuvette.StreamOptions;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.space.HeapCensus;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.sim.Attended;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What an elastic pool has in front of its heap, and what it does without the driver. */
@Timeout(60)
class ElasticStepsTest {
  private static final long MIB = 1L << 20;

  private final Cuda cuda =
      Attended.only(Cuda.open(CudaOptions.simulated().withDevice("sim:pace=lazy,seed=0")));
  private final CudaStream home = stream();
  private final CudaStream other = stream();
  private final ElasticMemoryPool pool = new ElasticMemoryPool(cuda);

  @AfterEach
  void close() {
    cuda.close();
  }

  private CudaStream stream() {
    return cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  }

  private static CachedBlock block(Buffer buffer) {
    return (CachedBlock) EngineMemory.of(buffer).block();
  }

  private static ElasticCache cache(ElasticMemoryPool pool, CudaStream stream) {
    try (Buffer one = pool.allocate(512, stream)) {
      return (ElasticCache) block(one).arena;
    }
  }

  private static ElasticDevicePool of(ElasticCache cache) {
    return (ElasticDevicePool) cache.of;
  }

  /** Has another thread find the heap's lock taken: the stream has a front from then on. */
  static ElasticCache meet(ElasticMemoryPool pool, CudaStream stream) {
    ElasticCache cache = cache(pool, stream);
    for (int i = 0; i < 50 && cache.front == null; i++) {
      AtomicReference<Thread> asking = new AtomicReference<>();
      HeapCensus _ =
          of(cache)
              .heap()
              .count(() -> {
                Thread thread = Thread.ofPlatform().start(() -> pool.allocate(512, stream).close());
                asking.set(thread);
                boolean _ =
                    Await.until(() -> thread.getState() != Thread.State.RUNNABLE, 1_000_000_000);
                return Collections.emptyIterator();
              });
      Await.until(() -> !asking.get().isAlive());
    }
    assertThat(cache.front).isNotNull();
    return cache;
  }

  /** Of all sizes that a front keeps, and of one that it does not. */
  private List<Buffer> allocate(CudaStream stream) {
    List<Buffer> all = new ArrayList<>();
    for (long bytes : new long[] {1, 512, 5000, 60_000, 100_000, MIB, 3 * MIB, 5 * MIB}) {
      all.add(pool.allocate(bytes, stream));
      all.add(pool.allocate(bytes, stream));
    }
    return all;
  }

  @Test
  void front_isForPoolsThatKeepWhatIsFreed_andOneOfEachStream() {
    ElasticCache cache = cache(pool, home);
    assertThat(cache.newFront()).isNotNull();
    cache.front = cache.newFront();
    assertThat(cache.newFront()).isNull();
    ElasticPoolOptions options = ElasticPoolOptions.DEFAULTS.withReleaseThresholdBytes(8 * MIB);
    try (ElasticMemoryPool releasing = new ElasticMemoryPool(cuda, options)) {
      assertThat(cache(releasing, home).newFront()).isNull();
    }
  }

  @Test
  void blocksOfFronts_areCountedInUseUntilTheyAreFreed_andAllIsReleased() {
    ElasticCache first = meet(pool, home);
    ElasticCache second = meet(pool, other);
    long before = pool.stats().allocations();
    List<Buffer> all = allocate(home);
    all.addAll(allocate(other));
    assertThat(all).anyMatch(buffer -> block(buffer).stripe != null);
    assertThat(all).anyMatch(buffer -> block(buffer).stripe == null);
    assertThat(pool.stats().allocations()).isEqualTo(before + all.size());
    while (!all.isEmpty()) {
      PoolStats now = pool.stats();
      assertThat(now.usedBlocks()).isEqualTo(all.size());
      assertThat(now.usedBytes()).isEqualTo(all.stream().mapToLong(Buffer::blockBytes).sum());
      assertThat(now.requestedBytes()).isEqualTo(all.stream().mapToLong(Buffer::byteSize).sum());
      assertThat(now.freeBytes()).isEqualTo(now.heldBytes() - now.usedBytes());
      all.remove(all.size() / 2).close();
    }
    assertThat(pool.stats().usedBytes() + pool.stats().requestedBytes()).isZero();
    assertThat(first.front).isNotNull();
    assertThat(second.front).isNotNull();
    allocate(home).forEach(Buffer::close);
    cuda.device(0).synchronize();
    assertThat(pool.trim(0)).as("what the fronts have").isPositive();
    assertThat(pool.totalBytes()).isZero();
    pool.assertConsistent();
  }

  /** Whatever lists it: small ones, large ones, and those of fronts. */
  @Test
  void bufferThatTheCollectorFound_isForgotten_untilItIsTakenBack() {
    List<Buffer> all = allocate(other);
    ElasticCache cache = meet(pool, home);
    all.addAll(allocate(home));
    for (Buffer forgotten : all) {
      assertThat(of(cache).hasForgotten()).isFalse();
      CachedBlock block = block(forgotten);
      Reference.reachabilityFence(forgotten);
      block.clear();
      assertThat(of(cache).hasForgotten()).as(forgotten.toString()).isTrue();
      assertThat(block.reclaim()).isTrue();
      assertThat(of(cache).hasForgotten()).isFalse();
    }
    assertThat(pool.stats().usedBlocks()).isZero();
  }

  @Test
  void heapThatEnds_givesAllBlocksInUse_alsoThoseOfFronts() {
    ElasticCache cache = meet(pool, home);
    List<Buffer> all = allocate(home);
    all.addAll(allocate(other));
    CachedBlock[] blocks = all.stream().map(ElasticStepsTest::block).toArray(CachedBlock[]::new);
    assertThat(of(cache).heap().end()).contains(blocks);
    assertThat(all).noneMatch(Buffer::isClosed);
  }

  @Test
  void cudaThatIsClosed_closesAllBuffers_ofFrontsToo() {
    ElasticCache _ = meet(pool, home);
    List<Buffer> all = allocate(home);
    all.addAll(allocate(other));
    Buffer pending = pool.allocate(MIB, home);
    pending.fill((byte) 1, other);
    pending.close();
    Buffer ordered = pool.allocate(8 * MIB, home);
    ordered.fill((byte) 1, home);
    ordered.close();
    assertThat(pool.fragmentation().orderedBytes()).isGreaterThanOrEqualTo(8 * MIB);
    cuda.close();
    assertThat(all).allMatch(Buffer::isClosed);
    PoolStats end = pool.stats();
    assertThat(end.heldBytes() + end.usedBytes() + end.freeBytes() + end.pendingBytes()).isZero();
    assertThat(end.requestedBytes() + end.usedBlocks() + end.freeBlocks() + end.chunks()).isZero();
    assertThat(pool.fragmentation()).isEqualTo(new Fragmentation(0, 0, 0, 0, 0, 0));
  }

  /** Who waits for memory waits for the thread that maps some. */
  @Test
  void heapIsStill_whenNobodyMapsMemory() {
    ElasticHeap heap = of(cache(pool, home)).heap();
    List<Boolean> seen = new ArrayList<>();
    MemoryHook looks =
        new MemoryHook() {
          @Override
          public void allocPreprocess(Growth growth) {
            seen.add(heap.isStill());
          }
        };
    assertThat(heap.isStill()).isTrue();
    try (var _ = pool.addHook(looks)) {
      pool.allocate(8 * MIB, home).close();
    }
    assertThat(seen).containsExactly(false);
    assertThat(heap.isStill()).isTrue();
  }

  @Test
  void memoryOfAStreamThatIsIdleByNow_isCountedAsTaken() {
    Buffer buffer = pool.allocate(MIB, home);
    Buffer beside = pool.allocate(MIB, home);
    buffer.fill((byte) 1, home);
    buffer.close();
    home.synchronize();
    long before = pool.stats().crossStreamReuses();
    try (Buffer again = pool.allocate(MIB, other)) {
      assertThat(again.address()).isEqualTo(buffer.address());
      assertThat(pool.stats().crossStreamReuses()).isEqualTo(before + 1);
    }
    beside.close();
  }

  /** What the stream has free lies beside what is done, and nothing is mapped for both. */
  @Test
  void blockThatLiesInMappedMemory_isNoGrowth() {
    Buffer own = pool.allocate(2 * MIB, home);
    Buffer done = pool.allocate(2 * MIB, other);
    assertThat(done.address()).isEqualTo(own.address() + 2 * MIB);
    own.fill((byte) 1, home);
    own.close();
    done.close();
    AtomicInteger growths = new AtomicInteger();
    MemoryHook counts =
        new MemoryHook() {
          @Override
          public void allocPreprocess(Growth growth) {
            growths.incrementAndGet();
          }
        };
    long held = pool.totalBytes();
    try (var _ = pool.addHook(counts);
        Buffer both = pool.allocate(4 * MIB, home)) {
      assertThat(both.address()).isEqualTo(own.address());
      assertThat(growths).hasValue(0);
      assertThat(pool.totalBytes()).isEqualTo(held);
    }
    pool.assertConsistent();
  }

  @Test
  void blockForWhichThereAreNoAddresses_isOutOfMemory_andThePoolGoesOn() {
    for (long bytes : new long[] {1L << 47, 1L << 55, Long.MAX_VALUE - 511}) {
      assertThatThrownBy(() -> pool.allocate(bytes, home))
          .isInstanceOf(OutOfDeviceMemoryException.class);
    }
    pool.allocate(MIB, home).close();
    pool.assertConsistent();
  }

  /** Nothing of it is in use, however often the block freed last was taken again. */
  @Test
  void streamWhoseBlocksWereTakenAgainAtOnce_isForgottenAfterItsEnd() {
    int first = cache(pool, home).tag;
    for (int i = 0; i < 10; i++) {
      try (CudaStream brief = stream()) {
        assertThat(cache(pool, brief).tag).isLessThan(first + 4);
        for (int again = 0; again < 3; again++) {
          pool.allocate(512, brief).close();
          pool.allocate(MIB, brief).close();
          pool.allocate(MIB, brief).close();
        }
      }
      cuda.device(0).synchronize();
      pool.allocate((2 + i) * MIB, home).close(); // a miss, which asks the others
    }
  }

  @Test
  void fragmentation_saysWhatIsPending_andWhatWaitsForItsStream() {
    Buffer pending = pool.allocate(2 * MIB, home);
    Buffer ordered = pool.allocate(4 * MIB, home);
    Buffer used = pool.allocate(8 * MIB, home);
    pending.fill((byte) 1, other);
    ordered.fill((byte) 1, home);
    pending.close();
    ordered.close();
    assertThat(pool.fragmentation())
        .isEqualTo(new Fragmentation(14 * MIB, 0, 0, 4 * MIB, 0, 2 * MIB));
    cuda.device(0).synchronize();
    assertThat(pool.trim(14 * MIB)).isZero();
    assertThat(pool.fragmentation()).isEqualTo(new Fragmentation(14 * MIB, 6 * MIB, 0, 0, 0, 0));
    used.close();
  }

  /** It is the stream's own, in whichever stripe: no growth, and nothing of another stream. */
  @Test
  void blocksThatOtherThreadsFreed_areTakenAsTheStreamsOwn() throws InterruptedException {
    ElasticCache _ = meet(pool, home);
    Set<Long> freed = ConcurrentHashMap.newKeySet();
    for (int i = 0; i < 8; i++) {
      Thread.ofPlatform()
          .start(() -> {
            List<Buffer> all = new ArrayList<>();
            for (int block = 0; block < 4; block++) {
              all.add(pool.allocate(MIB, home));
            }
            all.forEach(each -> freed.add(each.address()));
            all.forEach(Buffer::close);
          })
          .join();
    }
    PoolStats before = pool.stats();
    List<Buffer> taken = new ArrayList<>();
    for (int i = 0; i < freed.size(); i++) {
      taken.add(pool.allocate(MIB, home));
    }
    PoolStats after = pool.stats();
    assertThat(after.growths()).isEqualTo(before.growths());
    assertThat(after.heldBytes()).isEqualTo(before.heldBytes());
    assertThat(after.crossStreamReuses()).isEqualTo(before.crossStreamReuses());
    taken.forEach(Buffer::close);
    pool.assertConsistent();
  }
}
