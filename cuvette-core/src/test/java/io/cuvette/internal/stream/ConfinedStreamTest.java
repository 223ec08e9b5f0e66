package io.cuvette.internal.stream;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.EngineMemory;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The default stream of a thread, which has the same handle as those of all others. */
@Timeout(60)
class ConfinedStreamTest {
  private static final int RELAXED = 2;

  @Test
  void streamOfAnotherThread_isNotTakenForThatOfTheCaller_whichIsCapturing() throws Exception {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      CudaDevice device = cuda.device(0);
      FutureTask<CudaStream> made = new FutureTask<>(device::perThreadStream);
      Thread.ofPlatform().start(made);
      DriverStream theirs = EngineMemory.streamOf(made.get());
      CudaStream own = device.perThreadStream();
      cuda.driver().captures().streamBeginCapture(0, own.handle(), RELAXED);
      assertThat(EngineMemory.streamOf(own).capture()).isNotNull();
      assertThat(theirs.capture()).isNull();
      long graph = cuda.driver().captures().streamEndCapture(0, own.handle());
      cuda.driver().graphs().graphDestroy(graph);
    }
  }
}
