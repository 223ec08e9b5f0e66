package io.cuvette.internal.elastic;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.EngineMemory;
import io.cuvette.MemoryHook;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolStats;
import io.cuvette.StreamOptions;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.space.Space;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.DeviceCache;
import io.cuvette.sim.Attended;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What an elastic pool says of its memory. No work is done before somebody waits for it. */
@Timeout(60)
class ElasticNumbersTest {
  private static final long MIB = 1L << 20;
  private static final long SMALL_BYTES = Spaces.SMALL_BYTES;
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(40);

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

  private ElasticCache cache(CudaStream stream) {
    try (Buffer one = pool.allocate(512, stream)) {
      return (ElasticCache) block(one).arena;
    }
  }

  @Test
  void everyNumber_isExact() {
    Buffer used = pool.allocate(100, home);
    Buffer pending = pool.allocate(3 * MIB - 1, home);
    pending.fill((byte) 1, other);
    pending.close();
    PoolStats stats = pool.stats();
    assertThat(stats)
        .isEqualTo(
            new PoolStats(
                512, // used
                6 * MIB - 512, // free
                6 * MIB, // held: 2 MiB for small blocks, and 4
                100, // requested
                3 * MIB, // pending
                0, // of graphs
                0, // releasable
                stats.largestFreeBytes(),
                1,
                stats.freeBlocks(),
                3,
                3 * MIB + 512, // peak used
                6 * MIB, // peak held
                2, // allocations
                2, // growths
                0,
                0,
                Long.MAX_VALUE));
    used.close();
    assertThat(pool.stats().requestedBytes()).isZero();
    pool.resetPeaks(cuda.device(0));
    assertThat(pool.stats().peakUsedBytes()).as("what waits is in use").isEqualTo(3 * MIB);
    other.synchronize();
    pool.allocate(512, home).close();
    assertThat(pool.stats().requestedBytes()).isZero();
    pool.resetPeaks(cuda.device(0));
    assertThat(pool.stats().peakUsedBytes()).isZero();
    assertThat(pool.stats().allocations()).isEqualTo(3);
    assertThat(pool.trim(0)).isEqualTo(6 * MIB);
    assertThat(pool.stats().peakHeldBytes()).isEqualTo(6 * MIB);
    pool.resetPeaks(cuda.device(0));
    assertThat(pool.stats().peakHeldBytes()).isZero();
  }

  @Test
  void memoryThatWasOthers_isCounted_ifItWasTaken() {
    Buffer small = pool.allocate(MIB, home);
    Buffer beside = pool.allocate(MIB, home); // so that none grows over it
    small.fill((byte) 1, home);
    small.close();
    assertThat(pool.freeBytes()).isEqualTo(MIB); // no longer at hand for the stream alone
    other.waitFor(home);
    Buffer large = pool.allocate(32 * MIB, other);
    assertThat(pool.stats().crossStreamReuses()).as("it is too small").isZero();
    try (Buffer again = pool.allocate(MIB, other)) {
      assertThat(again.address()).isEqualTo(small.address());
      assertThat(pool.stats().crossStreamReuses()).as("after a wait").isOne();
    }
    large.fill((byte) 1, other);
    large.close();
    other.synchronize();
    CudaStream third = stream();
    Buffer most = pool.allocate(100 * MIB, third);
    assertThat(pool.stats().crossStreamReuses()).as("it is too small").isOne();
    most.close();
    beside.close();
  }

  /** Beyond the threshold, and no more than that. */
  @Test
  void threshold_isWhatStaysCached() {
    ElasticPoolOptions options = ElasticPoolOptions.DEFAULTS.withReleaseThresholdBytes(8 * MIB);
    try (ElasticMemoryPool keeping = new ElasticMemoryPool(cuda, options);
        Buffer _ = keeping.allocate(6 * MIB, home)) {
      List<Buffer> all = new ArrayList<>();
      for (int i = 0; i < 5; i++) {
        all.add(keeping.allocate(4 * MIB, home));
        all.getLast().fill((byte) 1, home);
      }
      all.forEach(Buffer::close);
      assertThat(keeping.freeBytes()).as("it is not done").isEqualTo(20 * MIB);
      home.synchronize();
      keeping.allocate(MIB, home).close();
      assertThat(keeping.freeBytes()).isEqualTo(8 * MIB);
      assertThat(keeping.totalBytes()).isEqualTo(14 * MIB);
    }
  }

