package io.cuvette.internal.elastic;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.EngineMemory;
import io.cuvette.StreamOptions;
import io.cuvette.internal.pool.Budget;
import io.cuvette.internal.pool.Cap;
import io.cuvette.internal.space.AgeList;
import io.cuvette.internal.space.HeapCensus;
import io.cuvette.internal.streamcache.CachedBlock;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What lies in front of a heap for several streams is counted until the last of them has ended. */
class FreedBlocksTest {
  private static final int STREAMS = 3;
  private static final long SECOND = 1_000_000_000;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
  private final List<ElasticCache> caches = new ArrayList<>();
  private final List<Buffer> buffers = new ArrayList<>();
  private final ElasticBooks books = new ElasticBooks();
  private final List<Given> given = new ArrayList<>();
  private final Cap cap = new Cap();
  private long now;
  private final FreedBlocks freed =
      new FreedBlocks(
          (block, time) -> given.add(new Given(block, time)),
          () -> now,
          books,
          cap,
          new Budget(Long.MAX_VALUE));

  /** What its space has, and the time since which it is free. */
  private record Given(CachedBlock block, long time) {}

  /** The first stream has one block from its front, the next one two, and so on. */
  @BeforeEach
  void begin() {
    for (int i = 0; i < STREAMS; i++) {
      CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      ElasticCache cache;
      try (Buffer one = pool.allocate(512, stream)) {
        cache = (ElasticCache) ((CachedBlock) EngineMemory.of(one).block()).arena;
      }
      caches.add(cache);
      freed.addFront(cache, cache.newFront());
      for (int block = 0; block <= i; block++) {
        buffers.add(pool.allocate(100, stream));
      }
    }
  }

  @AfterEach
  void close() {
    cuda.close();
  }

  private static CachedBlock block(Buffer buffer) {
    return (CachedBlock) EngineMemory.of(buffer).block();
  }

  private HeapCensus count() {
    HeapCensus census = new HeapCensus();
    freed.count(census);
    return census;
  }

  @Test
  void blocksOfAllFronts_areCounted() {
    assertThat(buffers).allMatch(buffer -> block(buffer).stripe != null);
    books.take(7, 512);
    HeapCensus census = count();
    assertThat(census.allocations).isEqualTo(1 + 6);
    assertThat(census.requestedBytes).isEqualTo(7 + 600);
    assertThat(census.usedBlocks).as("the heap has each slab as one").isEqualTo(1 + 6 - STREAMS);
    assertThat(census.usedBytes).isEqualTo(512);
    assertThat(census.peakUsedBytes).isEqualTo(512);
  }

  @Test
  void secondFront_isNone() {
    ElasticCache cache = caches.getFirst();
    assertThat(cache.newFront()).isNull();
    var before = cache.front;
    caches.get(1).front = null;
    freed.addFront(cache, caches.get(1).newFront());
    assertThat(cache.front).isSameAs(before);
  }

  /** In whichever order the streams end. */
  @Test
  void frontOfAStreamThatEnded_isOnceCounted_andTheOthersStay() {
    for (int first = 0; first < STREAMS; first++) {
      List<ElasticCache> left = new ArrayList<>(caches);
      long all = freed.allocations();
      while (!left.isEmpty()) {
        ElasticCache ended = left.remove(first % left.size());
        long own = freed.removeFront(ended);
        assertThat(own).isEqualTo(1 + caches.indexOf(ended));
        assertThat(ended.front).isNull();
        assertThat(freed.removeFront(ended)).as("has none").isZero();
        all -= own;
        assertThat(freed.allocations()).isEqualTo(all);
      }
      assertThat(all).isZero();
      buffers.clear();
      caches.clear();
      begin();
    }
  }

  @Test
  void forgottenBlockOfAFront_isSeen() {
    for (ElasticCache cache : caches) {
      assertThat(cache.hasForgottenInFront()).isFalse();
    }
    block(buffers.getLast()).clear(); // as the collector does
    assertThat(caches.getFirst().hasForgottenInFront()).isFalse();
    assertThat(caches.getLast().hasForgottenInFront()).isTrue();
  }

