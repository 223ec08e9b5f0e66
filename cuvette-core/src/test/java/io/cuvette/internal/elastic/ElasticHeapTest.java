package io.cuvette.internal.elastic;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.EngineMemory;
import io.cuvette.MemoryHook;
import io.cuvette.PoolStats;
import io.cuvette.StreamOptions;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.devicepool.CachesOfStream;
import io.cuvette.internal.devicepool.MemoryPoolCore;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.paged.Window;
import io.cuvette.internal.space.HeapCensus;
import io.cuvette.internal.space.Pieces;
import io.cuvette.internal.space.Victim;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.FrontCache;
import io.cuvette.internal.streamcache.Request;
import io.cuvette.sim.Attended;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What an elastic pool takes from its heap, and in which order. No work is done unawaited. */
@Timeout(60)
class ElasticHeapTest {
  private static final long MIB = 1L << 20;
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(40);
  private static final OptionalLong ANY_TIME = OptionalLong.empty();

  private final Cuda cuda =
      Attended.only(Cuda.open(CudaOptions.simulated().withDevice("sim:pace=lazy,seed=0")));
  private final CudaStream home = stream();
  private final CudaStream other = stream();
  private final ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
  private final Buffer used = pool.allocate(MIB, home);
  private final OpenStream asking = EngineMemory.of(used).order();
  private final ElasticCache own = cache(used);
  private final List<Buffer> kept = new ArrayList<>();
  private final ElasticHeap heap = ((ElasticDevicePool) own.of).heap();

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

  private static ElasticCache cache(Buffer buffer) {
    return (ElasticCache) block(buffer).arena;
  }

  private Request request(long bytes) {
    return new Request(own, bytes, bytes, asking, new Refusals());
  }

  private void make(long... sizes) {
    for (long bytes : sizes) {
      kept.add(pool.allocate(bytes, home));
    }
  }

  private @Nullable Face take(ElasticCache from, long bytes) {
    return heap.take(own, from, bytes, bytes, asking, null);
  }

  /** Gives the stream a front, as for threads that have met: it has a third of 24 MiB. */
  private FrontCache keepASlab() {
    FrontCache front = Objects.requireNonNull(ElasticStepsTest.meet(pool, home).front);
    pool.allocate(24 * MIB, home).close();
    pool.allocate(2 * MIB, home).close();
    return front;
  }

  @Test
  void whatIsMissing_comesFromTheFront() {
    FrontCache _ = keepASlab();
    assertThat(take(own, 20 * MIB)).isNotNull();
  }

  @Test
  void whatIsNotMissing_leavesTheFrontWhatItHas() {
    FrontCache front = keepASlab();
    assertThat(take(own, 5 * MIB)).isNotNull();
    assertThat(front.release(8 * MIB)).isTrue();
    assertThat(front.release(512)).as("no more than that").isFalse();
  }

  /** It is not counted as memory of another stream. */
  @Test
  void whatOthersDoNotHave_isNotTakenFromTheFront() {
    Buffer before = pool.allocate(MIB, other);
    ElasticCache from = cache(before);
    FrontCache _ = keepASlab();
    before.fill((byte) 1, other);
    before.close();
    assertThat(heap.freeBytesOf(from)).isEqualTo(MIB);
    home.waitFor(other);
    assertThat(from.isBefore(own.stream.clock)).isTrue();
    assertThat(take(from, 20 * MIB)).isNull();
    assertThat(take(from, MIB)).isNotNull();
  }

  /** What is mapped for a block is what is not free beside it, whoever has that ready. */
  @Test
  void whatFrontsHave_isNotMappedAgain() {
    FrontCache _ = keepASlab();
    Plan plan = heap.plan(request(32 * MIB));
    assertThat(plan.bytes).isEqualTo(8 * MIB);
    heap.abort(plan);
    pool.assertConsistent();
  }

