package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.support.Kind;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** What does not fit is refused before the driver is asked, with both sizes in the message. */
class BoundsTest {

  @CudaTest
  void sourceLargerThanTheTarget_isRefused(Cuda cuda) {
    CudaStream stream = cuda.currentStream();
    for (Kind kind : Kind.values()) {
      try (Buffer small = kind.allocate(cuda, 10);
          Buffer large = kind.allocate(cuda, 11)) {
        refused(() -> small.copyFrom(large), "copy of 11 bytes", "expected: <= 10");
        refused(() -> small.copyFrom(large, stream), "copy of 11 bytes", "expected: <= 10");
        refused(() -> large.copyTo(small), "copy of 11 bytes", "expected: <= 10");
        refused(() -> large.copyTo(small, stream), "copy of 11 bytes", "expected: <= 10");
      }
    }
  }

  @CudaTest
  void segmentLargerThanTheBuffer_isRefused(Cuda cuda) {
    CudaStream stream = cuda.currentStream();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment segment = arena.allocate(11);
      MemorySegment heap = MemorySegment.ofArray(new byte[11]);
      for (Kind kind : Kind.values()) {
        try (Buffer small = kind.allocate(cuda, 10)) {
          refused(() -> small.copyFrom(segment), "copy of 11 bytes", "expected: <= 10");
          refused(() -> small.copyFrom(heap), "copy of 11 bytes", "expected: <= 10");
          refused(() -> small.copyFrom(segment, stream), "copy of 11 bytes", "expected: <= 10");
          refused(() -> small.copyTo(segment), "copy of 11 bytes", "expected: <= 10");
          refused(() -> small.copyTo(heap), "copy of 11 bytes", "expected: <= 10");
          refused(() -> small.copyTo(segment, stream), "copy of 11 bytes", "expected: <= 10");
        }
      }
    }
  }

  @CudaTest
  void sliceOfALargerBuffer_isBoundedByItself(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(100);
        Buffer source = cuda.allocate(100)) {
      refused(() -> buffer.slice(50, 10).copyFrom(source.slice(0, 11)), "expected: <= 10");
    }
  }

  private static void refused(ThrowingCallable call, String... parts) {
    assertThatThrownBy(call)
        .isInstanceOf(IndexOutOfBoundsException.class)
        .hasMessageContainingAll(parts);
  }
}
