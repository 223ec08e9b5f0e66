package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
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
import java.util.List;
import java.util.concurrent.CompletableFuture;

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
  void rowsThatLieApart_areOneCopy(Cuda cuda) {
    try (Buffer image = cuda.allocate(1080 * 4096);
        Buffer left = cuda.allocate(1080 * 2048)) {
      image.fill((byte) 7);
      left.copyFrom(image, CopyBox.of(2048, 1080).withSource(0, 4096)); // the left half, packed
      float[] onHost = new float[1080 * 1024];
      CopyBox right = CopyBox.of(2048, 1080).withSource(2048, 4096).withTarget(2048, 4096);
      image.copyTo(MemorySegment.ofArray(onHost), right); // the right half, to where it was
      assertThat(onHost[512]).isNotZero();
      assertThat(onHost[511]).isZero();
    }
  }

  @CudaTest
  void manyCopies_areOneCall(Cuda cuda, CudaStream stream) {
    try (Buffer keys = cuda.allocate(1000, stream);
        Buffer values = cuda.allocate(2000, stream);
        PinnedBuffer newKeys = cuda.allocatePinned(1000);
        PinnedBuffer newValues = cuda.allocatePinned(2000)) {
      newValues.segment().fill((byte) 6);
      newKeys.segment().fill((byte) 5);
      CopyBatch batch = CopyBatch.of(List.of(keys, values), List.of(newKeys, newValues));
      batch.copy(stream);
      stream.synchronize();
      byte[] back = new byte[2000];
      values.copyTo(MemorySegment.ofArray(back));
      assertThat(back).containsOnly(6);
    }
  }

  @CudaTest
  void copiesWithACompletion_areInOrder(Cuda cuda, CudaStream stream) {
    MemorySegment index = Arena.ofAuto().allocate(1 << 20);
    index.fill((byte) 3);
    try (Buffer device = cuda.allocate(1 << 20, stream);
        PinnedBuffer result = cuda.allocatePinned(1 << 20)) {
      CompletableFuture<Void> copied = device.copyFromAsync(index, stream);
      device.copyTo(result, stream); // after it
      copied.join(); // or copied.thenRun(next)
      stream.synchronize();
      assertThat(result.segment().mismatch(index)).isEqualTo(-1);
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
