package io.cuvette.testkit.stream;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.Subject;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/** Streams that are closed before their work is done leave nothing behind once it is. */
class ShortStreamsTest {
  private static final int STREAMS = 2_000;

  /** Enough for what is looked at in passing, and far below the number of streams. */
  private static final int FEW = 100;

  @CudaTest
  void eventsOfStreamsWithWork_areGone_afterTheNextSynchronize(Subject subject) {
    everyWayToLook(subject, CudaDevice::synchronize);
  }

  @CudaTest
  void eventsOfStreamsWithWork_areGone_afterAnotherStreamWasWaitedFor(Subject subject) {
    everyWayToLook(subject, device -> device.nullStream().synchronize());
  }

  @CudaTest
  void eventsOfStreamsWithWork_areGone_whileOtherStreamsComeAndGo(Subject subject) {
    everyWayToLook(
        subject,
        device -> {
          for (int i = 0; i < STREAMS; i++) {
            device.createStream().close();
          }
        });
  }

  private static void everyWayToLook(Subject subject, Consumer<CudaDevice> look) {
    AtomicInteger events = new AtomicInteger();
    Cuda cuda = subject.open(options -> options.withDecorator(to -> new Counting(to, events)));
    CudaDevice device = cuda.device(0);
    try (CudaStream first = shortStream(device);
        CudaEvent open = device.createEvent();
        Gate gate = Gate.on(first)) {
      first.record(open);
      for (int i = 0; i < STREAMS; i++) {
        shortStream(device, open);
      }
      assertThat(events.get()).as("held back").isGreaterThan(STREAMS);
      gate.open();
      cuda.driver().ctxSynchronize(0); // past the library, which is told nothing
      look.accept(device);
      assertThat(events.get()).as("events left").isLessThan(FEW);
    }
  }

  private static void shortStream(CudaDevice device, CudaEvent open) {
    try (CudaStream stream = shortStream(device)) {
      stream.waitFor(open); // which is work, and not done
    }
  }

  /** On a GPU, 57 blocking streams that wait take all that the driver has for such. */
  private static CudaStream shortStream(CudaDevice device) {
    return device.createStream(StreamOptions.NON_BLOCKING);
  }

  @CudaTest
  void streamsWithWorkOneAfterTheOther_neverHaveManyEvents(Subject subject) {
    AtomicInteger events = new AtomicInteger();
    Cuda cuda = subject.open(options -> options.withDecorator(to -> new Counting(to, events)));
    CudaDevice device = cuda.device(0);
    int most = 0;
    try (Buffer buffer = cuda.allocate(64)) {
      for (int i = 0; i < STREAMS; i++) {
        try (CudaStream stream = device.createStream()) {
          buffer.fill((byte) 1, stream);
        }
        cuda.driver().ctxSynchronize(0); // the device keeps up
        most = Math.max(most, events.get());
      }
    }
    assertThat(most).isLessThan(FEW);
  }

  /** A guard that could not be recorded is forgotten with its event. */
  @CudaTest
  void eventThatCannotBeRecorded_isDestroyed(Subject subject) {
    AtomicInteger events = new AtomicInteger();
    Counting[] driver = new Counting[1];
    Cuda cuda =
        subject.open(options ->
            options.withDecorator(to -> {
              driver[0] = new Counting(to, events);
              return driver[0];
            }));
    CudaDevice device = cuda.device(0);
    try (CudaStream first = device.createStream()) {
      CudaStream stream = device.createStream();
      try (Gate _ = Gate.on(first)) {
        stream.waitFor(first);
        int before = events.get();
        driver[0].failsToRecord = true;
        assertThatThrownBy(stream::close).isInstanceOf(CudaException.class);
        driver[0].failsToRecord = false;
        assertThat(events.get()).isEqualTo(before);
      }
      stream.close();
      device.synchronize();
    }
  }

  /** Knows how many events there are. */
  private static final class Counting extends ForwardingDriver {
    private final AtomicInteger events;
    private volatile boolean failsToRecord;

    Counting(CudaDriver target, AtomicInteger events) {
      super(target);
      this.events = events;
    }

    @Override
    public long eventCreate(int device, int flags) {
      long event = super.eventCreate(device, flags);
      events.incrementAndGet();
      return event;
    }

    @Override
    public void eventDestroy(int device, long event) {
      super.eventDestroy(device, event);
      events.decrementAndGet();
    }

    @Override
    public void eventRecord(int device, long event, long stream) {
      if (failsToRecord) {
        throw new CudaException(CudaStatus.OUT_OF_MEMORY, "cuEventRecord", "on purpose");
      }
      super.eventRecord(device, event, stream);
    }
  }
}
