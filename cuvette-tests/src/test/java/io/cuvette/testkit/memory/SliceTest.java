package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.support.Kind;

class SliceTest {

  @CudaTest
  void slice_hasTheAddressAndSizeOfItsPart(Cuda cuda) {
    for (Kind kind : Kind.values()) {
      try (Buffer buffer = kind.allocate(cuda, 1000)) {
        Buffer slice = buffer.slice(10, 20);
        assertThat(slice.address()).isEqualTo(buffer.address() + 10);
        assertThat(slice.byteSize()).isEqualTo(20);
        assertThat(slice.device()).isEqualTo(buffer.device());
        assertThat(slice.stream()).isEqualTo(buffer.stream());
        assertThat(slice.isHostAccessible()).isEqualTo(buffer.isHostAccessible());
        assertThat(slice.getClass()).isEqualTo(buffer.getClass());
      }
    }
  }

  @CudaTest
  void sliceFromAnOffset_reachesToTheEnd(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(1000)) {
      assertThat(buffer.slice(999).byteSize()).isEqualTo(1);
      assertThat(buffer.slice(1000).byteSize()).isZero();
      assertThat(buffer.slice(0).byteSize()).isEqualTo(1000);
      assertThat(buffer.slice(100).slice(100, 5).address()).isEqualTo(buffer.address() + 200);
    }
  }

  @CudaTest
  void partsThatAreNotInside_areRefused(Cuda cuda) {
    for (Kind kind : Kind.values()) {
      try (Buffer buffer = kind.allocate(cuda, 1000)) {
        long[][] wrong = {
          {-1, 1},
          {0, 1001},
          {1000, 1},
          {1001, 0},
          {0, -1},
          {999, 2},
          {1, Long.MAX_VALUE},
          {Long.MAX_VALUE, 1},
          {Long.MIN_VALUE, 0},
          {0, Long.MIN_VALUE}
        };
        for (long[] part : wrong) {
          assertThatThrownBy(() -> buffer.slice(part[0], part[1]))
              .as("%s: %d, %d", kind, part[0], part[1])
              .isInstanceOf(IndexOutOfBoundsException.class)
              .hasMessageContaining("expected: 0 to ");
        }
        for (long offset : new long[] {-1, 1001, Long.MAX_VALUE, Long.MIN_VALUE}) {
          assertThatThrownBy(() -> buffer.slice(offset))
              .as("%s: %d", kind, offset)
              .isInstanceOf(IndexOutOfBoundsException.class)
              .hasMessageContaining("offset: " + offset);
        }
      }
    }
  }

  /** The sizes a pool rounds up to are not the user's. */
  @CudaTest
  void theRestOfARoundedBlock_isOutOfBounds(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(100)) {
      assertThat(buffer.byteSize()).isEqualTo(100);
      assertThat(buffer.blockBytes()).isEqualTo(512);
      assertThatThrownBy(() -> buffer.slice(0, 101)).isInstanceOf(IndexOutOfBoundsException.class);
    }
  }

  @CudaTest
  void closingASlice_freesNothing(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(1000)) {
      Buffer slice = buffer.slice(10, 20);
      slice.close();
      assertThat(slice.isClosed()).isFalse();
      assertThat(buffer.isClosed()).isFalse();
      buffer.fill((byte) 1);
    }
  }

  @CudaTest
  void slicesEnd_withTheirBuffer(Cuda cuda) {
    for (Kind kind : Kind.values()) {
      Buffer buffer = kind.allocate(cuda, 1000);
      Buffer slice = buffer.slice(10, 20);
      Buffer inner = slice.slice(1, 2);
      buffer.close();
      assertThat(slice.isClosed()).isTrue();
      for (Buffer dead : new Buffer[] {slice, inner}) {
        assertThatThrownBy(() -> dead.fill((byte) 1))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("closed");
        assertThatThrownBy(() -> dead.slice(0, 1)).isInstanceOf(IllegalStateException.class);
      }
    }
  }

  @CudaTest
  void parent_isTheBufferThatOwnsTheMemory(Cuda cuda) {
    for (Kind kind : Kind.values()) {
      Buffer buffer = kind.allocate(cuda, 1000);
      Buffer slice = buffer.slice(10, 20);
      assertThat(buffer.parent()).isSameAs(buffer);
      assertThat(slice.parent()).isSameAs(buffer);
      assertThat(slice.slice(1, 2).parent()).isSameAs(buffer);
      slice.parent().close();
      assertThat(slice.isClosed()).isTrue();
      assertThat(slice.parent()).as("also of a closed one").isSameAs(buffer);
    }
  }

  @CudaTest
  void textOfASlice_saysThatItIsOne(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(1000)) {
      assertThat(buffer.slice(1, 2).toString()).contains("slice", "2 bytes", "device 0");
      assertThat(buffer.toString()).contains("1000 bytes").doesNotContain("slice");
    }
  }
}
