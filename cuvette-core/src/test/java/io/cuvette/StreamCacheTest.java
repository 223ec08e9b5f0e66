package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.index.BlockArena;
import io.cuvette.internal.pool.Chunks;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.Fit;
import io.cuvette.internal.streamcache.PoolCensus;
import io.cuvette.internal.streamcache.Request;
import io.cuvette.internal.streamcache.StreamCache;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What one stream's cache answers, whatever threads had to leave beside it. */
@Timeout(60)
class StreamCacheTest extends OrderingFixture {
  private static final long MIB = 1 << 20;
  private static final long WHOLE = 16 * MIB;

  private final MemoryPool pool = new MemoryPool(cuda);

  /** Reachable: the collector takes back what is not. */
  private final List<Buffer> buffers = new ArrayList<>();

  private Buffer take(long bytes, CudaStream stream) {
    buffers.add(pool.allocate(bytes, stream));
    return buffers.getLast();
  }

  private static CachedBlock block(Buffer buffer) {
    return (CachedBlock) ((BufferBase) buffer).block();
  }

  private static StreamCache cacheOf(Buffer buffer) {
    return (StreamCache) block(buffer).arena;
  }

  /** Has two threads meet in the cache of a stream, which has a front from now on. */
  private void meet(CudaStream stream) {
    boolean met = false;
    while (!met) {
      Buffer any = take(512, stream);
      StreamCache cache = cacheOf(any);
      met = block(any).stripe != null;
      long _ = cache.pause();
      Thread thread = Thread.ofPlatform().start(() -> pool.allocate(512, stream).close());
      Await.until(() -> thread.getState() == Thread.State.TIMED_WAITING || !thread.isAlive());
      cache.resume();
      Await.until(() -> !thread.isAlive());
      any.close();
    }
    assertThat(pool.freeAllBlocks()).isPositive();
  }

  /** Closes a buffer when another thread has what its block goes to. */
  private static void leave(Buffer buffer) {
    StreamCache cache = cacheOf(buffer);
    if (block(buffer).stripe == null) {
      long _ = cache.pause();
      buffer.close();
      cache.resume();
    } else {
      Thread thread = Thread.ofPlatform().start(buffer::close);
      Await.until(() -> !thread.isAlive());
    }
    assertThat(buffer.isClosed()).isTrue();
  }

  private enum Question {
    USED,
    FREE,
    FIT,
    COUNT,
    TAKE,
    RELEASE,
    RELEASE_IDLE,
    AWAIT,
    STALE_FIT
  }

  private static List<Long> numbers(PoolCensus census) {
    return List.of(
        census.usedBytes,
        census.freeBytes,
        census.requestedBytes,
        census.releasableBytes,
        census.graphBytes,
        census.largestFreeBytes,
        (long) census.usedBlocks,
        (long) census.freeBlocks,
        (long) census.chunks,
        census.peakUsedBytes,
        census.allocations);
  }

  private static PoolCensus count(StreamCache cache) {
    PoolCensus census = new PoolCensus();
    cache.count(census);
    return census;
  }

  private Request request(long bytes, Buffer of, CudaStream stream) {
    return new Request(block(of).arena, bytes, bytes, stream.core(), new Refusals());
  }

