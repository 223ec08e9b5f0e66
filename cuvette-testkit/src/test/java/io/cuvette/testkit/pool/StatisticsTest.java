package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolStats;
import io.cuvette.testkit.CudaTest;

class StatisticsTest {
  private static final long U = 512;

  @CudaTest
  void unusedPool_hasZeroes(MemoryPool pool) {
    PoolStats stats = pool.stats();
    PoolStats zeroes =
        new PoolStats(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, Long.MAX_VALUE);
    assertThat(stats).isEqualTo(zeroes);
    assertThat(stats.fragmentation()).isZero();
  }

  @CudaTest
  void everyNumber_isExact(MemoryPool pool) {
    pool.allocate(8 * U).close();
    try (Buffer a = pool.allocate(100);
        Buffer b = pool.allocate(3 * U + 1)) {
      PoolStats stats = pool.stats();
      assertThat(a.blockBytes() + b.blockBytes()).isEqualTo(5 * U);
      assertThat(stats)
          .isEqualTo(
              new PoolStats(
                  5 * U, // used
                  3 * U, // free
                  8 * U, // held
                  100 + 3 * U + 1, // requested
                  0, // pending
                  0, // releasable: the chunk is split
                  3 * U, // largest free
                  2,
                  1,
                  1,
                  8 * U, // peak used
                  8 * U, // peak held
                  3, // allocations
                  1, // growths
                  0,
                  0,
                  Long.MAX_VALUE));
    }
    assertThat(pool.stats().releasableBytes()).isEqualTo(8 * U);
    assertThat(pool.stats().requestedBytes()).isZero();
  }

  @CudaTest
  void numbersOfAllStreams_areAddedUp(Cuda cuda, MemoryPool pool, CudaStream stream) {
    pool.allocate(4 * U, cuda.device(0).nullStream()).close();
    try (Buffer _ = pool.allocate(2 * U, stream)) {
      assertThat(pool.usedBytes()).isEqualTo(2 * U);
      assertThat(pool.freeBytes()).isEqualTo(4 * U);
      assertThat(pool.totalBytes()).isEqualTo(6 * U);
    }
  }

  @CudaTest
  void peaks_areTheHighestSoFar_andStartAnewFromNow(Cuda cuda, MemoryPool pool) {
    Buffer a = pool.allocate(4 * U);
    Buffer b = pool.allocate(4 * U);
    a.close();
    b.close();
    try (Buffer _ = pool.allocate(U)) {
      assertThat(pool.stats().peakUsedBytes()).isEqualTo(8 * U);
      assertThat(pool.stats().peakHeldBytes()).isEqualTo(8 * U);
      pool.resetPeaks(cuda.device(0));
      assertThat(pool.stats().peakUsedBytes()).isEqualTo(U);
      assertThat(pool.stats().peakHeldBytes()).isEqualTo(8 * U);
    }
    pool.freeAllBlocks();
    pool.resetPeaks(cuda.device(0));
    assertThat(pool.stats().peakUsedBytes()).isZero();
    assertThat(pool.stats().peakHeldBytes()).isZero();
  }

  @CudaTest
  void failedAllocations_areCounted_andPeaksIgnoreThem(MemoryPool pool) {
    pool.setLimit(MemoryLimit.ofBytes(U));
    for (int i = 1; i <= 3; i++) {
      assertThatThrownBy(() -> pool.allocate(2 * U)).isInstanceOf(OutOfDeviceMemoryException.class);
      assertThat(pool.stats().outOfMemories()).isEqualTo(i);
    }
    assertThat(pool.stats().peakHeldBytes()).isZero();
    assertThat(pool.stats().allocations()).isZero();
  }

  @CudaTest
  void fragmentation_isWhatTheLargestRequestCannotUse(MemoryPool pool) {
    pool.allocate(4 * U).close();
    assertThat(pool.stats().fragmentation()).isZero();
    Buffer a = pool.allocate(U);
    Buffer b = pool.allocate(2 * U);
    a.close();
    assertThat(pool.stats().fragmentation()).isEqualTo(0.5);
    b.close();
    assertThat(pool.stats().fragmentation()).isZero();
  }

  @CudaTest
  void text_saysTheNumbersWithUnits(MemoryPool pool) {
    pool.allocate(1 << 20).close();
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
}
