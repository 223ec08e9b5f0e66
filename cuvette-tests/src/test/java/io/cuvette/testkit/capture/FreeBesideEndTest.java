package io.cuvette.testkit.capture;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.GraphMemoryResource;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.instrument.ForwardingCaptures;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingOrdered;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Memory of a capture is not freed while the driver ends that, which would crash. */
class FreeBesideEndTest {
  private final CountDownLatch freeing = new CountDownLatch(1);
  private volatile @Nullable Buffer buffer;
  private volatile @Nullable CompletableFuture<Void> closed;
  private volatile boolean freedMeanwhile;

  /** What ends a capture. */
  enum End {
    CUDA_CLOSED(stream -> stream.device().cuda().close()),
    STREAM_CLOSED(CudaStream::close),
    CAPTURE_ENDED(stream -> stream.endCapture().close());

    private final Consumer<CudaStream> step;

    End(Consumer<CudaStream> step) {
      this.step = step;
    }
  }

  private CudaDriver watched(CudaDriver driver) {
    OrderedCalls ordered =
        new ForwardingOrdered(driver.ordered()) {
          @Override
          public void memFreeAsync(int device, long address, long stream) {
            freeing.countDown();
            super.memFreeAsync(device, address, stream);
          }
        };
    CaptureCalls captures =
        new ForwardingCaptures(driver.captures()) {
          @Override
          public long streamEndCapture(int device, long stream) {
            closeMeanwhile();
            return super.streamEndCapture(device, stream);
          }
        };
    return new ForwardingDriver(driver) {
      @Override
      public OrderedCalls ordered() {
        return ordered;
      }

      @Override
      public CaptureCalls captures() {
        return captures;
      }
    };
  }

  /** Who frees in time is seen; who waits for the end of the capture cannot be waited for here. */
  private void closeMeanwhile() {
    Buffer memory = buffer;
    if (memory != null) {
      buffer = null;
      closed = CompletableFuture.runAsync(memory::close);
      try {
        freedMeanwhile = freeing.await(300, TimeUnit.MILLISECONDS);
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void memory_isNotFreedWhileItsCaptureEnds(End end) {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(this::watched))) {
      CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      stream.beginCapture(CaptureOptions.DEFAULTS);
      buffer = new GraphMemoryResource(cuda.device(0)).allocate(4096, stream);

      end.step.accept(stream);

      Objects.requireNonNull(closed, "the capture was ended").join();
      assertThat(freedMeanwhile).isFalse();
    }
  }
}