  /** One chunk: the block to be left, one beside it that stays, and the rest. */
  private void ask(Question question) {
    take(WHOLE, home).close();
    Buffer left = take(4 * MIB - 100, home);
    Buffer beside = take(MIB - 10, home);
    StreamCache cache = cacheOf(left);
    long before = count(cache).allocations;
    Fit stale = Objects.requireNonNull(cache.fit(11 * MIB));
    switch (question) {
      case USED -> {
        leave(left);
        assertThat(cache.usedBytes()).isEqualTo(MIB);
      }
      case FREE -> {
        leave(left);
        leave(beside);
        assertThat(cache.hasFree(WHOLE)).isTrue();
        assertThat(cache.hasFree(WHOLE + 512)).isFalse();
      }
      case FIT -> {
        leave(left);
        assertThat(Objects.requireNonNull(cache.fit(3 * MIB)).bytes()).isEqualTo(4 * MIB);
      }
      case COUNT -> {
        leave(left);
        assertThat(numbers(count(cache)))
            .containsExactly(MIB, 15 * MIB, MIB - 10, 0L, 0L, 11 * MIB, 1L, 2L, 1L, WHOLE, before);
      }
      case TAKE -> {
        long address = left.address();
        leave(left);
        assertThat(take(4 * MIB, home).address()).isEqualTo(address);
      }
      case RELEASE -> {
        leave(left);
        leave(beside);
        assertThat(pool.freeAllBlocks()).isEqualTo(WHOLE);
      }
      case RELEASE_IDLE -> {
        leave(left);
        leave(beside);
        long first = pool.trim(Duration.ZERO); // it is free as of now
        assertThat(first + pool.trim(Duration.ZERO)).isEqualTo(WHOLE);
      }
      case AWAIT -> {
        leave(left);
        cache.awaitFrees();
        assertThat(Objects.requireNonNull(cache.fit(MIB)).isDone()).isTrue();
      }
      case STALE_FIT -> {
        leave(left);
        assertThat(cache.lendTo(request(11 * MIB, left, other), stale)).isNull();
        assertThat(cache.takeInHand(11 * MIB, stale)).isEqualTo(BlockArena.NONE);
      }
    }
    buffers.forEach(Buffer::close);
  }

