package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Asynchronous copies from and to host memory that ends right after the call. */
class ViewedCopyTest {
  private static final int BYTES = 1 << 16;

  /** A copy from a segment of a buffer is a use of the buffer, whose memory waits for it. */
  @CudaTest
  void bufferWhoseSegmentIsOnItsWay_isNotHandedOut(Cuda cuda, @NonBlocking CudaStream stream) {
    try (Buffer device = cuda.allocate(BYTES, stream)) {
      for (int round = 1; round <= 20; round++) {
        PinnedBuffer first = cuda.allocatePinned(BYTES);
        first.segment().fill((byte) round);
        device.copyFrom(first.segment().asSlice(0, BYTES), stream);
        first.close();
        try (PinnedBuffer second = cuda.allocatePinned(BYTES)) {
          second.segment().fill((byte) -1);
          stream.synchronize();
          byte[] got = new byte[BYTES];
          device.copyTo(MemorySegment.ofArray(got));
          assertThat(got).containsOnly(round);
        }
      }
    }
  }

  /** The same for a copy to it, from a byte buffer, and for managed memory. */
  @CudaTest
  void bufferThatACopyWritesThroughItsByteBuffer_isNotHandedOut(
      Cuda cuda, @NonBlocking CudaStream stream) {
    try (Buffer device = cuda.allocate(BYTES, stream)) {
      for (int round = 1; round <= 20; round++) {
        device.fill((byte) round, stream);
        PinnedBuffer first = cuda.allocatePinned(BYTES);
        device.copyTo(MemorySegment.ofBuffer(first.byteBuffer()), stream);
        first.close();
        try (PinnedBuffer second = cuda.allocatePinned(BYTES)) {
          second.segment().fill((byte) -1);
          stream.synchronize();
          assertThat(second.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(-1);
        }
      }
    }
  }

  /** Pageable memory is read, or written, when the call returns. */
  @CudaTest
  void arenaThatIsClosedRightAfterTheCall_isNotNeededAnyMore(
      Cuda cuda, @NonBlocking CudaStream stream) {
    int[] sizes = {1, 100, BYTES, BYTES + 1, 1 << 20};
    for (int bytes : sizes) {
      try (Buffer device = cuda.allocate(bytes, stream)) {
        try (Arena arena = Arena.ofConfined()) {
          device.copyFrom(arena.allocate(bytes).fill((byte) 7), stream);
        }
        byte[] got = new byte[bytes];
        try (Arena arena = Arena.ofShared()) {
          MemorySegment target = arena.allocate(bytes);
          device.copyTo(target, stream);
          MemorySegment.copy(target, ValueLayout.JAVA_BYTE, 0, got, 0, bytes);
        }
        assertThat(got).containsOnly(7);
      }
    }
  }
}
