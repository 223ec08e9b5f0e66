package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.MIB;
import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedPoolStats;
import io.cuvette.PoolStats;
import io.cuvette.StreamOptions;
import io.cuvette.testkit.Gate;
import java.util.List;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Blocks that are closed and still in use by streams, in the numbers and at the end. */
class PendingTest {

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final MemoryPool pool = cuda.defaultMemoryPool();
  private final CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final CudaStream other = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);

  @AfterEach
  void close() {
    cuda.close();
  }

  @Test
  void pendingBlock_countsAsCachedInEveryNumber() {
    try (Gate _ = Gate.on(other)) {
      Buffer block = pool.allocate(UNEVEN, stream);
      block.fill((byte) 1, other);
      block.close();
      PoolStats stats = pool.stats();
      assertThat(stats.pendingBytes()).isEqualTo(1024);
      assertThat(stats.usedBytes()).isZero();
      assertThat(stats.usedBlocks()).isZero();
      assertThat(stats.requestedBytes()).isZero();
      assertThat(stats.freeBlocks()).isEqualTo(1);
      assertThat(stats.freeBytes()).isEqualTo(1024);
    }
  }

  @Test
  void pendingBlockThatAGraphUses_isAGraphs_untilThatIsGone() {
    ElasticMemoryPool elastic = new ElasticMemoryPool(cuda);
    List<Buffer> blocks = List.of(pool.allocate(UNEVEN, stream), elastic.allocate(MIB, stream));
    List<Supplier<PoolStats>> stats = List.of(pool::stats, elastic::stats);
    for (int i = 0; i < blocks.size(); i++) {
      Buffer block = blocks.get(i);
      Supplier<PoolStats> now = stats.get(i);
      try (CudaGraph graph = stream.capture(() -> block.fill((byte) 1, stream))) {
        block.close();
        assertThat(graph.isClosed()).isFalse();
        assertThat(now.get().graphBytes()).isEqualTo(block.blockBytes());
        assertThat(now.get().pendingBytes()).isEqualTo(block.blockBytes());
        assertThat(now.get().usedBytes()).isZero();
      }
      assertThat(now.get().graphBytes() + now.get().pendingBytes()).isZero();
    }
  }

  @Test
  void pendingPinnedBlock_countsAsCachedInEveryNumber() {
    try (Gate _ = Gate.on(other)) {
      PinnedBuffer block = cuda.allocatePinned(UNEVEN);
      block.fill((byte) 1, other);
      block.close();
      PinnedPoolStats stats = cuda.defaultPinnedMemoryPool().stats();
      assertThat(stats.pendingBytes()).isEqualTo(1024);
      assertThat(stats.usedBlocks()).isZero();
      assertThat(stats.requestedBytes()).isZero();
      assertThat(stats.freeBlocks()).isEqualTo(1);
    }
  }

  @Test
  void blockOfABusyStream_thatWasOnlyLookedAt_isNoAllocation() {
    pool.allocate(8 * MIB, stream).close();
    try (Buffer _ = pool.allocate(4 * MIB, stream);
        Gate _ = Gate.on(stream)) {
      Buffer rest = pool.allocate(4 * MIB, stream);
      rest.fill((byte) 1, stream);
      rest.close();
      long before = pool.stats().allocations();
      try (Buffer _ = pool.allocate(2 * MIB, other)) {
        assertThat(pool.stats().allocations()).isEqualTo(before + 1);
      }
    }
  }

  @Test
  void statisticsAfterTheEnd_askTheDriverNothing() {
    try (Gate _ = Gate.on(other)) {
      Buffer block = pool.allocate(UNEVEN, stream);
      block.fill((byte) 1, other);
      block.close();
    }
    cuda.close();
    assertThat(pool.stats().heldBytes()).isZero();
    assertThat(pool.stats().pendingBytes()).isZero();
  }

  @Test
  void blockUsedByManyStreamsThatAreGone_waitsForTheOneThatIsBusy() {
    Buffer block = pool.allocate(UNEVEN, stream);
    try (Gate _ = Gate.on(other)) {
      block.fill((byte) 1, other);
      for (int i = 0; i < 100; i++) {
        try (CudaStream brief = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
          block.recordUse(brief);
        }
      }
      block.close();
      assertThat(pool.stats().pendingBytes()).isEqualTo(1024);
    }
    other.synchronize();
    assertThat(pool.stats().pendingBytes()).isZero();
  }

  @Test
  void memoryFreedWhileItsStreamCaptures_comesBackAtNeedOnceThatIsClosed() {
    cuda.defaultPinnedMemoryPool().setLimit(MemoryLimit.ofBytes(1024));
    PinnedBuffer block = cuda.allocatePinned(UNEVEN);
    block.fill((byte) 1, other);
    cuda.driver().captures().streamBeginCapture(0, other.handle(), 2);
    block.close();
    other.close();
    try (PinnedBuffer again = cuda.allocatePinned(UNEVEN)) {
      assertThat(again.isClosed()).isFalse();
    }
  }

  @Test
  void memoryUsedByAStreamThatWasClosedWhileItCaptured_comesBackAtNeed() {
    cuda.defaultPinnedMemoryPool().setLimit(MemoryLimit.ofBytes(1024));
    PinnedBuffer block = cuda.allocatePinned(UNEVEN);
    block.fill((byte) 1, other);
    cuda.driver().captures().streamBeginCapture(0, other.handle(), 2);
    other.close();
    block.close();
    try (PinnedBuffer again = cuda.allocatePinned(UNEVEN)) {
      assertThat(again.isClosed()).isFalse();
    }
  }
}
