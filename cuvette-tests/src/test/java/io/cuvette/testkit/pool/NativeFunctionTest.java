package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.NativeFunctionResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.NativeFunctions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/** An allocator that is a pair of C functions. */
class NativeFunctionTest {

  @CudaTest
  void functions_areCalledWithTheParameterTheSizeAndTheDevice(Subject subject) {
    Cuda cuda = subject.cuda();
    CudaDriver driver = cuda.driver();
    try (Arena arena = Arena.ofShared()) {
      NativeFunctions functions =
          new NativeFunctions(
              subject,
              arena,
              (parameter, bytes, device) -> {
                assertThat(parameter).isEqualTo(0x77);
                assertThat(bytes).isEqualTo(1000);
                assertThat(device).isZero();
                return driver.memory().memAlloc(device, bytes);
              },
              (parameter, address, device) -> {
                assertThat(parameter).isEqualTo(0x77);
                driver.memory().memFree(device, address);
              });
      NativeFunctionResource resource =
          new NativeFunctionResource(
              functions.malloc(), functions.free(), MemorySegment.ofAddress(0x77), arena);
      assertThat(resource.owner()).isSameAs(arena);
      Buffer buffer = resource.allocate(UNEVEN, cuda.currentStream());
      assertThat(buffer.byteSize()).isEqualTo(1000);
      buffer.fill((byte) 1);
      assertThat(functions.mallocs()).isEqualTo(1);
      assertThat(functions.frees()).isZero();
      buffer.close();
      buffer.close();
      assertThat(functions.frees()).isEqualTo(1);
    }
  }

