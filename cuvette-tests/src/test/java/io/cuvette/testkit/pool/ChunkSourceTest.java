package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** Where a pool takes its chunks from. */
class ChunkSourceTest {

  @CudaTest
  void managedUpstream_givesManagedBlocks(Cuda cuda) {
    try (MemoryPool pool = over(cuda, MemoryResource.managed())) {
      pool.allocate(4 * UNIT).close();
      try (Buffer first = pool.allocate(100);
          Buffer second = pool.allocate(100)) {
        assertThat(first).isInstanceOf(ManagedBuffer.class);
        ((ManagedBuffer) first).segment().set(ValueLayout.JAVA_INT, 96, 7);
        ((ManagedBuffer) second).segment().set(ValueLayout.JAVA_INT, 0, 8);
        assertThat(((ManagedBuffer) first).segment().byteSize()).isEqualTo(100);
        assertThat(((ManagedBuffer) first).segment().get(ValueLayout.JAVA_INT, 96)).isEqualTo(7);
        assertThat(((ManagedBuffer) second).segment().get(ValueLayout.JAVA_INT, 0)).isEqualTo(8);
        assertThat(second.address()).isEqualTo(first.address() + UNIT);
      }
    }
  }

  @CudaTest
  void lambda_isAskedForExactlyTheRoundedSize_onTheAllocatingStream(Cuda cuda) {
    List<Long> asked = new ArrayList<>();
    MemoryResource lambda =
        (bytes, stream) -> {
          asked.add(bytes);
          assertThat(stream).isEqualTo(cuda.device(0).legacyStream());
          return MemoryResource.direct().allocate(bytes, stream);
        };
    try (MemoryPool pool = over(cuda, lambda)) {
      pool.allocate(1, cuda.device(0).legacyStream()).close();
      pool.allocate(UNEVEN, cuda.device(0).legacyStream()).close();
      assertThat(asked).containsExactly(512L, 1024L);
    }
  }

  @CudaTest
  void poolOverAPool_givesItsChunksBackThere(Cuda cuda, MemoryPool lower) {
    try (MemoryPool upper = over(cuda, lower)) {
      try (Buffer buffer = upper.allocate(3 * UNIT)) {
        buffer.fill((byte) 1);
        assertThat(lower.usedBytes()).isEqualTo(3 * UNIT);
      }
      assertThat(lower.usedBytes()).isEqualTo(3 * UNIT);
      assertThat(upper.freeAllBlocks()).isEqualTo(3 * UNIT);
      assertThat(lower.usedBytes()).isZero();
      assertThat(lower.freeBytes()).isEqualTo(3 * UNIT);
    }
  }

  @CudaTest
  void chunkLargerThanAsked_isAccepted(Cuda cuda) {
    MemoryResource generous =
        (bytes, stream) -> MemoryResource.direct().allocate(bytes * 2, stream);
    try (MemoryPool pool = over(cuda, generous);
        Buffer buffer = pool.allocate(UNIT)) {
      assertThat(buffer.byteSize()).isEqualTo(UNIT);
      assertThat(pool.stats().usedBytes() + pool.stats().freeBytes()).isEqualTo(pool.totalBytes());
    }
  }

  @CudaTest
  void upstreamThatGivesTooLittle_isRefused_andItsBufferClosed(Cuda cuda) {
    List<Buffer> given = new ArrayList<>();
    MemoryResource stingy =
        (bytes, stream) -> {
          Buffer buffer = MemoryResource.direct().allocate(bytes - 1, stream);
          given.add(buffer);
          return buffer;
        };
    try (MemoryPool pool = over(cuda, stingy)) {
      assertThatThrownBy(() -> pool.allocate(UNIT))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("expected: >= 512 bytes");
      assertThat(given).allMatch(Buffer::isClosed);
      assertThat(pool.totalBytes()).isZero();
    }
  }

  /** What it is a part of is somebody's. */
  @CudaTest
  void upstreamThatGivesAPartThatIsTooSmall_isRefused_andTheWholeStaysOpen(Cuda cuda) {
    try (Buffer whole = MemoryResource.direct().allocate(UNIT, cuda.currentStream());
        MemoryPool pool = over(cuda, (bytes, _) -> whole.slice(1, bytes - 1))) {
      assertThatThrownBy(() -> pool.allocate(UNIT))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("expected: >= 512 bytes");
      assertThat(whole.isClosed()).isFalse();
      whole.fill((byte) 1);
      assertThat(pool.totalBytes()).isZero();
    }
  }