  /** Though it is larger by then, with what lies beside it. */
  @Test
  void blockThatWasFreedLast_isTakenFirst() {
    make(MIB, 2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB, MIB);
    kept.get(1).close();
    kept.get(4).close();
    Buffer last = kept.get(3);
    last.close();
    assertThat(pool.allocate(2 * MIB, home).address()).isEqualTo(last.address());
  }

  @Test
  void whatWasFreedLast_isDoneWithAllBeforeIt() {
    Buffer last = pool.allocate(4 * MIB, home);
    last.fill((byte) 1, home);
    last.close();
    long until = heap.sequence();
    home.synchronize();
    heap.done(own, until);
    assertThat(heap.freeBytesOf(own)).isZero();
  }

  @Test
  void whatWasFreedLast_canBeUnmapped() {
    make(MIB);
    pool.allocate(4 * MIB, home).close();
    Victim victim = heap.carve(4 * MIB, ANY_TIME);
    assertThat(Objects.requireNonNull(victim).bytes).isEqualTo(4 * MIB);
    heap.restore(victim);
    pool.assertConsistent();
  }

  /** In use are 256 MiB then, and one in a hundred more may be held. */
  @Test
  void blockBeyondWhatWasEverInUse_movesNoMoreThanItMust() {
    make(MIB, 100 * MIB, 2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB);
    kept.get(2).close();
    kept.get(4).close();
    assertThat(pool.totalBytes()).isEqualTo(110 * MIB);
    make(150 * MIB);
    assertThat(pool.totalBytes()).isEqualTo((110 + 150 - 2) * MIB);
    pool.assertConsistent();
  }

  /** Threads that meet lose more by bringing memory together than by a little more of it. */
  @Test
  void whatIsLeftApart_isNotTakenFromStreamsThatAreIdle() {
    make(512, 1500 * MIB);
    ElasticCache _ = ElasticStepsTest.meet(pool, home);
    CountDownLatch goOn = new CountDownLatch(1);
    Buffer idle = pool.allocate(6 * MIB, other);
    var _ = other.addCallback(() -> Await.until(() -> goOn.getCount() == 0, PATIENCE_NANOS));
    idle.close();
    pool.allocate(512, home).close();
    make(5 * MIB); // brings together what the front has
    assertThat(heap.leavesApart(6 * MIB)).isTrue();
    goOn.countDown();
    other.synchronize();
    PoolStats before = pool.stats();
    make(6 * MIB);
    PoolStats after = pool.stats();
    assertThat(after.growths()).isEqualTo(before.growths() + 1);
    assertThat(after.crossStreamReuses()).isEqualTo(before.crossStreamReuses());
  }

  /** Pieces are a part of that, also where threads have met. */
  @Test
  void whatIsInUseAtOnce_isNoted_withWhatFrontsGaveOut() {
    FrontCache _ = keepASlab();
    make(2 * MIB, 40 * MIB);
    assertThat(block(kept.getFirst()).stripe).isNotNull();
    assertThat(heap.largestPiece()).isEqualTo((1 + 2 + 40) * MIB / 128);
  }

  @Test
  void whatIsInUseAtOnce_isNoted_ifItLayFreeBesideFronts() {
    ElasticCache _ = ElasticStepsTest.meet(pool, home);
    Buffer busy = pool.allocate(10 * MIB, other);
    busy.fill((byte) 1, other);
    busy.close();
    make(10 * MIB);
    assertThat(heap.largestPiece()).isEqualTo((1 + 10) * MIB / 128);
    other.synchronize();
    kept.add(pool.allocate(10 * MIB, other));
    assertThat(kept.getLast().address()).isEqualTo(busy.address());
    assertThat(heap.largestPiece()).isEqualTo((1 + 10 + 10) * MIB / 128);
  }

