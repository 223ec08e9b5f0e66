package io.cuvette.testkit.pool;

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
  private static final long U = 512;

  @CudaTest
  void sizes_areRoundedUpTo512(MemoryPool pool) {
    long[][] cases = {{1, U}, {U - 1, U}, {U, U}, {U + 1, 2 * U}, {2 * U, 2 * U}, {3000, 3072}};
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
      Buffer buffer = pool.allocate(U);
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
    Buffer first = pool.allocate(4 * U);
    first.close();
    try (Buffer second = pool.allocate(4 * U)) {
      assertThat(second.address()).isEqualTo(first.address());
    }
  }

  @CudaTest
  void freedBlock_servesTwoHalves(MemoryPool pool) {
    Buffer whole = pool.allocate(4 * U);
    whole.close();
    try (Buffer head = pool.allocate(2 * U);
        Buffer tail = pool.allocate(2 * U)) {
      assertThat(head.address()).isEqualTo(whole.address());
      assertThat(tail.address()).isEqualTo(whole.address() + 2 * U);
    }
  }

  @CudaTest
  void halves_mergeWhicheverIsFreedFirst(Cuda cuda) {
    for (boolean headFirst : new boolean[] {true, false}) {
      try (MemoryPool pool = new MemoryPool(cuda)) {
        Buffer whole = pool.allocate(4 * U);
        whole.close();
        Buffer head = pool.allocate(2 * U);
        Buffer tail = pool.allocate(2 * U);
        (headFirst ? head : tail).close();
        (headFirst ? tail : head).close();
        assertThat(pool.freeBlocks()).isEqualTo(1);
        try (Buffer again = pool.allocate(4 * U)) {
          assertThat(again.address()).isEqualTo(whole.address());
        }
      }
    }
  }

  @CudaTest
  void middleBlock_mergesBothNeighbours(MemoryPool pool) {
    pool.allocate(6 * U).close();
    Buffer[] parts = {pool.allocate(2 * U), pool.allocate(2 * U), pool.allocate(2 * U)};
    parts[0].close();
    parts[2].close();
    assertThat(pool.freeBlocks()).isEqualTo(2);
    parts[1].close();
    assertThat(pool.freeBlocks()).isEqualTo(1);
    assertThat(pool.stats().largestFreeBytes()).isEqualTo(6 * U);
  }

  @CudaTest
  void smallerFreedBlock_doesNotServeALargerRequest(MemoryPool pool) {
    Buffer small = pool.allocate(4 * U);
    small.close();
    try (Buffer large = pool.allocate(8 * U)) {
      assertThat(large.address()).isNotEqualTo(small.address());
    }
  }

  /** No threshold: the smallest request may cut the largest block. */
  @CudaTest
  void smallRequest_cutsALargeBlock(MemoryPool pool) {
    Buffer large = pool.allocate(64L << 20);
    large.close();
    try (Buffer small = pool.allocate(1)) {
      assertThat(small.address()).isEqualTo(large.address());
      assertThat(pool.totalBytes()).isEqualTo(64L << 20);
    }
  }

  @CudaTest
  void blocksOfDifferentChunks_neverMerge(MemoryPool pool) {
    Buffer one = pool.allocate(2 * U);
    Buffer two = pool.allocate(2 * U);
    one.close();
    two.close();
    assertThat(pool.freeBlocks()).isEqualTo(2);
    assertThat(pool.stats().chunks()).isEqualTo(2);
    assertThat(pool.stats().largestFreeBytes()).isEqualTo(2 * U);
  }

  @CudaTest
  void freedBlock_goesBackToItsOwnArena_whoeverFreesIt(
      MemoryPool pool, CudaStream own, CudaStream other) throws InterruptedException {
    Buffer buffer = pool.allocate(4 * U, own);
    Thread thread =
        Thread.ofPlatform()
            .start(() -> {
              try (var _ = other.use()) {
                buffer.close();
              }
            });
    thread.join();
    try (Buffer elsewhere = pool.allocate(4 * U, other);
        Buffer here = pool.allocate(4 * U, own)) {
      assertThat(here.address()).isEqualTo(buffer.address());
      assertThat(elsewhere.address()).isNotEqualTo(buffer.address());
    }
  }

  @CudaTest(devices = 2)
  void devices_havePoolsOfTheirOwn(Cuda cuda, MemoryPool pool) {
    pool.allocate(4 * U, cuda.device(1).nullStream()).close();
    assertThat(pool.stats(cuda.device(0)).heldBytes()).isZero();
    assertThat(pool.stats(cuda.device(1)).heldBytes()).isEqualTo(4 * U);
    assertThat(pool.totalBytes()).isZero();
    try (var _ = cuda.device(1).use()) {
      assertThat(pool.totalBytes()).isEqualTo(4 * U);
      assertThat(pool.freeAllBlocks()).isEqualTo(4 * U);
    }
  }

  @CudaTest(devices = 2)
  void closingAThreadsBuffer_ignoresWhatIsCurrent(Cuda cuda, MemoryPool pool) {
    Buffer buffer = pool.allocate(4 * U, cuda.device(0).nullStream());
    try (var _ = cuda.device(1).use()) {
      buffer.close();
    }
    assertThat(pool.stats(cuda.device(0)).freeBytes()).isEqualTo(4 * U);
    assertThat(pool.stats(cuda.device(1)).heldBytes()).isZero();
  }
}