  /** It could not be given back then: whoever looks next finds it all the same. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whatWasLeft_isThereForEachQuestion(boolean isMet) {
    for (Question question : Question.values()) {
      if (isMet) {
        meet(home);
      }
      ask(question);
      pool.assertConsistent();
      pool.freeAllBlocks();
      assertThat(pool.stats().heldBytes()).as(question.name()).isZero();
    }
  }

  /** What lies ready for threads counts as free for a block of any size. */
  @ParameterizedTest
  @ValueSource(longs = {4, 8, 16})
  void whatIsReadyInTheFront_servesLargerBlocks_beforeThePoolGrows(long mebibytes) {
    meet(home);
    take(WHOLE, home).close();
    List<Buffer> parts = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      parts.add(take(4 * MIB, home));
      assertThat(block(parts.getLast()).stripe).isNotNull();
    }
    long growths = pool.stats().growths();
    parts.forEach(Buffer::close);
    long first = parts.getFirst().address();
    assertThat(take(mebibytes * MIB, home).address())
        .isBetween(first, first + WHOLE - mebibytes * MIB);
    assertThat(pool.stats().growths()).isEqualTo(growths);
    assertThat(pool.stats().heldBytes()).isEqualTo(WHOLE);
  }

  @Test
  void chunksOfAnyNumber_areReleasedOnceTheyAreFree() {
    int count = 70;
    for (int i = 0; i < count; i++) {
      Buffer _ = take(MIB, home);
    }
    assertThat(pool.stats().chunks()).isEqualTo(count);
    for (int i = 1; i < count; i += 2) {
      buffers.get(i).close();
    }
    assertThat(pool.stats().chunks()).isEqualTo(count);
    assertThat(pool.stats().releasableBytes()).isEqualTo(count / 2 * MIB);
    assertThat(pool.trim(Duration.ZERO)).isEqualTo(count / 2 * MIB);
    assertThat(pool.stats().chunks()).isEqualTo(count / 2);
    assertThat(pool.stats().requestedBytes()).isEqualTo(count / 2 * MIB);
    assertThat(pool.stats().freeBytes()).isZero();
  }

  /** A chunk is taken whole only as it was found. */
  @Test
  void fit_isGoodUntilSomethingIsFreed() {
    Buffer one = take(MIB, home);
    Buffer two = take(2 * MIB, home);
    StreamCache cache = cacheOf(one);
    two.close();
    Fit stale = Objects.requireNonNull(cache.fit(2 * MIB));
    assertThat(stale.bytes()).isEqualTo(2 * MIB);
    one.close();
    assertThat(cache.takeInHand(2 * MIB, stale)).isEqualTo(BlockArena.NONE);
    assertThat(cache.lendTo(request(2 * MIB, two, other), stale)).isNull();
    assertThat(cache.usedBytes()).isZero();
    Fit now = Objects.requireNonNull(cache.fit(2 * MIB));
    assertThat(cache.takeInHand(MIB + 512, now)).as("it is not all").isEqualTo(BlockArena.NONE);
    int whole = cache.takeInHand(2 * MIB, now);
    assertThat(whole).isNotEqualTo(BlockArena.NONE);
    assertThat(cache.usedBytes()).as("on its way").isZero();
    assertThat(count(cache).freeBytes).isEqualTo(MIB);
    int chunk = cache.chunk(whole);
    cache.forget(whole);
    assertThat(count(cache).chunks).isOne();
    assertThat(cache.removeAnyWhole()).isNotIn(chunk, Chunks.NONE);
    assertThat(cache.removeAnyWhole()).isEqualTo(Chunks.NONE);
    assertThat(numbers(count(cache)).subList(0, 9)).containsOnly(0L);
  }

  /** Over all streams, some of which have a front. */
  @Test
  void numbers_areTheSumsOverAllStreams() {
    meet(other);
    List<CudaStream> streams = List.of(home, other, stream());
    long allocations = pool.stats().allocations();
    streams.forEach(each -> take(WHOLE, each));
    buffers.forEach(Buffer::close);
    long used = 0;
    long requested = 0;
    for (int i = 0; i < 12; i++) {
      long bytes = 100_001L * (i + 1);
      Buffer _ = take(bytes, streams.get(i % 3));
      used += BlockArena.roundUp(bytes);
      requested += bytes;
    }
    PoolStats stats = pool.stats();
    assertThat(stats.allocations()).isEqualTo(allocations + 15);
    assertThat(stats.usedBlocks()).isEqualTo(12);
    assertThat(stats.usedBytes()).isEqualTo(used);
    assertThat(stats.requestedBytes()).isEqualTo(requested);
    assertThat(stats.chunks()).isEqualTo(3);
    assertThat(stats.heldBytes()).isEqualTo(3 * WHOLE);
    assertThat(stats.freeBytes()).isEqualTo(3 * WHOLE - used);
    assertThat(stats.releasableBytes()).isZero();
    buffers.forEach(Buffer::close);
    assertThat(pool.stats().usedBlocks()).isZero();
    assertThat(pool.stats().requestedBytes()).isZero();
    assertThat(pool.stats().releasableBytes()).isEqualTo(3 * WHOLE);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void bufferThatTheCollectorFound_isForgotten_untilItIsTakenBack(boolean isMet) {
    if (isMet) {
      meet(home);
    }
    take(WHOLE, home).close();
    Buffer used = take(MIB, home);
    CachedBlock forgotten = block(take(MIB, home));
    StreamCache cache = cacheOf(used);
    assertThat(forgotten.stripe != null).isEqualTo(isMet);
    assertThat(cache.hasForgotten()).isFalse();
    forgotten.clear();
    assertThat(cache.hasForgotten()).isTrue();
    assertThat(forgotten.reclaim()).isTrue();
    assertThat(cache.hasForgotten()).isFalse();
    CachedBlock large = block(take(5 * MIB, home));
    assertThat(large.stripe).as("too large to be kept in front").isNull();
    large.clear();
    assertThat(cache.hasForgotten()).isTrue();
    assertThat(large.reclaim()).isTrue();
    assertThat(cache.hasForgotten()).isFalse();
    assertThat(cache.usedBytes()).isEqualTo(MIB);
  }

  /** Who has one of them does not keep all that were left after it. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void blocksThatWereLeft_doNotKnowEachOtherOnceTheyAreBack(boolean isMet) {
    if (isMet) {
      meet(home);
    }
    take(WHOLE, home).close();
    List<Buffer> left = List.of(take(MIB, home), take(MIB, home), take(MIB, home));
    StreamCache cache = cacheOf(left.getFirst());
    left.forEach(StreamCacheTest::leave);
    assertThat(left).anyMatch(each -> block(each).next != null);
    assertThat(cache.usedBytes()).isZero();
    assertThat(left).allMatch(each -> block(each).next == null);
  }

  /** Whoever tears the pool down frees its chunks. */
  @Test
  void cacheThatIsOver_givesNoChunk() {
    Buffer free = take(WHOLE, home);
    Request request = request(WHOLE, free, home);
    StreamCache cache = cacheOf(free);
    free.close();
    Fit fit = Objects.requireNonNull(cache.fit(WHOLE));
    cuda.close();
    assertThat(cache.removeIdle(0, System.nanoTime())).isEqualTo(Chunks.NONE);
    assertThat(cache.removeAnyWhole()).isEqualTo(Chunks.NONE);
    assertThat(cache.takeInHand(WHOLE, fit)).isEqualTo(BlockArena.NONE);
    assertThat(cache.adopt(1L << 40, 1, WHOLE, request)).isNull();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void blocks_endWithTheCuda_andWhatWasCountedStays(boolean isMet) {
    if (isMet) {
      meet(home);
    }
    take(WHOLE, home).close();
    List<CachedBlock> blocks = new ArrayList<>();
    for (CudaStream each : List.of(home, other)) {
      for (long bytes : new long[] {512, MIB, 6 * MIB}) {
        blocks.add(block(take(bytes, each)));
      }
    }
    long allocations = pool.stats().allocations();
    long peak = pool.stats().peakUsedBytes();
    cuda.close();
    assertThat(blocks).allMatch(CachedBlock::ended);
    assertThat(buffers).allMatch(Buffer::isClosed);
    buffers.forEach(Buffer::close);
    assertThat(pool.stats().usedBytes()).isZero();
    assertThat(pool.stats().heldBytes()).isZero();
    assertThat(pool.stats().allocations()).isEqualTo(allocations);
    assertThat(pool.stats().peakUsedBytes()).isEqualTo(peak);
  }

  /** A cache has blocks in use by its own stream, and by others that it has lent them to. */
  @ParameterizedTest
  @EnumSource(Kind.class)
  void closedBlock_waitsForEachStreamThatUsedIt_butTheOneItGoesBackTo(Kind kind) {
    MemoryResource resource = pool(kind);
    CudaStream third = stream();
    for (CudaStream of : List.of(home, other)) {
      for (int users = 0; users < 8; users++) {
        for (int busyOnes = 0; busyOnes < 8; busyOnes++) {
          check(resource, List.of(home, other, third), of, users, busyOnes);
        }
      }
    }
  }

  private void check(
      MemoryResource resource, List<CudaStream> all, CudaStream of, int users, int busyOnes) {
    resource.allocate(WHOLE, home).close();
    if (resource instanceof MemoryPool caching) {
      caching.setLimit(MemoryLimit.ofBytes(WHOLE)); // others take of the same chunk
    }
    Buffer buffer = resource.allocate(3 * MIB, of);
    boolean waits = false;
    for (int i = 0; i < all.size(); i++) {
      CudaStream each = all.get(i);
      boolean uses = (users & 1 << i) != 0;
      if (uses) {
        ((BufferBase) buffer).block().use(each.state);
      }
      if ((busyOnes & 1 << i) != 0) {
        busy.begin(each);
        boolean isItsOwn = resource instanceof MemoryPool ? i == 0 : each.equals(of);
        waits |= !isItsOwn && (uses || each.equals(of));
      }
    }
    buffer.close();
    assertThat(stats(resource).usedBytes()).isZero();
    assertThat(stats(resource).pendingBytes())
        .as("of %s, used by %d, of which %d are busy", of, users, busyOnes)
        .isEqualTo(waits ? 3 * MIB : 0);
    all.forEach(busy::finish);
    assertThat(stats(resource).pendingBytes()).isZero();
  }
}
