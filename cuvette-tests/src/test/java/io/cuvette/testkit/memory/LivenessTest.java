package io.cuvette.testkit.memory;

import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryAdvice;
import io.cuvette.MemoryLocation;
import io.cuvette.PinnedBuffer;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Kind;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** A closed buffer refuses everything, and names itself. */
class LivenessTest {

  @CudaTest
  void closeTwice_freesOnce(Cuda cuda) {
    for (Kind kind : Kind.values()) {
      Buffer buffer = kind.allocate(cuda, 1000);
      assertThat(buffer.isClosed()).isFalse();
      assertThat(buffer.toString()).doesNotContain("closed");
      buffer.close();
      buffer.close();
      assertThat(buffer.isClosed()).isTrue();
      assertThat(buffer.toString()).contains("closed");
    }
  }

  @CudaTest
  void everyOperationOfAClosedBuffer_isRefused(Cuda cuda) {
    CudaStream stream = cuda.currentStream();
    try (Buffer open = cuda.allocate(UNEVEN);
        Arena arena = Arena.ofConfined()) {
      MemorySegment segment = arena.allocate(10);
      for (Kind kind : Kind.values()) {
        Buffer closed = kind.allocate(cuda, 1000);
        closed.close();
        List<ThrowingCallable> calls =
            List.of(
                () -> closed.fill((byte) 1),
                () -> closed.fillShorts((short) 1),
                () -> closed.fillInts(1),
                () -> closed.fill((byte) 1, stream),
                () -> closed.fillShorts((short) 1, stream),
                () -> closed.fillInts(1, stream),
                () -> closed.copyFrom(open),
                () -> closed.copyFrom(open, stream),
                () -> closed.copyTo(open),
                () -> closed.copyTo(open, stream),
                () -> open.copyFrom(closed),
                () -> open.copyTo(closed, stream),
                () -> closed.copyFrom(segment),
                () -> closed.copyFrom(segment, stream),
                () -> closed.copyTo(segment),
                () -> closed.copyTo(segment, stream),
                () -> closed.recordUse(stream),
                () -> closed.slice(0),
                () -> closed.slice(0, 1));
        for (ThrowingCallable call : calls) {
          assertThatThrownBy(call)
              .as("%s, call %d", kind, calls.indexOf(call))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("1000 bytes")
              .hasMessageContaining("is closed");
        }
      }
    }
  }

  @CudaTest
  void whatOnlyHostAccessibleBuffersHave_isRefusedToo(Cuda cuda) {
    PinnedBuffer pinned = cuda.allocatePinned(UNEVEN);
    pinned.close();
    ManagedBuffer managed = cuda.allocateManaged(UNEVEN);
    managed.close();
    MemoryLocation host = MemoryLocation.host();
    List<ThrowingCallable> calls =
        List.of(
            pinned::segment,
            pinned::byteBuffer,
            pinned::devicePointer,
            managed::segment,
            managed::byteBuffer,
            () -> managed.prefetch(host),
            () -> managed.prefetch(host, cuda.currentStream()),
            () -> managed.advise(MemoryAdvice.SET_READ_MOSTLY, host));
    for (ThrowingCallable call : calls) {
      assertThatThrownBy(call)
          .as("call %d", calls.indexOf(call))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("is closed");
    }
  }

  @CudaTest
  void numbersOfAClosedBuffer_canStillBeRead(Cuda cuda) {
    Buffer buffer = cuda.allocate(UNEVEN);
    long address = buffer.address();
    buffer.close();
    assertThat(buffer.address()).isEqualTo(address);
    assertThat(buffer.byteSize()).isEqualTo(1000);
    assertThat(buffer.device()).isEqualTo(cuda.device(0));
  }

  @CudaTest(tidy = false)
  void buffersOfAClosedCuda_areClosed(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    for (Kind kind : Kind.values()) {
      kind.allocate(cuda, 10);
    }
    List<Buffer> buffers =
        List.of(
            Kind.POOLED.allocate(cuda, 10),
            Kind.DEVICE.allocate(cuda, 10),
            Kind.MANAGED.allocate(cuda, 10),
            Kind.PINNED.allocate(cuda, 10));
    cuda.close();
    for (Buffer buffer : buffers) {
      assertThat(buffer.isClosed()).as("%s", buffer).isTrue();
      assertThatThrownBy(() -> buffer.fill((byte) 1)).isInstanceOf(IllegalStateException.class);
      buffer.close();
    }
  }

  @CudaTest
  void closedStream_isRefused(Cuda cuda) {
    CudaStream stream = cuda.device(0).createStream();
    stream.close();
    try (Buffer buffer = cuda.allocate(10)) {
      assertThatThrownBy(() -> buffer.fill((byte) 1, stream))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("is closed");
      assertThatThrownBy(() -> cuda.allocate(10, stream)).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> buffer.recordUse(stream)).isInstanceOf(IllegalStateException.class);
    }
  }
}
