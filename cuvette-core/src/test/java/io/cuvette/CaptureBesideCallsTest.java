package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.ForwardingCaptures;
import io.cuvette.instrument.ForwardingDriver;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Nobody asks the driver about a capture that begins or ends at that moment: it crashes, which the
 * simulator does not.
 */
@Timeout(60)
class CaptureBesideCallsTest {
  private static final int THREADS = 4;
  private static final int CAPTURES = 300;

  private final Queue<String> met = new ConcurrentLinkedQueue<>();

  /** Sees calls that another thread's beginning or ending of a capture meets; of one stream. */
  private final class Watched extends ForwardingDriver {
    private final AtomicInteger asking = new AtomicInteger();
    private volatile boolean changes;

    private final CaptureCalls calls =
        new ForwardingCaptures(delegate().captures()) {
          @Override
          public void streamBeginCapture(int device, long stream, int mode) {
            begins("streamBeginCapture");
            super.streamBeginCapture(device, stream, mode);
            linger();
            changes = false;
          }

          @Override
          public long streamEndCapture(int device, long stream) {
            begins("streamEndCapture");
            long graph = super.streamEndCapture(device, stream);
            linger();
            changes = false;
            return graph;
          }

          @Override
          public CaptureInfo streamGetCaptureInfo(int device, long stream) {
            return asked("streamGetCaptureInfo", () -> super.streamGetCaptureInfo(device, stream));
          }

          @Override
          public int streamIsCapturing(int device, long stream) {
            return asked("streamIsCapturing", () -> super.streamIsCapturing(device, stream));
          }
        };

    Watched(CudaDriver delegate) {
      super(delegate);
    }

    private void begins(String call) {
      changes = true;
      if (asking.get() != 0) {
        met.add(call);
      }
    }

    private <T> T asked(String call, Supplier<T> question) {
      asking.incrementAndGet();
      try {
        if (changes) {
          met.add(call);
        }
        linger();
        return question.get();
      } finally {
        asking.decrementAndGet();
      }
    }

    /** Long enough for others to come. */
    private static void linger() {
      for (int i = 0; i < 2_000; i++) {
        Thread.onSpinWait();
      }
    }

    @Override
    public CaptureCalls captures() {
      return calls;
    }
  }

  @Test
  void threadsThatAllocate_askAboutNoCaptureThatBeginsOrEnds() {
    AtomicBoolean isOver = new AtomicBoolean();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(Watched::new));
        MemoryPool pool = new MemoryPool(cuda);
        CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
      OnThreads.run(
          THREADS,
          thread -> {
            if (thread == 0) {
              capture(stream, isOver);
            }
            while (!isOver.get()) {
              pool.allocate(1 << 10, stream).close();
            }
          });
    }
    assertThat(met).as("calls beside a change").isEmpty();
  }

  private static void capture(CudaStream stream, AtomicBoolean isOver) {
    try {
      for (int i = 0; i < CAPTURES; i++) {
        stream.beginCapture(CaptureOptions.DEFAULTS);
        stream.endCapture().close();
      }
    } finally {
      isOver.set(true);
    }
  }
}