  @Test
  void blocksInUse_areHandedOver_atTheEndOfThePool() {
    List<CachedBlock> ended = new ArrayList<>();
    long allocations = freed.allocations();
    assertThat(allocations).isEqualTo(6);
    freed.endFronts(ended);
    assertThat(freed.allocations()).as("they count on").isEqualTo(allocations);
    assertThat(ended)
        .containsExactlyInAnyOrderElementsOf(buffers.stream().map(FreedBlocksTest::block).toList());
  }

  @Test
  void blockInHand_isForItsStreamAndSize_untilTheNextOne() {
    CachedBlock first = block(buffers.getFirst());
    CachedBlock last = block(buffers.getLast());
    assertThat(freed.inHand(caches.getFirst(), 512)).isNull();
    freed.hold(first);
    assertThat(freed.inHand(caches.getFirst(), 512)).isSameAs(first);
    assertThat(freed.inHand(caches.getFirst(), 1024)).isNull();
    assertThat(freed.inHand(caches.getLast(), 512)).isNull();
    freed.hold(last);
    assertThat(freed.inHand(caches.getFirst(), 512)).isNull();
    assertThat(freed.inHand(caches.getLast(), 512)).isSameAs(last);
    assertThat(freed.takeOutOfHand()).isSameAs(last);
    assertThat(freed.inHand(caches.getLast(), 512)).isNull();
    assertThat(freed.takeOutOfHand()).isNull();
  }

  /** What threads left was freed at some time that nobody has noted. */
  @Test
  void blocks_areGivenWithTheTimeAtWhichTheyWereFreed() {
    List<CachedBlock> blocks = buffers.stream().map(FreedBlocksTest::block).toList();
    for (int i = 0; i < 3; i++) {
      now += SECOND;
      freed.hold(blocks.get(i));
    }
    assertThat(given)
        .containsExactly(new Given(blocks.get(0), SECOND), new Given(blocks.get(1), 2 * SECOND));
    freed.leave(blocks.get(3));
    freed.leave(blocks.get(4));
    now += SECOND;
    freed.giveNow();
    assertThat(given.subList(2, 5))
        .containsExactly(
            new Given(blocks.get(2), 3 * SECOND),
            new Given(blocks.get(4), AgeList.NOW),
            new Given(blocks.get(3), AgeList.NOW));
    freed.giveNow();
    assertThat(given).hasSize(5);
  }

  /** The slab that a front took has room for more. */
  private static boolean hasAny(ElasticCache cache) {
    return Objects.requireNonNull(cache.front).releaseAll();
  }

  @Test
  void whatFrontsHave_isGivenForABlock_unlessItIsLeftApart() {
    CachedBlock inHand = block(buffers.getFirst());
    freed.hold(inHand);
    cap.gathered(0); // twice in little work
    assertThat(freed.leavesApart(512)).isTrue();
    freed.giveFor(512);
    assertThat(given).containsExactly(new Given(inHand, now));
    assertThat(caches).allMatch(FreedBlocksTest::hasAny);
    cap.refused();
    buffers.forEach(Buffer::close);
    freed.hold(inHand);
    freed.giveFor(512);
    assertThat(given).hasSize(2);
    assertThat(caches).noneMatch(FreedBlocksTest::hasAny);
  }

  @Test
  void frontThatHasNothing_isNotRecalled() {
    for (ElasticCache cache : caches) {
      assertThat(freed.recall(cache)).as("the rest of a slab").isTrue();
      assertThat(freed.recall(cache)).isFalse();
      assertThat(freed.recall(cache, 512)).isFalse();
      long _ = freed.removeFront(cache);
      assertThat(freed.recall(cache)).isFalse();
      assertThat(freed.recall(cache, 512)).isFalse();
    }
    assertThat(freed.leavesApart(512)).as("nothing was brought together").isFalse();
  }

  /** All of it goes only for a block that nothing there fits, which is noted. */
  @Test
  void front_givesABlockThatFits_elseAll_unlessItIsLeftApart() {
    assertThat(freed.recall(caches.get(0), 512)).isTrue();
    assertThat(freed.leavesApart(512)).isFalse();
    assertThat(freed.recall(caches.get(1), Spaces.SMALL_BYTES)).isTrue();
    assertThat(hasAny(caches.get(1))).isFalse();
    assertThat(freed.leavesApart(512)).isTrue();
    assertThat(freed.recall(caches.get(2), Spaces.SMALL_BYTES)).isFalse();
    assertThat(hasAny(caches.get(2))).isTrue();
  }
}
