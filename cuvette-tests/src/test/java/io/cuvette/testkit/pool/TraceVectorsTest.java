package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.GIB;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolOptions;
import io.cuvette.PoolStats;
import io.cuvette.testkit.CudaTest;

/** CuPy's rules, one walk for each; the unit is 512 bytes. */
class TraceVectorsTest {

  @CudaTest
  void t1_freedBlock_isSplitExactly_andMergedAgain(MemoryPool pool) {
    Buffer a = pool.allocate(2048);
    final long start = a.address();
    a.close();
    Buffer h = pool.allocate(1024);
    Buffer t = pool.allocate(1);
    assertThat(h.address() - start).isZero();
    assertThat(t.address() - start).isEqualTo(1024);
    assertThat(t.blockBytes()).isEqualTo(512);
    check(pool, 1536, 512, 2048, 1);
    assertThat(pool.stats().growths()).isEqualTo(1);
    h.close();
    check(pool, 512, 1536, 2048, 2);
    t.close();
    check(pool, 0, 2048, 2048, 1);
    try (Buffer again = pool.allocate(2048)) {
      assertThat(again.address()).isEqualTo(start);
    }
    assertThat(pool.stats().growths()).isEqualTo(1);
  }

  @CudaTest
  void t2_splitChunk_isNotReleasedWhileAPartIsInUse(MemoryPool pool) {
    pool.allocate(4 * UNIT).close();
    try (Buffer h = pool.allocate(2 * UNIT)) {
      pool.allocate(2 * UNIT).close();
      assertThat(pool.freeAllBlocks()).isZero();
      check(pool, 1024, 1024, 2048, 1);
      try (Buffer t = pool.allocate(2 * UNIT)) {
        assertThat(t.address() - h.address()).isEqualTo(1024);
      }
    }
  }

  @CudaTest
  void t3_cachedMemory_isReleasedBeforeTheLimitRefuses(Cuda cuda) {
    try (MemoryPool pool = limited(cuda, 6 * UNIT)) {
      pool.allocate(5 * UNIT).close();
      try (Buffer b = pool.allocate(6 * UNIT)) {
        assertThat(b.byteSize()).isEqualTo(6 * UNIT);
        check(pool, 3072, 0, 3072, 0);
        assertThat(pool.stats().growths()).isEqualTo(2);
      }
    }
  }

  @CudaTest
  void t4_fullPool_refuses_andChangesNothing(Cuda cuda) {
    try (MemoryPool pool = limited(cuda, 6 * UNIT);
        Buffer _ = pool.allocate(5 * UNIT);
        Buffer _ = pool.allocate(UNIT)) {
      assertThatThrownBy(() -> pool.allocate(UNIT)).isInstanceOf(OutOfDeviceMemoryException.class);
      check(pool, 3072, 0, 3072, 0);
    }
  }

  @CudaTest
  void t5_streams_haveArenasOfTheirOwn(Cuda cuda, MemoryPool pool, CudaStream seven) {
    CudaStream zero = cuda.device(0).nullStream();
    Buffer a = pool.allocate(4 * UNIT, zero);
    final long first = a.address();
    a.close();
    Buffer b = pool.allocate(4 * UNIT, seven);
    assertThat(b.address()).isNotEqualTo(first);
    check(pool, 2048, 2048, 4096, 1);
    b.close();
    assertThat(pool.freeAllBlocks(zero)).isEqualTo(2048);
    check(pool, 0, 2048, 2048, 1);
  }

  @CudaTest
  void t6_smallestBlockThatFits_isTaken(MemoryPool pool) {
    Buffer eight = pool.allocate(8 * UNIT);
    Buffer three = pool.allocate(3 * UNIT);
    Buffer five = pool.allocate(5 * UNIT);
    final long atFive = five.address();
    eight.close();
    three.close();
    five.close();
    try (Buffer four = pool.allocate(4 * UNIT)) {
      assertThat(four.address()).isEqualTo(atFive);
      check(pool, 2048, 6144, 8192, 3);
      assertThat(pool.stats().largestFreeBytes()).isEqualTo(8 * UNIT);
    }
  }

  @CudaTest
  void t7_countsFollowEveryStep(MemoryPool pool) {
    Buffer a = pool.allocate(2 * UNIT);
    final long atA = a.address();
    check(pool, 2 * UNIT, 0, 2 * UNIT, 0);
    Buffer b = pool.allocate(4 * UNIT);
    check(pool, 6 * UNIT, 0, 6 * UNIT, 0);
    b.close();
    check(pool, 2 * UNIT, 4 * UNIT, 6 * UNIT, 1);
    a.close();
    check(pool, 0, 6 * UNIT, 6 * UNIT, 2);
    try (Buffer c = pool.allocate(UNIT)) {
      assertThat(c.address()).isEqualTo(atA);
      check(pool, UNIT, 5 * UNIT, 6 * UNIT, 2);
    }
  }

  /** Split chunks hold 2 GiB back, the device has 3 more: CuPy's users know this as httomo 667. */
  @CudaTest(memory = "8GiB")
  void t8_memoryInSplitChunks_isExplainedWhenItIsMissing(Cuda cuda, MemoryPool pool) {
    long free = cuda.device(0).memoryInfo().freeBytes();
    try (Buffer _ = pool.allocate(GIB)) {
      pool.allocate(4 * GIB).close();
      try (Buffer _ = pool.allocate(GIB);
          Buffer _ = pool.allocate(GIB)) {
        assertThatThrownBy(() -> pool.allocate(4 * GIB))
            .isInstanceOfSatisfying(
                OutOfDeviceMemoryException.class,
                e -> {
                  assertThat(e.details().heldBytes()).isEqualTo(5 * GIB);
                  assertThat(e.details().usedBytes()).isEqualTo(3 * GIB);
                  assertThat(e.details().freeBytes()).isEqualTo(2 * GIB);
                  assertThat(e.details().largestFreeBytes()).isEqualTo(2 * GIB);
                  assertThat(e.details().driverFreeBytes()).isEqualTo(free - 5 * GIB);
                });
        check(pool, 3 * GIB, 2 * GIB, 5 * GIB, 1);
        assertThat(pool.stats().releasableBytes()).isZero();
      }
    }
  }

  private static MemoryPool limited(Cuda cuda, long bytes) {
    return new MemoryPool(cuda, PoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(bytes)));
  }

  private static void check(MemoryPool pool, long used, long free, long held, int freeBlocks) {
    PoolStats stats = pool.stats();
    assertThat(stats.usedBytes()).as("used").isEqualTo(used);
    assertThat(stats.freeBytes()).as("free").isEqualTo(free);
    assertThat(stats.heldBytes()).as("held").isEqualTo(held);
    assertThat(stats.freeBlocks()).as("free blocks").isEqualTo(freeBlocks);
    assertThat(pool.usedBytes()).isEqualTo(used);
    assertThat(pool.freeBytes()).isEqualTo(free);
    assertThat(pool.totalBytes()).isEqualTo(held);
    assertThat(pool.freeBlocks()).isEqualTo(freeBlocks);
  }
}