  @Test
  void memoryOfTheStreamItself_isNotOfOthers_whenThereIsNone() {
    pool.setLimit(MemoryLimit.ofBytes(8 * MIB));
    Buffer own = pool.allocate(2 * MIB, home);
    Buffer foreign = pool.allocate(4 * MIB, other);
    own.fill((byte) 1, home);
    foreign.fill((byte) 1, other);
    own.close();
    foreign.close();
    assertThatThrownBy(() -> pool.allocate(16 * MIB, home))
        .isInstanceOfSatisfying(
            OutOfDeviceMemoryException.class,
            e -> {
              assertThat(e.details().freeBytes()).isEqualTo(6 * MIB);
              assertThat(e.details().otherStreamsFreeBytes()).isEqualTo(4 * MIB);
            });
  }

  /** What is done may be taken by every stream. */
  @Test
  void memoryWhoseWorkIsDone_isNotOfOtherStreams() {
    pool.setLimit(MemoryLimit.ofBytes(8 * MIB));
    Buffer own = pool.allocate(6 * MIB, home);
    own.fill((byte) 1, home);
    home.synchronize();
    own.close();
    assertThatThrownBy(() -> pool.allocate(16 * MIB, home))
        .isInstanceOfSatisfying(
            OutOfDeviceMemoryException.class,
            e -> {
              assertThat(e.details().freeBytes()).isEqualTo(6 * MIB);
              assertThat(e.details().otherStreamsFreeBytes()).isZero();
            });
  }

  /** Where small blocks end and others begin, for the heap and for what lies in front of it. */
  @Test
  void blockOfTheSizeBetween_isALargeOne() {
    assertThat(Spaces.kind(SMALL_BYTES - 512)).isZero();
    assertThat(Spaces.kind(SMALL_BYTES)).isOne();
    ElasticCache cache = cache(home);
    cache.front = cache.newFront(); // as for threads that have met
    for (long bytes : new long[] {SMALL_BYTES, SMALL_BYTES - 512, 512}) {
      pool.allocate(bytes, home).close(); // for the front to take from
      Buffer first = pool.allocate(bytes, home);
      Buffer second = pool.allocate(bytes, home);
      assertThat(block(first).stripe).isNotNull();
      assertThat(second.address()).isNotEqualTo(first.address());
      first.close();
      second.close();
      pool.assertConsistent();
    }
    home.synchronize();
    assertThat(pool.freeAllBlocks()).isPositive();
    assertThat(pool.totalBytes()).isZero();
  }

  /** Whoever found it in order may be late: more was freed there since. */
  @Test
  void memoryOfAnotherStream_isTakenAfterAWaitForItAlone() {
    Buffer before = pool.allocate(MIB, home);
    Buffer mine = pool.allocate(MIB, other);
    before.fill((byte) 1, home);
    before.close();
    ElasticCache own = (ElasticCache) block(mine).arena;
    ElasticCache from = cache(home);
    ElasticHeap heap = ((ElasticDevicePool) own.of).heap();
    OpenStream asking = EngineMemory.of(mine).order();
    assertThat(pool.freeBytes()).isPositive();
    assertThat(heap.take(own, from, MIB, MIB, asking, null)).isNull();
    other.waitFor(home);
    assertThat(heap.take(own, from, MIB, MIB, asking, null)).isNotNull();
  }

  /** Who closes it cannot end what a thread is about to get. */
  @Test
  void streamThatEndsAsNothingCouldBeMapped_isForgottenByThePool() {
    int next = cache(home).tag + 1;
    for (int i = 0; i < 3; i++) {
      CudaStream brief = stream();
      MemoryHook closing =
          new MemoryHook() {
            @Override
            public void allocPreprocess(Growth growth) {
              brief.close();
              throw new UnsupportedOperationException("closed");
            }
          };
      try (var _ = pool.addHook(closing)) {
        assertThatThrownBy(() -> pool.allocate(MIB, brief)).hasMessage("closed");
      }
    }
    assertThat(cache(stream()).tag).isEqualTo(next);
    pool.assertConsistent();
  }

