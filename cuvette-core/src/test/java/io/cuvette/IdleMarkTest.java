package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.EventCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.internal.fence.EndedStreams;
import io.cuvette.internal.fence.Fence;
import io.cuvette.internal.fence.IdleMark;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Two threads that ask at once whether a stream is idle. */
@Timeout(60)
class IdleMarkTest {
  /** Longer than a device takes to come to an event. */
  private static final long MOMENT_NANOS = 60_000;

  private final SimulatedDriver simulator = SimulatedDriver.open(SimulatedOptions.DEFAULTS);

  /** What another thread does while an event is recorded. */
  private final Deque<Runnable> meanwhile = new ArrayDeque<>();

  /** How many queries, each of a moment, find an event not done that is then; −1: as it is. */
  private int notYet = -1;

  @Test
  void markThatAnotherThreadWasFasterWith_isGivenBack() {
    CountDownLatch gate = new CountDownLatch(1);
    try (Cuda cuda =
        Cuda.open(CudaOptions.DEFAULTS.withDriver(simulator).withDecorator(Meanwhile::new))) {
      CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      cuda.driver().streams().launchHostFunc(0, stream.handle(), () -> Latches.await(gate));
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

  @Test
  void marker_isTheMarksAlone_untilThatIsForgotten() {
    CountDownLatch gate = new CountDownLatch(1);
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(simulator))) {
      CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      EndedStreams ended = new EndedStreams();
      IdleMark mark = new IdleMark(stream.core().state, ended);
      assertThat(mark.isReached()).isTrue();
      cuda.driver().streams().launchHostFunc(0, stream.handle(), () -> Latches.await(gate));
      boolean isReached = mark.isReached();
      List<Fence> before = new ArrayList<>();
      ended.addTo(before, cuda.device(0).core());
      mark.forget();
      List<Fence> after = new ArrayList<>();
      ended.addTo(after, cuda.device(0).core());
      gate.countDown();
      stream.synchronize();
      ended.pollAll();
      assertThat(isReached).isFalse();
      assertThat(before).isEmpty();
      assertThat(after).hasSize(1);
    }
  }

  /** The thread itself may be late: a moment that is over after one question says nothing. */
  @Test
  void streamThatIsIdleAfterAMoment_isAskedOftenEnough() {
    try (Cuda cuda =
        Cuda.open(CudaOptions.DEFAULTS.withDriver(simulator).withDecorator(Meanwhile::new))) {
      CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      DriverStream state = stream.core().state;
      state.expose(); // so that the stream itself is not asked
      IdleMark mark = new IdleMark(state, state.streams.ended());
      notYet = 31;
      assertThat(mark.isReachedSoon()).isTrue();
      assertThat(notYet).isZero();
      notYet = Integer.MAX_VALUE;
      assertThat(mark.isReachedSoon()).as("it has an end").isFalse();
      notYet = 1;
      assertThat(mark.isReached()).as("no moment is given").isFalse();
      notYet = -1;
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

            @Override
            public boolean eventQuery(int device, long event) {
              if (notYet < 0) {
                return super.eventQuery(device, event);
              }
              if (notYet == 0) {
                super.eventSynchronize(device, event);
                return true;
              }
              notYet--;
              long begun = System.nanoTime();
              while (System.nanoTime() - begun < MOMENT_NANOS) {
                Thread.onSpinWait();
              }
              return false;
            }
          };
    }

    @Override
    public EventCalls events() {
      return eventCalls;
    }
  }
}
