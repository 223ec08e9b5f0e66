package io.cuvette.testkit.whole;

import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryHook;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.NativeFunctionResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PinnedAllocator;
import io.cuvette.PoolOptions;
import io.cuvette.Registration;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Forgetting;
import io.cuvette.testkit.support.NativeFunctions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Timeout;

/** Code that the library calls and that closes the Cuda: refused, and nothing is closed. */
@Timeout(60)
class CloseFromInsideTest {
  private final List<RuntimeException> refusals = new CopyOnWriteArrayList<>();

  private void close(Cuda cuda) {
    try {
      cuda.close();
      refusals.add(new IllegalStateException("was closed"));
    } catch (RuntimeException e) {
      refusals.add(e);
    }
  }

  private void assertRefused(Cuda cuda, int atLeast) {
    assertThat(refusals)
        .hasSizeGreaterThanOrEqualTo(atLeast)
        .allSatisfy(e ->
            assertThat(e)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageStartingWith("Cuda.close() inside what the library called for "));
    assertThat(cuda.isClosed()).isFalse();
    try (Buffer works = MemoryResource.direct().allocate(UNIT, cuda.currentStream())) {
      works.fill((byte) 1);
    }
  }

  @CudaTest
  void allocators(Cuda cuda) {
    MemoryResource closing =
        (bytes, stream) -> {
          close(cuda);
          return MemoryResource.direct().allocate(bytes, stream);
        };
    try (var _ = cuda.useAllocator(closing);
        Buffer _ = cuda.allocate(UNIT)) {
      assertRefused(cuda, 1);
    }
    try (MemoryPool pool = new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(closing));
        Buffer _ = pool.allocate(UNIT)) {
      assertRefused(cuda, 2);
    }
    PinnedAllocator before = cuda.pinnedAllocator();
    cuda.setPinnedAllocator(bytes -> {
      close(cuda);
      return cuda.directPinned().allocate(bytes);
    });
    cuda.allocatePinned(UNIT).close();
    cuda.setPinnedAllocator(before);
    assertRefused(cuda, 3);
  }

  @CudaTest
  void hooks(Cuda cuda) {
    MemoryHook hook =
        new MemoryHook() {
          @Override
          public void allocPreprocess(Growth growth) {
            close(cuda);
          }

          @Override
          public void allocPostprocess(Growth growth) {
            close(cuda);
          }

          @Override
          public void mallocPreprocess(Block block) {
            close(cuda);
          }

          @Override
          public void mallocPostprocess(Block block) {
            close(cuda);
          }

          @Override
          public void freePreprocess(Block block) {
            close(cuda);
          }

          @Override
          public void freePostprocess(Block block) {
            close(cuda);
          }
        };
    try (MemoryPool pool = new MemoryPool(cuda)) {
      try (var _ = pool.addHook(hook)) {
        pool.allocate(UNIT).close();
      }
    }
    assertRefused(cuda, 6);
  }

  @CudaTest
  void pressureListeners(Cuda cuda) {
    try (MemoryPool pool = new MemoryPool(cuda)) {
      pool.setLimit(new MemoryLimit.Bytes(512));
      Registration listening =
          pool.addPressureListener((_, _) -> {
            close(cuda);
            return 0;
          });
      try (listening;
          Buffer all = pool.allocate(UNIT)) {
        assertThatThrownBy(() -> pool.allocate(UNIT, all.stream()))
            .isInstanceOf(OutOfDeviceMemoryException.class);
      }
    }
    assertRefused(cuda, 1);
  }

  @CudaTest
  void nativeFunctions(Subject subject) {
    Cuda cuda = subject.cuda();
    try (Arena arena = Arena.ofShared()) {
      NativeFunctions functions =
          new NativeFunctions(
              subject,
              arena,
              (_, bytes, device) -> {
                close(cuda);
                return cuda.driver().memory().memAlloc(device, bytes);
              },
              (_, address, device) -> {
                close(cuda);
                cuda.driver().memory().memFree(device, address);
              });
      new NativeFunctionResource(functions.malloc(), functions.free(), MemorySegment.NULL, arena)
          .allocate(UNIT, cuda.currentStream())
          .close();
    }
    assertRefused(cuda, 2);
  }

  @CudaTest
  void callbacks(Cuda cuda) {
    try (CudaStream stream = cuda.device(0).createStream()) {
      var done = stream.addCallback(() -> close(cuda));
      stream.synchronize();
      done.join();
    }
    assertRefused(cuda, 1);
  }

  @CudaTest
  void adoptedMemory(Cuda cuda) {
    var driver = cuda.driver();
    long address = driver.memory().memAlloc(0, 512);
    cuda.device(0)
        .adopt(
            address,
            512,
            () -> {
              close(cuda);
              driver.memory().memFree(0, address);
            })
        .close();
    assertRefused(cuda, 1);
  }

  @CudaTest(tidy = false)
  void leakListener(Subject subject) throws InterruptedException {
    Cuda[] opened = new Cuda[1];
    Cuda cuda =
        subject.open(options ->
            options.withLeakLevel(LeakLevel.COUNT).withLeakListener(_ -> close(opened[0])));
    opened[0] = cuda;
    Forgetting.of(() -> cuda.device(0).createEvent());
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 1)).isTrue();
    assertRefused(cuda, 1);
  }
}
