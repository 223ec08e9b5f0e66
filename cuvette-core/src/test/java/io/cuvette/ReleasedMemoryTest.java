package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.stream.DriverStream;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToLongFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What a pool gives back when it is told to, and what it keeps for streams that are not done. */
@Timeout(60)
class ReleasedMemoryTest extends OrderingFixture {
  private static final long LARGE = 8L << 20;

  /** Memory of one stream that another one still uses. */
  private void leavePending(MemoryResource pool) {
    Buffer buffer = pool.allocate(LARGE, home);
    buffer.fill((byte) 1, other);
    busy.begin(other);
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(LARGE);
  }

  private void releases(MemoryResource pool, ToLongFunction<MemoryResource> way) {
    leavePending(pool);
    assertThat(way.applyAsLong(pool)).as("it is in use").isZero();
    busy.finish(other);
    assertThat(way.applyAsLong(pool)).isEqualTo(LARGE);
    assertThat(stats(pool).heldBytes()).isZero();
  }

  @Test
  void whatOthersAreDoneWith_goesBack_inWhateverWay() {
    MemoryPool pool = new MemoryPool(cuda);
    List<ToLongFunction<MemoryResource>> ways =
        List.of(
            _ -> pool.freeAllBlocks(),
            _ -> pool.freeAllBlocks(cuda.device(0)),
            _ -> pool.freeAllBlocks(home),
            _ -> pool.trim(0),
            _ -> pool.trim(Duration.ZERO));
    for (ToLongFunction<MemoryResource> way : ways) {
      releases(pool, way);
    }
    ElasticMemoryPool elastic = new ElasticMemoryPool(cuda);
    List<ToLongFunction<MemoryResource>> elasticWays =
        List.of(
            _ -> elastic.freeAllBlocks(), _ -> elastic.trim(0), _ -> elastic.trim(Duration.ZERO));
    for (ToLongFunction<MemoryResource> way : elasticWays) {
      releases(elastic, way);
    }
  }

  @Test
  void memoryThatAnIdleStreamFrees_isAnothersWithoutAQuestion() {
    ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
    Buffer buffer = pool.allocate(LARGE, home);
    buffer.close();
    calls.reset();
    try (Buffer taken = pool.allocate(LARGE, other)) {
      assertThat(taken.address()).isEqualTo(buffer.address());
      assertThat(calls.queries).hasValue(0);
      assertThat(calls.records).hasValue(0);
    }
  }

  /** There is nothing to release, whatever the driver would say. */
  @Test
  void memoryBelowTheThreshold_isFreedWithoutAQuestion() {
    ElasticMemoryPool pool =
        new ElasticMemoryPool(
            cuda, ElasticPoolOptions.DEFAULTS.withReleaseThresholdBytes(2 * LARGE));
    Buffer buffer = pool.allocate(LARGE, home);
    buffer.fill((byte) 1, home);
    busy.begin(home);
    calls.reset();
    buffer.close();
    assertThat(calls.queries).hasValue(0);
    assertThat(pool.stats().heldBytes()).isEqualTo(LARGE);
  }

  @Test
  void eventsThatLieReady_goBackToo() {
    MemoryPool pool = new MemoryPool(cuda);
    leavePending(pool);
    assertThat(stats(pool).pendingBytes()).isEqualTo(LARGE);
    busy.finish(other);
    assertThat(stats(pool).pendingBytes()).isZero();
    assertThat(cuda.device(0).core().spareEvents.count()).isPositive();
    assertThat(pool.freeAllBlocks()).isEqualTo(LARGE);
    assertThat(cuda.device(0).core().spareEvents.count()).isZero();
    assertThat(calls.live).hasValue(0);
  }

  /** More than are looked at in passing. */
  @Test
  void streamsThatEndedBusy_leaveNothing_onceTheirDeviceWasWaitedFor() throws InterruptedException {
    List<CudaStream> ended = new ArrayList<>();
    try (Buffer buffer = cuda.allocate(LARGE, home)) {
      for (int i = 0; i < 100; i++) {
        CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        ended.add(stream);
        buffer.fill((byte) 1, stream);
        busy.begin(stream);
        stream.close();
      }
      assertThat(calls.live).hasValue(ended.size());
      ended.forEach(busy::finish);
    }
    List<WeakReference<DriverStream>> gone = new ArrayList<>();
    ended.forEach(stream -> gone.add(new WeakReference<>(stream.state)));
    ended.clear();
    cuda.device(0).synchronize();
    assertThat(calls.live).hasValue(0);
    boolean areGone =
        Tries.isCollected(() -> {
          cuda.device(0).synchronize();
          return gone.stream().allMatch(each -> each.refersTo(null));
        });
    assertThat(areGone).isTrue();
  }

  /** Nobody can wait for it then. */
  @ParameterizedTest
  @EnumSource
  void memoryOfABusyStreamThatIsCaptured_isNotGivenToAnother(Kind kind) {
    MemoryResource pool = pool(kind);
    MemoryLimit limit = MemoryLimit.ofBytes(2 * LARGE);
    if (pool instanceof MemoryPool caching) {
      caching.setLimit(limit);
    } else {
      ((ElasticMemoryPool) pool).setLimit(limit);
    }
    pool.allocate(2 * LARGE, home).close();
    Buffer used = pool.allocate(LARGE, home); // so that the chunk cannot be released
    Buffer buffer = pool.allocate(LARGE, home);
    buffer.fill((byte) 1, home);
    busy.begin(home);
    buffer.close();
    try (CudaGraph graph =
        home.capture(() ->
            assertThatThrownBy(() -> pool.allocate(LARGE, other))
                .isInstanceOf(OutOfDeviceMemoryException.class))) {
      assertThat(graph.isClosed()).isFalse();
    }
    busy.finish(home);
    pool.allocate(LARGE, other).close();
    used.close();
  }
}
