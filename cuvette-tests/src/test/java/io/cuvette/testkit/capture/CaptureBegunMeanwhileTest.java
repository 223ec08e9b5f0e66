package io.cuvette.testkit.capture;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.TransferCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingTransfers;
import io.cuvette.testkit.support.Bytes;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Another thread begins to capture a stream, which was captured before and whose handle nobody has,
 * right before the driver is called for an operation on it: what the operation uses is the graph's.
 */
class CaptureBegunMeanwhileTest {
  private static final int BYTES = 4096;

  private volatile @Nullable Runnable meanwhile;
  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(this::interrupted));
  private final CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);

  @AfterEach
  void close() {
    stream.close();
    cuda.close();
  }

  private CudaDriver interrupted(CudaDriver driver) {
    TransferCalls transfers =
        new ForwardingTransfers(driver.transfers()) {
          @Override
          public void memcpyAsync(int device, long target, long source, long bytes, long of) {
            doMeanwhile();
            super.memcpyAsync(device, target, source, bytes, of);
          }
        };
    return new ForwardingDriver(driver) {
      @Override
      public TransferCalls transfers() {
        return transfers;
      }
    };
  }

  private void doMeanwhile() {
    Runnable step = meanwhile;
    if (step != null) {
      meanwhile = null;
      CompletableFuture.runAsync(step).join();
    }
  }

  @Test
  void memoryOfTheOperation_staysAsLongAsTheGraph() {
    try (Buffer target = cuda.allocate(BYTES, stream)) {
      stream.capture(() -> {}).close();
      Buffer source = cuda.allocate(BYTES, stream);
      source.fill((byte) 7, stream);
      meanwhile = () -> stream.beginCapture(CaptureOptions.DEFAULTS);

      target.copyFrom(source, stream);
      try (CudaGraph graph = stream.endCapture()) {
        source.close();
        try (Buffer other = cuda.allocate(BYTES, stream);
            CudaGraphExec executable = graph.instantiate()) {
          other.fill((byte) 1, stream);
          executable.launch(stream);
          stream.synchronize();
          assertThat(Bytes.areAll(target, 7)).isTrue();
        }
      }
    }
  }
}