  @CudaTest
  void noBytes_callNothing(Subject subject) {
    Cuda cuda = subject.cuda();
    try (Arena arena = Arena.ofShared()) {
      NativeFunctions functions = NativeFunctions.ofDriver(subject, arena);
      NativeFunctionResource resource = resource(functions);
      try (Buffer empty = resource.allocate(0, cuda.currentStream())) {
        assertThat(empty.address()).isZero();
      }
      assertThat(functions.mallocs()).isZero();
      assertThat(functions.frees()).isZero();
      assertThatThrownBy(() -> resource.allocate(-1, cuda.currentStream()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("bytes: -1 (expected: >= 0)");
    }
  }

  @CudaTest
  void functionsThatReturned_leaveTheThreadFree(Subject subject) {
    Cuda cuda = subject.cuda();
    try (Arena arena = Arena.ofShared()) {
      NativeFunctions functions = NativeFunctions.ofDriver(subject, arena);
      NativeFunctionResource resource = resource(functions);
      for (int i = 1; i <= 3; i++) {
        resource.allocate(UNEVEN, cuda.currentStream()).close();
        assertThat(functions.mallocs()).isEqualTo(i);
        assertThat(functions.frees()).isEqualTo(i);
      }
      Cuda other = subject.open(options -> options);
      other.close(); // which is refused inside of a function
    }
  }

  @CudaTest
  void closedStream_isRefused_beforeAFunctionIsCalled(Subject subject) {
    Cuda cuda = subject.cuda();
    try (Arena arena = Arena.ofShared()) {
      NativeFunctions functions = NativeFunctions.ofDriver(subject, arena);
      CudaStream closed = cuda.device(0).createStream();
      closed.close();
      for (MemoryResource resource :
          List.of(
              resource(functions),
              MemoryResource.direct(),
              MemoryResource.managed(),
              MemoryResource.async(),
              cuda.defaultMemoryPool())) {
        for (long bytes : new long[] {0, 1000}) {
          assertThatThrownBy(() -> resource.allocate(bytes, closed))
              .as("%d bytes of %s", bytes, resource)
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("closed");
        }
      }
      assertThat(functions.mallocs()).isZero();
    }
  }

  @CudaTest
  void null_isOutOfMemory(Subject subject) {
    Cuda cuda = subject.cuda();
    try (Arena arena = Arena.ofShared()) {
      NativeFunctions functions =
          new NativeFunctions(subject, arena, (parameter, bytes, device) -> 0, (p, a, d) -> {});
      assertThatThrownBy(() -> resource(functions).allocate(UNEVEN, cuda.currentStream()))
          .isInstanceOfSatisfying(
              OutOfDeviceMemoryException.class,
              e -> {
                assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY);
                assertThat(e.details().requestedBytes()).isEqualTo(1000);
              })
          .hasCauseInstanceOf(CudaException.class)
          .hasMessageContaining("bytes=1000")
          .hasMessageContaining("NULL");
      assertThat(functions.frees()).isZero();
    }
  }

  @CudaTest
  void poolOverFunctions_splitsTheirMemory_andGivesItBack(Subject subject) {
    Cuda cuda = subject.cuda();
    try (Arena arena = Arena.ofShared()) {
      NativeFunctions functions = NativeFunctions.ofDriver(subject, arena);
      try (MemoryPool pool = over(cuda, functions)) {
        pool.allocate(4 * UNIT).close();
        try (Buffer head = pool.allocate(UNIT);
            Buffer tail = pool.allocate(UNIT)) {
          assertThat(tail.address()).isEqualTo(head.address() + UNIT);
          tail.fill((byte) 1);
        }
        assertThat(functions.mallocs()).isEqualTo(1);
        assertThat(pool.freeAllBlocks()).isEqualTo(4 * UNIT);
        assertThat(functions.frees()).isEqualTo(1);
      }
    }
  }

  @CudaTest
  void poolOverFunctions_recoversFromNull(Subject subject) {
    Cuda cuda = subject.cuda();
    AtomicBoolean full = new AtomicBoolean(true);
    CudaDriver driver = cuda.driver();
    try (Arena arena = Arena.ofShared()) {
      NativeFunctions functions =
          new NativeFunctions(
              subject,
              arena,
              (parameter, bytes, device) ->
                  full.getAndSet(false) ? 0 : driver.memory().memAlloc(device, bytes),
              (parameter, address, device) -> driver.memory().memFree(device, address));
      try (MemoryPool pool = over(cuda, functions)) {
        pool.allocate(UNIT).close();
        assertThat(functions.mallocs()).isEqualTo(2);
      }
    }
  }

  @CudaTest
  void poolOverFunctionsThatAlwaysFail_isOutOfMemory(Subject subject) {
    Cuda cuda = subject.cuda();
    try (Arena arena = Arena.ofShared()) {
      NativeFunctions functions =
          new NativeFunctions(subject, arena, (parameter, bytes, device) -> 0, (p, a, d) -> {});
      try (MemoryPool pool = over(cuda, functions)) {
        assertThatThrownBy(() -> pool.allocate(UNIT))
            .isInstanceOf(OutOfDeviceMemoryException.class);
        assertThat(pool.totalBytes()).isZero();
      }
    }
  }

  @CudaTest
  void addressesThatAreNoFunctions_areRefused(Cuda cuda) {
    MemorySegment heap = MemorySegment.ofArray(new byte[8]);
    MemorySegment some = MemorySegment.ofAddress(0x1000);
    assertThat(cuda.isClosed()).isFalse();
    for (MemorySegment wrong : new MemorySegment[] {heap, MemorySegment.NULL}) {
      assertThatThrownBy(() -> new NativeFunctionResource(wrong, some, MemorySegment.NULL, null))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("malloc");
      assertThatThrownBy(() -> new NativeFunctionResource(some, wrong, MemorySegment.NULL, null))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("free");
    }
    assertThatThrownBy(() -> new NativeFunctionResource(some, some, heap, null))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("parameter: %s (expected: a native segment, or NULL)", heap);
  }

  private static NativeFunctionResource resource(NativeFunctions functions) {
    return new NativeFunctionResource(
        functions.malloc(), functions.free(), MemorySegment.NULL, functions);
  }

  private static MemoryPool over(Cuda cuda, NativeFunctions functions) {
    return new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(resource(functions)));
  }
}