  @CudaTest
  @SuppressWarnings("NullAway")
  void upstreamThatReturnsNull_isRefused(Cuda cuda) {
    try (MemoryPool pool = over(cuda, (bytes, stream) -> null)) {
      assertThatThrownBy(() -> pool.allocate(UNIT))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("null");
      assertThat(pool.totalBytes()).isZero();
    }
  }

  @CudaTest
  void upstreamThatGivesAClosedBuffer_isRefused(Cuda cuda) {
    MemoryResource dead =
        (bytes, stream) -> {
          Buffer buffer = MemoryResource.direct().allocate(bytes, stream);
          buffer.close();
          return buffer;
        };
    try (MemoryPool pool = over(cuda, dead)) {
      assertThatThrownBy(() -> pool.allocate(UNIT))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("an open buffer");
      assertThat(pool.totalBytes()).isZero();
    }
  }

  @CudaTest(devices = 2)
  void upstreamThatGivesMemoryOfAnotherDevice_isRefused(Cuda cuda) {
    MemoryResource astray =
        (bytes, stream) -> MemoryResource.direct().allocate(bytes, cuda.device(1).nullStream());
    try (MemoryPool pool = over(cuda, astray)) {
      assertThatThrownBy(() -> pool.allocate(UNIT, cuda.device(0).nullStream()))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("device 0");
    }
  }

  @CudaTest
  void upstreamThatThrows_isPassedOn_andNothingIsHeld(Cuda cuda) {
    RuntimeException mine = new UnsupportedOperationException("mine");
    try (MemoryPool pool =
        over(
            cuda,
            (bytes, stream) -> {
              throw mine;
            })) {
      assertThatThrownBy(() -> pool.allocate(UNIT)).isSameAs(mine);
      assertThat(pool.totalBytes()).isZero();
      assertThat(pool.stats().outOfMemories()).isZero();
    }
  }

  /** Out of memory is what the pool recovers from; everything else is not. */
  @CudaTest
  void upstreamOutOfMemory_isRecoveredFrom_andOtherErrorsAreNot(Cuda cuda) {
    AtomicInteger asked = new AtomicInteger();
    MemoryResource once =
        (bytes, stream) -> {
          if (asked.incrementAndGet() == 1) {
            throw new CudaException(CudaStatus.OUT_OF_MEMORY, "mine", "full");
          }
          return MemoryResource.direct().allocate(bytes, stream);
        };
    try (MemoryPool pool = over(cuda, once)) {
      pool.allocate(UNIT).close();
      assertThat(asked).hasValue(2);
    }
    MemoryResource broken =
        (bytes, stream) -> {
          asked.incrementAndGet();
          throw new CudaException(CudaStatus.ILLEGAL_ADDRESS, "mine", "broken");
        };
    asked.set(0);
    try (MemoryPool pool = over(cuda, broken)) {
      assertThatThrownBy(() -> pool.allocate(UNIT))
          .isInstanceOf(CudaException.class)
          .isNotInstanceOf(OutOfDeviceMemoryException.class)
          .hasMessageContaining("ILLEGAL_ADDRESS");
      assertThat(asked).hasValue(1);
    }
  }

  @CudaTest
  void upstreamThatAllocatesFromItsOwnPool_isFound(Cuda cuda) {
    MemoryPool[] self = new MemoryPool[1];
    try (MemoryPool pool = over(cuda, (bytes, stream) -> self[0].allocate(2 * bytes, stream))) {
      self[0] = pool;
      assertThatThrownBy(() -> pool.allocate(UNIT))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("re-entrant allocation");
      assertThat(pool.totalBytes()).isZero();
    }
  }

  @CudaTest
  void limitOfThePool_isAppliedBeforeUpstreamIsAsked(Cuda cuda) {
    AtomicInteger asked = new AtomicInteger();
    MemoryResource counting =
        (bytes, stream) -> {
          asked.incrementAndGet();
          return MemoryResource.direct().allocate(bytes, stream);
        };
    try (MemoryPool pool =
        new MemoryPool(
            cuda,
            PoolOptions.DEFAULTS.withUpstream(counting).withLimit(MemoryLimit.ofBytes(UNIT)))) {
      assertThatThrownBy(() -> pool.allocate(2 * UNIT))
          .isInstanceOf(OutOfDeviceMemoryException.class);
      assertThat(asked).hasValue(0);
    }
  }

  private static MemoryPool over(Cuda cuda, MemoryResource upstream) {
    return new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(upstream));
  }
}
