package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.StreamCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingStreams;
import io.cuvette.internal.order.OpenStream;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Streams that the library makes for itself: none waits for the null stream, and all end. */
class OwnStreamsTest {
  private static final int BYTES = 64;

  private final List<Integer> flags = new ArrayList<>();
  private final List<Integer> priorities = new ArrayList<>();
  private int live;

  private CudaDriver noting(CudaDriver driver) {
    StreamCalls streams =
        new ForwardingStreams(driver.streams()) {
          @Override
          public long streamCreateWithPriority(int device, int given, int priority) {
            flags.add(given);
            priorities.add(priority);
            live++;
            return super.streamCreateWithPriority(device, given, priority);
          }

          @Override
          public void streamDestroy(int device, long stream) {
            live--;
            super.streamDestroy(device, stream);
          }
        };
    return new ForwardingDriver(driver) {
      @Override
      public StreamCalls streams() {
        return streams;
      }
    };
  }

  private Cuda open() {
    return Cuda.open(
        CudaOptions.simulated().withDevice("sim:devices=2").withDecorator(this::noting));
  }

  @Test
  void memoryBesideACapture_isMadeInAStreamThatWaitsForNoOther() {
    try (Cuda cuda = open();
        AsyncMemoryPool pool = new AsyncMemoryPool(cuda);
        CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
      pool.allocate(BYTES, stream).close();
      flags.clear();
      stream.beginCapture(CaptureOptions.DEFAULTS);
      Buffer buffer = pool.allocate(BYTES, stream);
      stream.endCapture().close();
      buffer.close();
      assertThat(flags).containsExactly(1);
      assertThat(live).isOne();
    }
  }

  @Test
  void copyForADeviceWithoutAccess_isMadeInAStreamThatWaitsForNoOther() {
    try (Cuda cuda = open();
        var pool = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
        Buffer buffer = pool.allocate(BYTES);
        Scope _ = cuda.device(1).use();
        PinnedBuffer pinned = cuda.allocatePinned(BYTES);
        CudaStream stream = cuda.device(1).createStream(StreamOptions.NON_BLOCKING)) {
      cuda.device(0).synchronize();
      flags.clear();
      pinned.segment().fill((byte) 7);
      buffer.copyFrom(pinned, stream);
      buffer.copyTo(pinned, stream);
      stream.synchronize();
      assertThat(flags).containsExactly(1, 1);
      assertThat(live).isOne();
    }
  }

  /** What waits for it waits for the library alone. */
  @Test
  void streamThatTheLibraryKeeps_isTheMostUrgent() {
    try (Cuda cuda = open()) {
      CudaDevice device = cuda.device(0);
      OpenStream stream = OpenStream.createForLibrary(cuda.engine().streams(), device.core());
      assertThat(priorities).containsExactly(device.core().priorityRange().greatest());
      assertThat(flags).containsExactly(1);
      stream.close();
      assertThat(live).isZero();
    }
  }
}
