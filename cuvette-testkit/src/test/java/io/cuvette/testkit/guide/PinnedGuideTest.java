package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryLimit;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedPoolOptions;
import io.cuvette.testkit.CudaTest;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The programs of docs/guide/pinned.md. */
class PinnedGuideTest {
  @CudaTest
  void pinnedMemory_goesOverAStreamAndBack(Cuda cuda) {
    try (CudaStream stream = cuda.currentDevice().createStream();
        PinnedBuffer in = cuda.allocatePinned(8000);
        PinnedBuffer out = cuda.allocatePinned(8000);
        Buffer device = cuda.allocate(8000, stream)) {
      for (int i = 0; i < 1000; i++) {
        in.segment().setAtIndex(ValueLayout.JAVA_DOUBLE, i, i);
      }
      device.copyFrom(in, stream);
      device.copyTo(out, stream);
      stream.synchronize(); // before the host reads what a stream writes
      assertThat(out.byteBuffer().getDouble(8 * 999)).isEqualTo(999.0);
    }
  }

  @CudaTest
  void views_dieWithTheirBuffer(Cuda cuda) {
    PinnedBuffer buffer = cuda.allocatePinned(16);
    MemorySegment view = buffer.segment();
    buffer.close();
    assertThatThrownBy(() -> view.get(ValueLayout.JAVA_BYTE, 0))
        .isInstanceOf(IllegalStateException.class);
  }

  @CudaTest
  void heapSegment_isRefusedInAnAsynchronousCopy(Cuda cuda) {
    try (Buffer device = cuda.allocate(8)) {
      assertThatThrownBy(
              () -> device.copyFrom(MemorySegment.ofArray(new byte[8]), cuda.currentStream()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageEndingWith("copy it into a PinnedBuffer first");
    }
  }

  @CudaTest
  void memoryThatIsThere_isRegistered(Cuda cuda) {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment index = arena.allocate(1 << 20);
      try (PinnedBuffer registered = cuda.registerHost(index);
          Buffer device = cuda.allocate(registered.byteSize())) {
        device.copyFrom(index); // without page-locked memory in between
        assertThatThrownBy(arena::close).isInstanceOf(IllegalStateException.class);
      }
    }
  }

  @CudaTest
  void pool_keepsBlocksInSizeClassesWithinALimit(Cuda cuda) {
    PinnedPoolOptions options = PinnedPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(64 << 20));
    try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda, options)) {
      try (PinnedBuffer buffer = pool.allocate(9000)) {
        assertThat(buffer.blockBytes()).isEqualTo(9216);
      }
      assertThat(pool.stats().freeBytes()).isEqualTo(9216);
      assertThat(pool.freeAllBlocks()).isEqualTo(9216);
    }
  }
}
