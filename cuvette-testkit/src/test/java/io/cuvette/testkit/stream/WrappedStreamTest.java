package io.cuvette.testkit.stream;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.testkit.support.AtOnce;
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

  private static void useOften(Cuda cuda, CudaDevice device, long handle) {
    for (int i = 0; i < 1000; i++) {
      try (CudaStream stream = device.wrapStream(handle, null)) {
        cuda.allocate(512, stream).close();
      }
    }
  }
}
