package io.cuvette.testkit.stream;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.support.AtOnce;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import org.junit.jupiter.api.Test;

class WrappedStreamTest {
  @Test
  void wrappersOfOneHandle_comeAndGoOnManyThreads() throws InterruptedException {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      CudaDevice device = cuda.device(0);
      long handle = cuda.driver().streams().streamCreateWithPriority(0, 1, 0);
      new AtOnce().run(4, _ -> useOften(cuda, device, handle));
      cuda.defaultMemoryPool().freeAllBlocks();
      assertThat(cuda.defaultMemoryPool().totalBytes()).isZero();
      cuda.driver().streams().streamDestroy(0, handle);
    }
  }

  /** Such as the object of another library that ends the stream when it is collected. */
  @CudaTest
  void ownerOfAWrappedStream_isReachable_asLongAsTheWrapperIs(Cuda cuda) {
    long handle = cuda.driver().streams().streamCreateWithPriority(0, 1, 0);
    Object[] given = {new Object()};
    WeakReference<Object> owner = new WeakReference<>(given[0]);
    try (CudaStream wrapped = cuda.device(0).wrapStream(handle, given[0])) {
      given[0] = null;
      for (int i = 0; i < 3; i++) {
        System.gc();
      }
      assertThat(owner.get()).isNotNull();
      Reference.reachabilityFence(wrapped);
    }
    cuda.driver().streams().streamDestroy(0, handle);
  }

  @CudaTest
  void closedWrapper_isRefused_whileTheStreamIsOpenThroughAnother(Cuda cuda, CudaStream other) {
    CudaDevice device = cuda.device(0);
    long handle = cuda.driver().streams().streamCreateWithPriority(0, 1, 0);
    CudaStream open = device.wrapStream(handle, null);
    CudaStream closed = device.wrapStream(handle, null);
    closed.close();
    try (Buffer buffer = cuda.allocate(64)) {
      for (Runnable call :
          new Runnable[] {
            closed::synchronize,
            closed::isDone,
            closed::priority,
            () -> closed.addCallback(() -> {}),
            closed::onComplete,
            () -> closed.waitFor(other),
            () -> other.waitFor(closed),
            closed::use,
            () -> cuda.setCurrentStream(closed),
            () -> buffer.fill((byte) 1, closed),
            () -> buffer.recordUse(closed),
            () -> cuda.allocate(64, closed)
          }) {
        assertThatThrownBy(call::run)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("is closed");
      }
      buffer.fill((byte) 1, open);
      open.synchronize();
    }
    open.close();
    cuda.driver().streams().streamDestroy(0, handle);
  }

  private static void useOften(Cuda cuda, CudaDevice device, long handle) {
    for (int i = 0; i < 1000; i++) {
      try (CudaStream stream = device.wrapStream(handle, null)) {
        cuda.allocate(512, stream).close();
      }
    }
  }
}
