package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Kind;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** What the driver must not be given: memory that moves, that is gone, or that is read-only. */
class HeapSegmentTest {

  @CudaTest
  void heapSegmentInACopyOnAStream_isRefused_namingPinnedBuffer(Cuda cuda) {
    CudaStream stream = cuda.currentStream();
    MemorySegment heap = MemorySegment.ofArray(new byte[16]);
    for (Kind kind : Kind.values()) {
      try (Buffer buffer = kind.allocate(cuda, 16)) {
        assertThatThrownBy(() -> buffer.copyFrom(heap, stream))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("heap segment of 16 bytes")
            .hasMessageContaining("PinnedBuffer");
        assertThatThrownBy(() -> buffer.copyTo(heap, stream))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("PinnedBuffer");
      }
    }
  }

  @CudaTest
  void segmentOfAClosedArena_isRefused(Cuda cuda) {
    Arena arena = Arena.ofConfined();
    MemorySegment dead = arena.allocate(16);
    arena.close();
    for (Kind kind : Kind.values()) {
      try (Buffer buffer = kind.allocate(cuda, 16)) {
        assertThatThrownBy(() -> buffer.copyFrom(dead)).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> buffer.copyTo(dead)).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> buffer.copyFrom(dead, cuda.currentStream()))
            .isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> buffer.copyTo(dead, cuda.currentStream()))
            .isInstanceOf(IllegalStateException.class);
      }
    }
  }

  @CudaTest
  void readOnlyTarget_isRefused_andKeepsItsBytes(Cuda cuda) {
    byte[] array = Bytes.random(1, 16);
    MemorySegment heap = MemorySegment.ofArray(array).asReadOnly();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment outside = arena.allocate(16).asReadOnly();
      for (Kind kind : Kind.values()) {
        try (Buffer buffer = kind.allocate(cuda, 16)) {
          buffer.fill((byte) 1);
          for (MemorySegment target : new MemorySegment[] {heap, outside}) {
            assertThatThrownBy(() -> buffer.copyTo(target))
                .as("%s to %s", kind, target)
                .isInstanceOf(IllegalArgumentException.class);
          }
          assertThatThrownBy(() -> buffer.copyTo(outside, cuda.currentStream()))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("read-only");
        }
      }
    }
    assertThat(array).isEqualTo(Bytes.random(1, 16));
  }

  @CudaTest
  void readOnlySource_isCopied(Cuda cuda) {
    byte[] pattern = Bytes.random(4, 100);
    for (Kind kind : Kind.values()) {
      try (Buffer buffer = kind.allocate(cuda, 100)) {
        buffer.copyFrom(MemorySegment.ofArray(pattern).asReadOnly());
        assertThat(Bytes.of(buffer)).as("%s", kind).isEqualTo(pattern);
      }
    }
  }

  @CudaTest
  void segmentConfinedToAnotherThread_isRefused(Cuda cuda) throws InterruptedException {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment foreign = arena.allocate(16);
      Throwable[] thrown = new Throwable[1];
      Thread other =
          Thread.ofPlatform()
              .start(() -> {
                try (Buffer buffer = cuda.allocate(16)) {
                  buffer.copyFrom(foreign);
                } catch (RuntimeException e) {
                  thrown[0] = e;
                }
              });
      other.join();
      assertThat(thrown[0]).isInstanceOf(WrongThreadException.class);
    }
  }
}
