package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.EventCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.internal.fence.WorkMarker;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Threads that wait for a marker, of which one asks the driver. */
@Timeout(120)
class WorkMarkerWaitTest {
  private static final long PATIENCE_SECONDS = 30;

  private final CountDownLatch asking = new CountDownLatch(1);
  private final CountDownLatch goOn = new CountDownLatch(1);

  /** Virtual threads that only yield would keep the carriers from the thread they wait for. */
  @Test
  void interruptedVirtualThreads_leaveTheirCarriersToTheOneThatAsks() throws Exception {
    int many = 4 * Runtime.getRuntime().availableProcessors();
    CountDownLatch waiting = new CountDownLatch(many);
    CountDownLatch done = new CountDownLatch(many);
    Cuda cuda =
        Cuda.open(
            CudaOptions.DEFAULTS
                .withDriver(SimulatedDriver.open(SimulatedOptions.DEFAULTS))
                .withDecorator(Held::new));
    CudaStream stream = cuda.device(0).createStream();
    WorkMarker marker = WorkMarker.of(stream.state);
    marker.record();
    Thread.startVirtualThread(marker::await);
    asking.await();
    for (int i = 0; i < many; i++) {
      Thread.startVirtualThread(() -> {
        Thread.currentThread().interrupt();
        waiting.countDown();
        marker.await();
        assertThat(Thread.interrupted()).isTrue();
        done.countDown();
      });
    }
    assertThat(waiting.await(PATIENCE_SECONDS, TimeUnit.SECONDS)).as("all wait").isTrue();
    Thread.startVirtualThread(goOn::countDown);
    assertThat(done.await(PATIENCE_SECONDS, TimeUnit.SECONDS)).as("all are done").isTrue();
    cuda.close();
  }

  /** Else what that thread used never comes back, for nobody else may ask its stream. */
  @Test
  void workOfTheOwnStreamOfAnotherThread_isMarkedInTheNullStream() throws Exception {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      AtomicReference<DriverStream> own = new AtomicReference<>();
      Thread.ofPlatform().start(() -> own.set(cuda.device(0).perThreadStream().state)).join();
      WorkMarker marker = WorkMarker.of(own.get());
      marker.record();
      assertThat(marker.isRecorded()).isTrue();
      marker.await();
      assertThat(marker.isDone()).isTrue();
    }
  }

  /** Holds waits for events until they may go on. */
  private final class Held extends ForwardingDriver {
    Held(CudaDriver delegate) {
      super(delegate);
    }

    private final EventCalls eventCalls =
        new ForwardingEvents(delegate().events()) {
          @Override
          public void eventSynchronize(int device, long event) {
            asking.countDown();
            Latches.await(goOn);
            super.eventSynchronize(device, event);
          }
        };

    @Override
    public EventCalls events() {
      return eventCalls;
    }
  }
}
