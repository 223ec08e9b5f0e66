package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.EventCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.clock.Moment;
import io.cuvette.internal.clock.StreamClock;
import io.cuvette.internal.fence.WorkMarker;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The clock of a stream marks work as another thread closes the stream. */
@Timeout(60)
class ClockBesideCloseTest {
  private @Nullable BusyDriver made;
  private final Map<Thread, Stop> stops = new ConcurrentHashMap<>();
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withDecorator(driver -> new Stopping(made = new BusyDriver(driver))));
  private final BusyDriver busy = Objects.requireNonNull(made);
  private final CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);

  @AfterEach
  void close() {
    busy.finish(stream);
    cuda.close();
  }

  /** A call of the driver in which a thread stands. */
  private record Stop(String call, CountDownLatch at, CountDownLatch goOn) {}

  /** Starts a thread, which stands in its first such call when this returns. */
  private Thread stopped(String call, Runnable step) throws InterruptedException {
    Stop stop = new Stop(call, new CountDownLatch(1), new CountDownLatch(1));
    Thread thread = Thread.ofPlatform().daemon().unstarted(step);
    stops.put(thread, stop);
    thread.start();
    stop.at.await();
    return thread;
  }

  private void goOn(Thread thread) {
    Objects.requireNonNull(stops.get(thread)).goOn.countDown();
  }

  /**
   * It looked whether the stream is closed before that began, and makes its mark while the closing
   * thread waits for a third one.
   */
  @Test
  void markThatIsMadeAsTheStreamEnds_leavesNoEvent() throws InterruptedException {
    StreamClock clock = stream.state.clock;
    busy.begin(stream);
    clock.ask(clock.now() + 1);
    Moment _ = clock.moment(0);
    WorkMarker third = WorkMarker.of(stream.state);
    Thread marking = stopped("eventQuery", () -> clock.ask(clock.now() + 1));
    Thread closing = stopped("eventCreate", stream::close);
    Thread recording = stopped("eventCreate", third::record);
    goOn(closing);
    Await.until(stream.state::isClosed);
    closing.join(50); // it waits for the third thread now
    goOn(marking);
    marking.join();
    goOn(recording);
    recording.join();
    closing.join();
    third.abandon();
    busy.finish(stream);
    cuda.device(0).synchronize();
    assertThat(busy.liveEvents()).isEqualTo(cuda.device(0).core().spareEvents.count());
  }

  /** Stands still in calls about events. */
  private final class Stopping extends ForwardingDriver {
    Stopping(CudaDriver delegate) {
      super(delegate);
    }

    private void stand(String call) {
      Stop stop = stops.get(Thread.currentThread());
      if (stop != null && stop.call.equals(call)) {
        stop.at.countDown();
        Await.until(() -> stop.goOn.getCount() == 0);
      }
    }

    private final EventCalls eventCalls =
        new ForwardingEvents(delegate().events()) {
          @Override
          public long eventCreate(int device, int flags) {
            stand("eventCreate");
            return super.eventCreate(device, flags);
          }

          @Override
          public boolean eventQuery(int device, long event) {
            stand("eventQuery");
            return super.eventQuery(device, event);
          }
        };

    @Override
    public EventCalls events() {
      return eventCalls;
    }
  }
}
