package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.EventCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.internal.fence.WorkMarker;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** An event that is refused as one of a capture is recorded again, and not for ever. */
@Timeout(60)
class RefusedEventTest {
  private final Refusing driver = new Refusing(SimulatedDriver.open(SimulatedOptions.DEFAULTS));
  private final Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver));
  private final CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);

  @AfterEach
  void close() {
    driver.refusals = 0;
    stream.close();
    cuda.close();
  }

  @ParameterizedTest
  @EnumSource(names = {"CAPTURED_EVENT", "INVALID_VALUE"})
  void waitGoesOnAfterACaptureThatIsOver(CudaStatus status) {
    stream.handle(); // somebody may capture it
    driver.refuse(status, 1_000); // of as many captures, one after the other
    stream.synchronize();
    assertThat(driver.refusals).isZero();
    assertThat(stream.isDone()).isTrue();
  }

  @ParameterizedTest
  @EnumSource(names = {"CAPTURED_EVENT", "INVALID_VALUE"})
  void waitEnds_ifTheDriverRefusesForGood(CudaStatus status) {
    stream.handle();
    driver.refuse(status, 1_001);
    assertThatThrownBy(stream::synchronize)
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.status()).isEqualTo(status));
  }

  /** No capture can have the event of a stream that nobody else knows. */
  @Test
  void refusalOfAStreamThatCannotBeCaptured_isAnError() {
    driver.refuse(CudaStatus.INVALID_VALUE, 1);
    WorkMarker marker = WorkMarker.of(stream.state);
    marker.record();
    assertThatThrownBy(marker::await).isInstanceOf(CudaException.class);
    marker.await();
    assertThat(marker.isDone()).isTrue();
  }

  /** Refuses questions about events, and waits for them. */
  private static final class Refusing extends ForwardingDriver {
    private CudaStatus status = CudaStatus.SUCCESS;
    private int refusals;

    Refusing(CudaDriver delegate) {
      super(delegate);
    }

    void refuse(CudaStatus as, int count) {
      status = as;
      refusals = count;
    }

    private void check(String call) {
      if (refusals > 0) {
        refusals--;
        throw new CudaException(status, call, "on purpose");
      }
    }

    private final EventCalls eventCalls =
        new ForwardingEvents(delegate().events()) {
          @Override
          public boolean eventQuery(int device, long event) {
            check("cuEventQuery");
            return super.eventQuery(device, event);
          }

          @Override
          public void eventSynchronize(int device, long event) {
            check("cuEventSynchronize");
            super.eventSynchronize(device, event);
          }
        };

    @Override
    public EventCalls events() {
      return eventCalls;
    }
  }
}