  /** The same bytes are mapped, but not where the blocks are. */
  @Test
  void memoryThatIsNotWhereItIsFree_isFound() {
    Buffer free = pool.allocate(8 * MIB, home);
    free.close();
    long page = free.address() + MIB;
    Pieces pieces = ((Window) block(used).chunk.block()).pieces;
    assertThatCode(heap::assertConsistent).doesNotThrowAnyException();
    move(pieces, page, page + 64 * MIB);
    assertThatThrownBy(heap::assertConsistent).isInstanceOf(AssertionError.class);
    move(pieces, page + 64 * MIB, page);
    assertThatCode(heap::assertConsistent).doesNotThrowAnyException();
  }

  private static void move(Pieces pieces, long from, long to) {
    assertThat(pieces.sizeAt(from)).isEqualTo(2 * MIB);
    pieces.remove(from, 2 * MIB);
    pieces.add(to, 2 * MIB);
  }

  @Test
  void heapThatHasEnded_hasNothing_andGivesNothing() {
    make(4 * MIB);
    pool.allocate(8 * MIB, home).close();
    assertThat(heap.cachedBytes()).isEqualTo(9 * MIB);
    kept.getFirst().close(); // the last one
    assertThat(heap.end()).contains(block(used));
    HeapCensus census = heap.count(List.of());
    assertThat(census.usedBytes + census.usedBlocks + census.requestedBytes).isZero();
    assertThat(take(own, 4 * MIB)).isNull();
    assertThat(take(own, 8 * MIB)).isNull();
    assertThat(heap.plan(request(8 * MIB))).isNull();
    assertThat(heap.carve(Long.MAX_VALUE, ANY_TIME)).isNull();
  }

  /** What its stream had, as the pool is closed, which others still have memory of. */
  @Test
  void cacheThatHasEnded_takesNothingOfOthers() {
    Buffer last = pool.allocate(MIB, other);
    ElasticCache ended = cache(last);
    last.close();
    heap.done(ended, heap.sequence());
    CountDownLatch goOn = new CountDownLatch(1);
    Buffer busy = pool.allocate(2 * MIB, home);
    var _ = home.addCallback(() -> Await.until(() -> goOn.getCount() == 0, PATIENCE_NANOS));
    busy.close();
    assertThat(heap.freeBytesOf(own)).isGreaterThanOrEqualTo(2 * MIB);
    other.waitFor(home);
    pool.close();
    try {
      assertThat(ended.hasEnded()).isTrue();
      assertThat(heap.freeBytesOf(own)).isGreaterThanOrEqualTo(2 * MIB);
      assertThat(own.isBefore(ended.stream.clock)).isTrue();
      assertThat(heap.take(ended, own, 2 * MIB, 2 * MIB, asking, null)).isNull();
    } finally {
      goOn.countDown();
    }
  }

  @Test
  void heapThatEndsWhileMemoryIsMapped_doesNotGiveIt() {
    MemoryHook ending =
        new MemoryHook() {
          @Override
          public void allocPreprocess(Growth growth) {
            assertThat(heap.end()).containsExactly(block(used));
          }
        };
    try (var _ = pool.addHook(ending)) {
      assertThatThrownBy(() -> pool.allocate(8 * MIB, home))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("is closed");
    }
    assertThat(heap.end()).isEmpty();
  }

  /** Else a stream would keep what it has of each pool, and a pool what it has of each stream. */
  @Test
  void lastBlockOfAStreamOrPoolThatIsClosed_endsTheCache() {
    Buffer last;
    try (CudaStream brief = stream()) {
      last = pool.allocate(MIB, brief);
    }
    assertThat(cache(last).isRetired()).isTrue();
    assertThat(cache(last).hasEnded()).isFalse();
    last.close();
    assertThat(cache(last).hasEnded()).isTrue();
    MemoryPoolCore core = ((ElasticDevicePool) own.of).pool;
    pool.close();
    assertThat(CachesOfStream.of(own.stream).known(core)).isSameAs(own);
    used.close();
    assertThat(CachesOfStream.of(own.stream).known(core)).isNull();
    assertThat(own.hasEnded()).isTrue();
  }
}
