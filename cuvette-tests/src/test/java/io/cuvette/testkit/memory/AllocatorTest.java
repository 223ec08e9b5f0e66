package io.cuvette.testkit.memory;

import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedAllocator;
import io.cuvette.PinnedBuffer;
import io.cuvette.Scope;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** The allocator that is current: global, of a scope, never of itself. */
class AllocatorTest {

  @CudaTest
  void defaultPool_isTheFirstAllocator(Cuda cuda) {
    assertThat(cuda.currentAllocator()).isSameAs(cuda.defaultMemoryPool());
    assertThat(cuda.pinnedAllocator()).isSameAs(cuda.defaultPinnedMemoryPool());
    try (Buffer buffer = cuda.allocate(128 * Long.BYTES)) {
      assertThat(buffer.blockBytes()).isEqualTo(1024);
      assertThat(cuda.defaultMemoryPool().usedBytes()).isEqualTo(1024);
    }
  }

  @CudaTest
  void globalAllocator_isUsedByAllThreads(Cuda cuda) throws InterruptedException {
    AtomicInteger asked = new AtomicInteger();
    MemoryResource counting = counting(asked);
    cuda.setAllocator(counting);
    assertThat(cuda.currentAllocator()).isSameAs(counting);
    cuda.allocate(10).close();
    Thread.ofVirtual().start(() -> cuda.allocate(10).close()).join();
    assertThat(asked).hasValue(2);
    assertThat(cuda.defaultMemoryPool().totalBytes()).isZero();
    cuda.setAllocator(cuda.defaultMemoryPool());
  }

  @CudaTest
  void directAllocator_switchesPoolingOff(Cuda cuda) {
    cuda.setAllocator(MemoryResource.direct());
    try (Buffer buffer = cuda.allocate(UNEVEN)) {
      assertThat(buffer.blockBytes()).isEqualTo(1000);
      assertThat(cuda.defaultMemoryPool().usedBytes()).isZero();
    }
  }

  @CudaTest
  void scopedAllocators_nest_andRestore(Cuda cuda) {
    AtomicInteger outer = new AtomicInteger();
    AtomicInteger inner = new AtomicInteger();
    try (Scope _ = cuda.useAllocator(counting(outer))) {
      cuda.allocate(1).close();
      try (Scope _ = cuda.useAllocator(counting(inner))) {
        cuda.allocate(1).close();
      }
      cuda.allocate(1).close();
    }
    cuda.allocate(1).close();
    assertThat(outer).hasValue(2);
    assertThat(inner).hasValue(1);
    assertThat(cuda.currentAllocator()).isSameAs(cuda.defaultMemoryPool());
  }

  @CudaTest
  void exceptionInAScope_restoresTheAllocator(Cuda cuda) {
    assertThatThrownBy(
            () -> {
              try (Scope _ = cuda.useAllocator(MemoryResource.direct())) {
                throw new UnsupportedOperationException("mine");
              }
            })
        .isInstanceOf(UnsupportedOperationException.class);
    assertThat(cuda.currentAllocator()).isSameAs(cuda.defaultMemoryPool());
  }

  @CudaTest
  void settingTheGlobalAllocatorInsideAScope_isRefused(Cuda cuda) {
    try (Scope _ = cuda.useAllocator(MemoryResource.direct())) {
      assertThatThrownBy(() -> cuda.setAllocator(MemoryResource.managed()))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("inside a useAllocator scope");
      assertThat(cuda.currentAllocator()).isSameAs(MemoryResource.direct());
    }
    cuda.setAllocator(MemoryResource.direct());
    cuda.setAllocator(cuda.defaultMemoryPool());
  }

  @CudaTest
  void scopeOfAnotherThread_doesNotMatter(Cuda cuda, MemoryPool mine, MemoryPool theirs)
      throws InterruptedException {
    try (Scope _ = cuda.useAllocator(mine)) {
      Thread other =
          Thread.ofPlatform()
              .start(() -> {
                try (Scope _ = cuda.useAllocator(theirs)) {
                  cuda.allocate(UNIT).close();
                }
              });
      other.join();
      cuda.allocate(1024).close();
    }
    assertThat(mine.totalBytes()).isEqualTo(1024);
    assertThat(theirs.totalBytes()).isEqualTo(512);
    assertThat(cuda.defaultMemoryPool().totalBytes()).isZero();
  }

  @CudaTest
  void memory_outlivesTheScopeOfItsAllocator(Cuda cuda, MemoryPool pool) {
    Buffer buffer;
    try (Scope _ = cuda.useAllocator(pool)) {
      buffer = cuda.allocate(UNIT);
    }
    buffer.fill((byte) 1);
    assertThat(pool.usedBytes()).isEqualTo(512);
    buffer.close();
    assertThat(pool.usedBytes()).isZero();
  }