  /** What it is told from others' memory by may be another stream's by then. */
  @Test
  void streamThatHasEnded_neitherGivesNorTakes() {
    Buffer mine = pool.allocate(MIB, other);
    OpenStream asking = EngineMemory.of(mine).order();
    ElasticCache own = (ElasticCache) block(mine).arena;
    assertThat(cache(home).hasEnded()).isFalse();
    CudaStream brief = stream();
    ElasticCache ended = cache(brief);
    pool.allocate(MIB, other).close();
    assertThat(pool.freeBytes()).isPositive();
    mine.fill((byte) 1, brief);
    other.waitFor(brief);
    assertThat(ended.isBefore(EngineMemory.streamOf(other).clock)).isTrue();
    brief.close();
    cuda.device(0).synchronize();
    pool.allocate(100 * MIB, home).close(); // asks the others
    assertThat(ended.hasEnded()).isTrue();
    CudaStream third = stream();
    ElasticCache successor = cache(third);
    assertThat(successor.tag).isEqualTo(ended.tag);
    Buffer busy = pool.allocate(MIB, third);
    busy.fill((byte) 1, third);
    busy.close();
    ElasticHeap heap = heap(mine);
    assertThat(heap.freeBytesOf(successor)).isGreaterThanOrEqualTo(MIB);
    heap.done(ended, heap.sequence());
    assertThat(heap.freeBytesOf(successor)).isGreaterThanOrEqualTo(MIB);
    assertThat(ended.isBefore(EngineMemory.streamOf(other).clock)).as("as before").isTrue();
    assertThat(heap.take(own, ended, MIB, MIB, asking, null)).isNull();
    assertThat(heap.take(ended, own, MIB, MIB, asking, null)).isNull();
    assertThat(heap.freeBytesOf(ended)).isZero();
  }

  private static ElasticHeap heap(Buffer buffer) {
    return ((ElasticDevicePool) block(buffer).arena.of).heap();
  }

  @Test
  void heapThatHasEnded_givesTheBlocksInUse_andNothingMore() {
    List<Buffer> used = List.of(pool.allocate(512, home), pool.allocate(MIB, home));
    pool.allocate(MIB, home).close();
    pool.allocate(512, home).close();
    ElasticHeap heap = heap(used.getFirst());
    ElasticCache own = cache(home);
    OpenStream asking = EngineMemory.of(used.getFirst()).order();
    assertThat(pool.stats().usedBlocks()).isEqualTo(2);
    assertThat(heap.isOver()).isFalse();
    assertThat(heap.end()).containsExactlyInAnyOrder(block(used.getFirst()), block(used.getLast()));
    assertThat(heap.isOver()).isTrue();
    assertThat(heap.take(own, own, MIB, MIB, asking, null)).isNull();
  }

  /** Nobody tells the library of it, so that it is asked for each time. */
  @Test
  void workThatOthersQueueInTheNullStream_isNotTakenForDone() {
    CudaStream nullStream = cuda.device(0).nullStream();
    Buffer used = pool.allocate(2 * MIB, nullStream);
    pool.allocate(2 * MIB, nullStream).close();
    assertThat(pool.freeAllBlocks()).as("nothing goes on").isEqualTo(2 * MIB);
    CountDownLatch goOn = new CountDownLatch(1);
    cuda.driver()
        .streams()
        .launchHostFunc(
            0, nullStream.handle(), () -> Await.until(() -> goOn.getCount() == 0, PATIENCE_NANOS));
    used.close();
    assertThat(pool.freeAllBlocks()).isZero();
    goOn.countDown();
    nullStream.synchronize();
    assertThat(pool.freeAllBlocks()).isEqualTo(2 * MIB);
  }

  /** Whether it was mapped for that or lay free. */
  @Test
  void pieces_areAsLargeAsWhatWasInUseAtOnceAllows() {
    Buffer first = pool.allocate(3 * MIB, home);
    assertThat(heap(first).largestPiece()).isEqualTo(3 * MIB / 128);
    try (Buffer _ = pool.allocate(MIB, home)) {
      assertThat(pool.stats().growths()).isOne();
      assertThat(heap(first).largestPiece()).isEqualTo(4 * MIB / 128);
    }
    first.close();
    assertThat(heap(first).largestPiece()).isEqualTo(4 * MIB / 128);
  }

