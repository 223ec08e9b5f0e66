package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.MIB;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.testkit.CudaTest;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

class PoolRulesTest {

  @CudaTest
  void sizes_areRoundedUpTo512(MemoryPool pool) {
    long[][] cases = {
      {1, UNIT},
      {UNIT - 1, UNIT},
      {UNIT, UNIT},
      {UNIT + 1, 2 * UNIT},
      {2 * UNIT, 2 * UNIT},
      {3000, 3072}
    };
    for (long[] sizes : cases) {
      try (Buffer buffer = pool.allocate(sizes[0])) {
        assertThat(buffer.byteSize()).isEqualTo(sizes[0]);
        assertThat(buffer.blockBytes()).as("%d bytes", sizes[0]).isEqualTo(sizes[1]);
      }
    }
  }

  @CudaTest
  void liveBuffers_haveDifferentAddresses(MemoryPool pool) {
    List<Buffer> buffers = new ArrayList<>();
    Set<Long> addresses = new HashSet<>();
    for (int i = 0; i < 100; i++) {
      Buffer buffer = pool.allocate(UNIT);
      assertThat(addresses.add(buffer.address())).isTrue();
      buffers.add(buffer);
    }
    buffers.forEach(Buffer::close);
  }

  @CudaTest
  void blocks_areAlignedTo256(MemoryPool pool) {
    List<Buffer> buffers = new ArrayList<>();
    for (int i = 1; i < 50; i++) {
      Buffer buffer = pool.allocate(i * 97L);
      assertThat(buffer.address() % 256).isZero();
      buffers.add(buffer);
    }
    buffers.forEach(Buffer::close);
  }

  @CudaTest
  void freedBlock_isReusedOnSameStream(MemoryPool pool) {
    Buffer first = pool.allocate(4 * UNIT);
    first.close();
    try (Buffer second = pool.allocate(4 * UNIT)) {
      assertThat(second.address()).isEqualTo(first.address());
    }
  }

  @CudaTest
  void freedBlock_servesTwoHalves(MemoryPool pool) {
    Buffer whole = pool.allocate(4 * UNIT);
    whole.close();
    try (Buffer head = pool.allocate(2 * UNIT);
        Buffer tail = pool.allocate(2 * UNIT)) {
      assertThat(head.address()).isEqualTo(whole.address());
      assertThat(tail.address()).isEqualTo(whole.address() + 2 * UNIT);
    }
  }

  @CudaTest
  void halves_mergeWhicheverIsFreedFirst(Cuda cuda) {
    for (boolean headFirst : new boolean[] {true, false}) {
      try (MemoryPool pool = new MemoryPool(cuda)) {
        Buffer whole = pool.allocate(4 * UNIT);
        whole.close();
        Buffer head = pool.allocate(2 * UNIT);
        Buffer tail = pool.allocate(2 * UNIT);
        (headFirst ? head : tail).close();
        (headFirst ? tail : head).close();
        assertThat(pool.freeBlocks()).isEqualTo(1);
        try (Buffer again = pool.allocate(4 * UNIT)) {
          assertThat(again.address()).isEqualTo(whole.address());
        }
      }
    }
  }

  @CudaTest
  void middleBlock_mergesBothNeighbours(MemoryPool pool) {
    pool.allocate(6 * UNIT).close();
    Buffer[] parts = {pool.allocate(2 * UNIT), pool.allocate(2 * UNIT), pool.allocate(2 * UNIT)};
    parts[0].close();
    parts[2].close();
    assertThat(pool.freeBlocks()).isEqualTo(2);
    parts[1].close();
    assertThat(pool.freeBlocks()).isEqualTo(1);
    assertThat(pool.stats().largestFreeBytes()).isEqualTo(6 * UNIT);
  }

  @CudaTest
  void smallerFreedBlock_doesNotServeALargerRequest(MemoryPool pool) {
    Buffer small = pool.allocate(4 * UNIT);
    small.close();
    try (Buffer large = pool.allocate(8 * UNIT)) {
      assertThat(large.address()).isNotEqualTo(small.address());
    }
  }

  /** No threshold: the smallest request may cut the largest block. */
  @CudaTest
  void smallRequest_cutsALargeBlock(MemoryPool pool) {
    Buffer large = pool.allocate(64 * MIB);
    large.close();
    try (Buffer small = pool.allocate(1)) {
      assertThat(small.address()).isEqualTo(large.address());
      assertThat(pool.totalBytes()).isEqualTo(64 * MIB);
    }
  }

  @CudaTest
  void blocksOfDifferentChunks_neverMerge(MemoryPool pool) {
    Buffer one = pool.allocate(2 * UNIT);
    Buffer two = pool.allocate(2 * UNIT);
    one.close();
    two.close();
    assertThat(pool.freeBlocks()).isEqualTo(2);
    assertThat(pool.stats().chunks()).isEqualTo(2);
    assertThat(pool.stats().largestFreeBytes()).isEqualTo(2 * UNIT);
  }

  @CudaTest
  void freedBlock_goesBackToItsOwnArena_whoeverFreesIt(
      MemoryPool pool, CudaStream own, CudaStream other) throws InterruptedException {
    Buffer buffer = pool.allocate(4 * UNIT, own);
    Thread thread =
        Thread.ofPlatform()
            .start(() -> {
              try (var _ = other.use()) {
                buffer.close();
              }
            });
    thread.join();
    try (Buffer elsewhere = pool.allocate(4 * UNIT, other);
        Buffer here = pool.allocate(4 * UNIT, own)) {
      assertThat(here.address()).isEqualTo(buffer.address());
      assertThat(elsewhere.address()).isNotEqualTo(buffer.address());
    }
  }

  @CudaTest(devices = 2)
  void devices_havePoolsOfTheirOwn(Cuda cuda, MemoryPool pool) {
    pool.allocate(4 * UNIT, cuda.device(1).nullStream()).close();
    assertThat(pool.stats(cuda.device(0)).heldBytes()).isZero();
    assertThat(pool.stats(cuda.device(1)).heldBytes()).isEqualTo(4 * UNIT);
    assertThat(pool.totalBytes()).isZero();
    try (var _ = cuda.device(1).use()) {
      assertThat(pool.totalBytes()).isEqualTo(4 * UNIT);
      assertThat(pool.freeAllBlocks()).isEqualTo(4 * UNIT);
    }
  }

  @CudaTest(devices = 2)
  void closingAThreadsBuffer_ignoresWhatIsCurrent(Cuda cuda, MemoryPool pool) {
    Buffer buffer = pool.allocate(4 * UNIT, cuda.device(0).nullStream());
    try (var _ = cuda.device(1).use()) {
      buffer.close();
    }
    assertThat(pool.stats(cuda.device(0)).freeBytes()).isEqualTo(4 * UNIT);
    assertThat(pool.stats(cuda.device(1)).heldBytes()).isZero();
  }
}
