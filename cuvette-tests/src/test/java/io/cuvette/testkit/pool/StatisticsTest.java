package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.MIB;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PageStats;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedPoolStats;
import io.cuvette.PoolOptions;
import io.cuvette.PoolStats;
import io.cuvette.testkit.CudaTest;

class StatisticsTest {

  @CudaTest
  void unusedPool_hasZeroes(MemoryPool pool) {
    PoolStats stats = pool.stats();
    PoolStats zeroes =
        new PoolStats(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, Long.MAX_VALUE);
    assertThat(stats).isEqualTo(zeroes);
    assertThat(stats.fragmentation()).isZero();
  }

  @CudaTest
  void everyNumber_isExact(MemoryPool pool) {
    pool.allocate(8 * UNIT).close();
    try (Buffer a = pool.allocate(100);
        Buffer b = pool.allocate(3 * UNIT + 1)) {
      PoolStats stats = pool.stats();
      assertThat(a.blockBytes() + b.blockBytes()).isEqualTo(5 * UNIT);
      assertThat(stats)
          .isEqualTo(
              new PoolStats(
                  5 * UNIT, // used
                  3 * UNIT, // free
                  8 * UNIT, // held
                  100 + 3 * UNIT + 1, // requested
                  0, // pending
                  0, // of graphs
                  0, // releasable: the chunk is split
                  3 * UNIT, // largest free
                  2,
                  1,
                  1,
                  8 * UNIT, // peak used
                  8 * UNIT, // peak held
                  3, // allocations
                  1, // growths
                  0,
                  0,
                  Long.MAX_VALUE));
    }
    assertThat(pool.stats().releasableBytes()).isEqualTo(8 * UNIT);
    assertThat(pool.stats().requestedBytes()).isZero();
  }

  @CudaTest
  void numbersOfAllStreams_areAddedUp(Cuda cuda, MemoryPool pool, CudaStream stream) {
    pool.allocate(4 * UNIT, cuda.device(0).nullStream()).close();
    try (Buffer _ = pool.allocate(2 * UNIT, stream)) {
      assertThat(pool.usedBytes()).isEqualTo(2 * UNIT);
      assertThat(pool.freeBytes()).isEqualTo(4 * UNIT);
      assertThat(pool.totalBytes()).isEqualTo(6 * UNIT);
    }
  }

  @CudaTest
  void peaks_areTheHighestSoFar_andStartAnewFromNow(Cuda cuda, MemoryPool pool) {
    Buffer a = pool.allocate(4 * UNIT);
    Buffer b = pool.allocate(4 * UNIT);
    a.close();
    b.close();
    try (Buffer _ = pool.allocate(UNIT)) {
      assertThat(pool.stats().peakUsedBytes()).isEqualTo(8 * UNIT);
      assertThat(pool.stats().peakHeldBytes()).isEqualTo(8 * UNIT);
      pool.resetPeaks(cuda.device(0));
      assertThat(pool.stats().peakUsedBytes()).isEqualTo(UNIT);
      assertThat(pool.stats().peakHeldBytes()).isEqualTo(8 * UNIT);
    }
    pool.freeAllBlocks();
    pool.resetPeaks(cuda.device(0));
    assertThat(pool.stats().peakUsedBytes()).isZero();
    assertThat(pool.stats().peakHeldBytes()).isZero();
  }

  /** It was in use once at a time, so the pool never had more in use than it held. */
  @CudaTest
  void memoryThatAnotherStreamTakes_isInThePeakOnce(
      MemoryPool pool, CudaStream one, CudaStream other) {
    pool.allocate(2 * MIB, one).close();
    one.synchronize();
    try (Buffer _ = pool.allocate(2 * MIB, other)) {
      assertThat(pool.stats().crossStreamReuses()).isEqualTo(1);
      assertThat(pool.stats().usedBlocks()).isEqualTo(1);
      assertThat(pool.stats().chunks()).isEqualTo(1);
      assertThat(pool.stats().peakHeldBytes()).isEqualTo(2 * MIB);
      assertThat(pool.stats().peakUsedBytes()).isEqualTo(2 * MIB);
    }
  }

  @CudaTest
  void peaksOfClosedStreams_startAnewToo(Cuda cuda, MemoryPool pool) {
    try (CudaStream stream = cuda.device(0).createStream()) {
      pool.allocate(UNIT, stream).close();
    }
    pool.freeAllBlocks();
    pool.allocate(UNIT).close();
    assertThat(pool.stats().peakUsedBytes()).isEqualTo(UNIT);
    pool.resetPeaks(cuda.device(0));
    assertThat(pool.stats().peakUsedBytes()).isZero();
  }

  @CudaTest
  void peaksOfClosedStreams_areRemembered(Cuda cuda, MemoryPool pool) {
    try (CudaStream stream = cuda.device(0).createStream()) {
      pool.allocate(4 * UNIT, stream).close();
    }
    pool.freeAllBlocks();
    assertThat(pool.stats().peakUsedBytes()).isEqualTo(4 * UNIT);
    assertThat(pool.stats().allocations()).isEqualTo(1);
  }