  @Test
  void booksThatDoNotAgree_areFound() {
    MemoryPool caching = new MemoryPool(cuda);
    Map<Buffer, Runnable> checks =
        Map.of(
            pool.allocate(MIB, home), pool::assertConsistent,
            caching.allocate(MIB, home), caching::assertConsistent);
    checks.forEach((buffer, check) -> {
      DeviceCache of = block(buffer).arena.of;
      assertThatCode(check::run).doesNotThrowAnyException();
      of.held.leaveArena(512);
      assertThatThrownBy(check::run).isInstanceOf(AssertionError.class);
      of.held.enterArena(512);
      assertThatCode(check::run).doesNotThrowAnyException();
    });
  }

  @Test
  void poolThatIsClosed_releasesWhatOthersAreDoneWith() {
    Buffer pending = pool.allocate(2 * MIB, home);
    pending.fill((byte) 1, other);
    pending.close();
    other.synchronize();
    long before = cuda.driver().devices().memGetInfo(0).freeBytes();
    pool.close();
    assertThat(cuda.driver().devices().memGetInfo(0).freeBytes()).isEqualTo(before + 2 * MIB);
  }

  @Test
  void memoryOfAClosedPoolThatOthersAreDoneWith_isReleasedByTheNextWhoFreesAll() {
    Buffer pending = pool.allocate(2 * MIB, home);
    CountDownLatch goOn = new CountDownLatch(1);
    var _ = other.addCallback(() -> Await.until(() -> goOn.getCount() == 0, PATIENCE_NANOS));
    pending.recordUse(other);
    pending.close();
    pool.close();
    long before = cuda.driver().devices().memGetInfo(0).freeBytes();
    goOn.countDown();
    other.synchronize();
    assertThat(cuda.defaultMemoryPool().freeAllBlocks()).isZero();
    assertThat(cuda.driver().devices().memGetInfo(0).freeBytes()).isEqualTo(before + 2 * MIB);
  }

  /** Nobody asked the pool for anything before. */
  @Test
  void fragmentation_isThatOfNow() {
    Buffer pending = pool.allocate(2 * MIB, home);
    pending.fill((byte) 1, other);
    pending.close();
    assertThat(pool.fragmentation().pendingBytes()).isEqualTo(2 * MIB);
    other.synchronize();
    assertThat(pool.fragmentation().pendingBytes()).isZero();
  }

  /** Else a pool would keep, and ask, each stream that it ever had. */
  @Test
  void streamThatIsDoneAfterItsEnd_isForgottenByThePool() {
    int first = cache(home).tag;
    for (int i = 0; i < 20; i++) {
      try (CudaStream brief = stream()) {
        assertThat(cache(brief).tag).isLessThan(first + 4);
        Buffer buffer = pool.allocate(MIB, brief);
        buffer.fill((byte) 1, brief);
        buffer.close();
      }
      cuda.device(0).synchronize();
      pool.allocate((2 + i) * MIB, home).close(); // a miss, which asks the others
    }
  }

  /** Only where nobody else can queue work is a stream idle until the library queues some. */
  @Test
  void whatAStreamFreesThatWasFoundIdle_isDone_ifItIsTheLibrarysAlone() {
    CudaStream exposed = stream();
    assertThat(exposed.handle()).isNotZero();
    for (CudaStream each : List.of(home, exposed, cuda.device(0).nullStream())) {
      ElasticCache cache = cache(each);
      try (Buffer buffer = pool.allocate(MIB, each)) {
        buffer.fill((byte) 1, each);
      }
      assertThat(cache.tagOfFree()).isEqualTo(cache.tag).isNotEqualTo(Space.DONE);
      each.synchronize();
      assertThat(cache.isIdle()).isTrue();
      assertThat(cache.tagOfFree()).isEqualTo(each == home ? Space.DONE : cache.tag);
    }
  }
}
