package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.base.Await;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What becomes of the driver's event if a capture may have it. */
@Timeout(60)
class CapturedEventTest extends OrderingFixture {
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(30);

  /** A graph that has it would be of what it orders next. */
  @Test
  void eventThatOrdersAStreamWhichOthersCanCapture_isNotUsedAgain() {
    assertThat(other.handle()).isNotZero();
    home.waitFor(other);
    assertThat(calls.creates).hasValue(1);
    assertThat(calls.live).hasValue(0);
    stream().waitFor(stream());
    assertThat(calls.live).as("of a stream that nobody can").hasValue(1);
  }

  /** The driver crashes if it looks at a capture then. */
  @Test
  void eventOfACapture_isDestroyedWhileNobodyAsksAboutCaptures() throws InterruptedException {
    CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY);
    try (CudaGraph _ = home.capture(() -> event.record(home))) {
      assertThat(eventsWhileSomebodyAsks(event, Thread.State.WAITING)).isEqualTo(1);
      assertThat(calls.live).hasValue(0);
    }
    CudaEvent plain = cuda.device(0).createEvent(EventOptions.ORDER_ONLY);
    plain.record(other);
    assertThat(eventsWhileSomebodyAsks(plain, Thread.State.TERMINATED))
        .as("it was in none")
        .isZero();
  }

  /** How many there are once the thread that closes one is there; it may wait for others before. */
  private int eventsWhileSomebodyAsks(CudaEvent closed, Thread.State arrived)
      throws InterruptedException {
    Thread closing = Thread.ofPlatform().unstarted(closed::close);
    Lock asking = cuda.session().captures().readLock();
    int live;
    asking.lock();
    try {
      closing.start();
      boolean _ =
          Await.until(() -> closing.getState() == arrived || !closing.isAlive(), PATIENCE_NANOS);
      live = calls.live.get();
    } finally {
      asking.unlock();
    }
    closing.join();
    return live;
  }

  /** The node of its graph is there still. */
  @Test
  void eventOfACapture_staysOne_whereverItIsRecordedSince() throws InterruptedException {
    CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY);
    try (CudaGraph _ = home.capture(() -> event.record(home))) {
      event.record(other);
      assertThat(eventsWhileSomebodyAsks(event, Thread.State.WAITING)).isEqualTo(1);
      assertThat(calls.live).hasValue(0);
    }
  }
}