  /** CuPy's example of this recurses without end. */
  @CudaTest
  void allocatorThatCallsItself_isFound_notAStackOverflow(Cuda cuda) {
    MemoryResource self = (bytes, stream) -> cuda.allocate(bytes + 1, stream);
    try (Scope _ = cuda.useAllocator(self)) {
      assertThatThrownBy(() -> cuda.allocate(1))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("re-entrant allocation")
          .hasMessageContaining("MemoryResource.direct()");
    }
    cuda.allocate(1).close();
  }

  @CudaTest
  void allocatorsThatCallEachOther_areFound(Cuda cuda) {
    MemoryResource[] two = new MemoryResource[2];
    two[0] =
        (bytes, stream) -> {
          try (Scope _ = cuda.useAllocator(two[1])) {
            return cuda.allocate(bytes, stream);
          }
        };
    two[1] =
        (bytes, stream) -> {
          try (Scope _ = cuda.useAllocator(two[0])) {
            return cuda.allocate(bytes, stream);
          }
        };
    try (Scope _ = cuda.useAllocator(two[0])) {
      assertThatThrownBy(() -> cuda.allocate(1))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("re-entrant allocation");
    }
    assertThat(cuda.currentAllocator()).isSameAs(cuda.defaultMemoryPool());
  }

  @CudaTest
  void allocatorThatUsesAnother_works(Cuda cuda) {
    MemoryResource over =
        (bytes, stream) -> {
          try (Scope _ = cuda.useAllocator(MemoryResource.direct())) {
            return cuda.allocate(bytes, stream);
          }
        };
    try (Scope _ = cuda.useAllocator(over);
        Buffer buffer = cuda.allocate(100)) {
      assertThat(buffer.blockBytes()).isEqualTo(100);
    }
  }

  @CudaTest
  void failedAllocator_canBeAskedAgain(Cuda cuda) {
    AtomicInteger asked = new AtomicInteger();
    MemoryResource failsOnce =
        (bytes, stream) -> {
          if (asked.incrementAndGet() == 1) {
            throw new UnsupportedOperationException("mine");
          }
          return MemoryResource.direct().allocate(bytes, stream);
        };
    try (Scope _ = cuda.useAllocator(failsOnce)) {
      assertThatThrownBy(() -> cuda.allocate(1)).hasMessage("mine");
      cuda.allocate(1).close();
    }
  }

  @CudaTest
  void allocator_isGivenTheStream(Cuda cuda, CudaStream stream) {
    CudaStream[] seen = new CudaStream[1];
    MemoryResource looking =
        (bytes, of) -> {
          seen[0] = of;
          return MemoryResource.direct().allocate(bytes, of);
        };
    try (Scope _ = cuda.useAllocator(looking)) {
      cuda.allocate(1, stream).close();
      assertThat(seen[0]).isEqualTo(stream);
      try (Scope _ = stream.use()) {
        seen[0] = cuda.device(0).nullStream();
        cuda.allocate(1).close();
      }
      assertThat(seen[0]).isEqualTo(stream);
    }
  }

  /** Neither the pool's refusal nor the allocator's own: none is asked. */
  @CudaTest
  void streamOfAnotherCuda_neverReachesTheAllocator(Cuda cuda, Subject subject) {
    CudaStream far = subject.open(options -> options).device(0).nullStream();
    AtomicInteger asked = new AtomicInteger();
    List<MemoryResource> allocators = List.of(cuda.defaultMemoryPool(), counting(asked));
    for (MemoryResource each : allocators) {
      try (Scope _ = cuda.useAllocator(each)) {
        for (long bytes : new long[] {0, 1}) {
          assertThatThrownBy(() -> cuda.allocate(bytes, far))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessage("device 0 belongs to another Cuda (expected: one of this)");
        }
      }
    }
    assertThat(asked).hasValue(0);
  }

  @CudaTest
  void negativeSize_neverReachesTheAllocator(Cuda cuda) {
    AtomicInteger asked = new AtomicInteger();
    try (Scope _ = cuda.useAllocator(counting(asked))) {
      assertThatThrownBy(() -> cuda.allocate(-1))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("bytes: -1 (expected: >= 0)");
    }
    assertThat(asked).hasValue(0);
  }

  @CudaTest
  void pinnedAllocator_canBeReplaced_andCallsItselfNever(Cuda cuda) {
    cuda.setPinnedAllocator(cuda.directPinned());
    try (PinnedBuffer buffer = cuda.allocatePinned(UNEVEN)) {
      assertThat(buffer.blockBytes()).isEqualTo(1000);
    }
    PinnedAllocator self = bytes -> cuda.allocatePinned(bytes);
    cuda.setPinnedAllocator(self);
    assertThat(cuda.pinnedAllocator()).isSameAs(self);
    assertThatThrownBy(() -> cuda.allocatePinned(1))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("re-entrant allocation");
    cuda.setPinnedAllocator(cuda.defaultPinnedMemoryPool());
    cuda.allocatePinned(1).close();
  }

  private static MemoryResource counting(AtomicInteger asked) {
    return (bytes, stream) -> {
      asked.incrementAndGet();
      return MemoryResource.direct().allocate(bytes, stream);
    };
  }
}
