package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.util.List;

class FreeAllBlocksTest {

  @CudaTest
  void cachedMemory_goesBackToTheDriver(Subject subject, MemoryPool pool) {
    assertThat(pool.freeBlocks()).isZero();
    pool.allocate(4 * UNIT).close();
    pool.allocate(8 * UNIT).close();
    assertThat(pool.freeBlocks()).isEqualTo(2);
    assertThat(pool.freeAllBlocks()).isEqualTo(12 * UNIT);
    assertThat(pool.freeBlocks()).isZero();
    assertThat(pool.totalBytes()).isZero();
    assertThat(pool.stats().chunks()).isZero();
    if (subject.isSimulated()) {
      assertThat(subject.simulator().liveBytes(0)).isZero();
    }
  }

  @CudaTest
  void trim_releasesWholeChunks_untilNoMoreIsHeld(MemoryPool pool) {
    try (Buffer used = pool.allocate(4 * UNIT)) {
      List<Buffer> all = List.of(pool.allocate(8 * UNIT), pool.allocate(16 * UNIT));
      all.forEach(Buffer::close);
      assertThat(pool.trim(28 * UNIT)).isZero();
      long released = pool.trim(27 * UNIT);
      assertThat(released).isIn(8L * UNIT, 16L * UNIT);
      assertThat(pool.totalBytes()).isEqualTo(28 * UNIT - released);
      assertThat(pool.trim(0)).isEqualTo(24 * UNIT - released);
      used.fill((byte) 1);
      assertThat(pool.totalBytes()).isEqualTo(4 * UNIT);
      assertThatThrownBy(() -> pool.trim(-5)).hasMessage("keptBytes: -5 (expected: >= 0)");
    }
  }

  @CudaTest
  void unusedPool_hasNothingToRelease(Cuda cuda, MemoryPool pool, CudaStream stream) {
    assertThat(pool.freeAllBlocks()).isZero();
    assertThat(pool.freeAllBlocks(stream)).isZero();
    assertThat(pool.freeAllBlocks(cuda.device(0))).isZero();
    assertThat(pool.freeBlocks()).isZero();
    assertThat(pool.usedBytes()).isZero();
    assertThat(pool.freeBytes()).isZero();
    assertThat(pool.totalBytes()).isZero();
  }

  @CudaTest
  void buffersInUse_stay(MemoryPool pool) {
    try (Buffer used = pool.allocate(4 * UNIT)) {
      pool.allocate(8 * UNIT).close();
      assertThat(pool.freeAllBlocks()).isEqualTo(8 * UNIT);
      used.fill((byte) 1);
      assertThat(pool.totalBytes()).isEqualTo(4 * UNIT);
    }
  }

  @CudaTest
  void releaseOfOneStream_keepsTheOthersBlocks(
      Cuda cuda, MemoryPool pool, CudaStream one, CudaStream two) {
    Buffer ofOne = pool.allocate(4 * UNIT, one);
    Buffer ofTwo = pool.allocate(4 * UNIT, two);
    ofOne.close();
    ofTwo.close();
    assertThat(pool.freeAllBlocks(one)).isEqualTo(4 * UNIT);
    assertThat(pool.totalBytes()).isEqualTo(4 * UNIT);
    try (Buffer again = pool.allocate(4 * UNIT, two)) {
      assertThat(again.address()).isEqualTo(ofTwo.address());
    }
    assertThat(pool.freeAllBlocks(cuda.device(0).nullStream())).isZero();
  }

  @CudaTest
  void releaseOfAll_isForEveryStream(Cuda cuda, MemoryPool pool, CudaStream one) {
    pool.allocate(4 * UNIT, one).close();
    pool.allocate(4 * UNIT, cuda.device(0).nullStream()).close();
    assertThat(pool.freeAllBlocks()).isEqualTo(8 * UNIT);
  }

  @CudaTest
  void splitHalf_survivesARelease_andIsReused(MemoryPool pool) {
    pool.allocate(4 * UNIT).close();
    try (Buffer head = pool.allocate(2 * UNIT)) {
      assertThat(pool.freeAllBlocks()).isZero();
      try (Buffer tail = pool.allocate(2 * UNIT)) {
        assertThat(tail.address()).isEqualTo(head.address() + 2 * UNIT);
      }
    }
    assertThat(pool.freeAllBlocks()).isEqualTo(4 * UNIT);
  }

  @CudaTest(devices = 2)
  void release_isForOneDevice(Cuda cuda, MemoryPool pool) {
    pool.allocate(UNIT, cuda.device(0).nullStream()).close();
    pool.allocate(2 * UNIT, cuda.device(1).nullStream()).close();
    assertThat(pool.freeAllBlocks(cuda.device(1))).isEqualTo(2 * UNIT);
    assertThat(pool.stats(cuda.device(0)).heldBytes()).isEqualTo(UNIT);
    assertThat(pool.freeAllBlocks()).isEqualTo(UNIT);
  }

  @CudaTest
  void memoryOfAClosedStream_isReleasedToo(Cuda cuda, MemoryPool pool) {
    CudaStream stream = cuda.device(0).createStream();
    pool.allocate(4 * UNIT, stream).close();
    stream.close();
    assertThat(pool.freeBytes()).isEqualTo(4 * UNIT);
    assertThat(pool.freeAllBlocks()).isEqualTo(4 * UNIT);
    assertThat(pool.totalBytes()).isZero();
  }
}