  @CudaTest
  void failedAllocations_areCounted_andPeaksIgnoreThem(MemoryPool pool) {
    pool.setLimit(MemoryLimit.ofBytes(UNIT));
    for (int i = 1; i <= 3; i++) {
      assertThatThrownBy(() -> pool.allocate(2 * UNIT))
          .isInstanceOf(OutOfDeviceMemoryException.class);
      assertThat(pool.stats().outOfMemories()).isEqualTo(i);
    }
    assertThat(pool.stats().peakHeldBytes()).isZero();
    assertThat(pool.stats().allocations()).isZero();
  }

  @CudaTest
  void fragmentation_isWhatTheLargestRequestCannotUse(MemoryPool pool) {
    pool.allocate(4 * UNIT).close();
    assertThat(pool.stats().fragmentation()).isZero();
    Buffer a = pool.allocate(UNIT);
    Buffer b = pool.allocate(2 * UNIT);
    a.close();
    assertThat(pool.stats().fragmentation()).isEqualTo(0.5);
    b.close();
    assertThat(pool.stats().fragmentation()).isZero();
  }

  @CudaTest
  void text_saysTheNumbersWithUnits(MemoryPool pool) {
    pool.allocate(MIB).close();
    assertThat(pool.stats().toString()).contains("held 1.00 MiB", "used 0 B", "limit none");
  }

  /** The guide's walk: 400 bytes take a block of 512, which stays cached until it is released. */
  @CudaTest
  void memoryGuide_fromFourHundredBytesToZero(Cuda cuda) {
    MemoryPool pool = cuda.defaultMemoryPool();
    assertThat(pool.usedBytes()).isZero();
    assertThat(pool.totalBytes()).isZero();
    Buffer a = cuda.allocate(400);
    assertThat(pool.usedBytes()).isEqualTo(512);
    assertThat(pool.totalBytes()).isEqualTo(512);
    a.close();
    assertThat(pool.usedBytes()).isZero();
    assertThat(pool.totalBytes()).isEqualTo(512);
    assertThat(pool.freeBlocks()).isEqualTo(1);
    assertThat(pool.freeAllBlocks()).isEqualTo(512);
    assertThat(pool.totalBytes()).isZero();
  }

  /** The shortcuts of all pools, with blocks in use and others cached. */
  @CudaTest
  void shortcuts_areThoseOfTheStatistics(Cuda cuda, MemoryPool pool) {
    try (ElasticMemoryPool elastic = new ElasticMemoryPool(cuda, ElasticPoolOptions.DEFAULTS);
        PinnedMemoryPool pinned = new PinnedMemoryPool(cuda);
        Buffer one = pool.allocate(3 * UNIT);
        Buffer two = elastic.allocate(5 * UNIT);
        Buffer three = pinned.allocate(7 * UNIT);
        Buffer more = elastic.allocate(4 * MIB)) {
      pool.allocate(UNIT).close();
      elastic.allocate(UNIT).close();
      pinned.allocate(UNIT).close();
      cuda.currentStream().synchronize();
      PoolStats caching = pool.stats();
      assertThat(pool.usedBytes()).isEqualTo(caching.usedBytes()).isEqualTo(one.blockBytes());
      assertThat(pool.freeBytes()).isEqualTo(caching.freeBytes()).isPositive();
      assertThat(pool.totalBytes()).isEqualTo(caching.heldBytes());
      assertThat(pool.freeBlocks()).isEqualTo(caching.freeBlocks()).isPositive();
      PoolStats growing = elastic.stats();
      assertThat(elastic.usedBytes())
          .isEqualTo(growing.usedBytes())
          .isEqualTo(two.blockBytes() + more.blockBytes());
      assertThat(elastic.freeBytes()).isEqualTo(growing.freeBytes()).isPositive();
      assertThat(elastic.totalBytes()).isEqualTo(growing.heldBytes());
      assertThat(elastic.freeBlocks()).isEqualTo(growing.freeBlocks()).isPositive();
      PageStats pages = elastic.pages();
      assertThat(pages).isEqualTo(elastic.pages(cuda.device(0)));
      assertThat(pages.heldPages() * pages.pageBytes()).isEqualTo(growing.heldBytes());
      assertThat(pages.cachedPages() * pages.pageBytes()).isEqualTo(growing.releasableBytes());
      PinnedPoolStats locked = pinned.stats();
      assertThat(pinned.usedBytes()).isEqualTo(locked.usedBytes()).isEqualTo(three.blockBytes());
      assertThat(pinned.freeBytes()).isEqualTo(locked.freeBytes()).isPositive();
      assertThat(pinned.totalBytes()).isEqualTo(locked.heldBytes());
      assertThat(pinned.freeBlocks()).isEqualTo(locked.freeBlocks()).isPositive();
    }
  }

  @CudaTest
  void options_areThoseThatAPoolWasMadeWith(Cuda cuda) {
    PoolOptions options = PoolOptions.DEFAULTS.withReleaseThresholdBytes(5 * MIB);
    ElasticPoolOptions elastic = ElasticPoolOptions.DEFAULTS.withReleaseThresholdBytes(7 * MIB);
    try (MemoryPool pool = new MemoryPool(cuda, options);
        ElasticMemoryPool growing = new ElasticMemoryPool(cuda, elastic)) {
      assertThat(pool.options()).isEqualTo(options);
      assertThat(growing.options()).isEqualTo(elastic);
    }
  }
}
