package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.EventCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.internal.fence.IdleMark;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Two threads that ask at once whether a stream is idle. */
@Timeout(60)
class IdleMarkTest {
  private final SimulatedDriver simulator = SimulatedDriver.open(SimulatedOptions.DEFAULTS);

  /** What another thread does while an event is recorded. */
  private final Deque<Runnable> meanwhile = new ArrayDeque<>();

  @Test
  void markThatAnotherThreadWasFasterWith_isGivenBack() {
    CountDownLatch gate = new CountDownLatch(1);
    try (Cuda cuda =
        Cuda.open(CudaOptions.DEFAULTS.withDriver(simulator).withDecorator(Meanwhile::new))) {
      CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      cuda.driver().streams().launchHostFunc(0, stream.handle(), () -> OverFakeSharing.await(gate));
      DriverStream state = stream.core().state;
      IdleMark mark = new IdleMark(state, state.streams.ended());
      meanwhile.add(() -> assertThat(mark.isReached()).isFalse());
      assertThat(mark.isReached()).isFalse();
      assertThat(meanwhile).isEmpty();
      gate.countDown();
      stream.synchronize();
      mark.forget();
      stream.close();
      cuda.device(0).createStream().close(); // looks at marks of streams that are over
      assertThat(simulator.report()).as("left behind").doesNotContain("event");
    }
  }

  private final class Meanwhile extends ForwardingDriver {
    private final EventCalls eventCalls;

    Meanwhile(CudaDriver delegate) {
      super(delegate);
      this.eventCalls =
          new ForwardingEvents(delegate.events()) {
            @Override
            public void eventRecord(int device, long event, long stream) {
              Runnable other = meanwhile.poll();
              if (other != null) {
                other.run();
              }
              super.eventRecord(device, event, stream);
            }
          };
    }

    @Override
    public EventCalls events() {
      return eventCalls;
    }
  }
}
