package io.cuvette.testkit.stream;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.EventOptions;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphNode;
import io.cuvette.Scope;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class EventTest {

  @CudaTest
  void everyAllowedCombinationOfFlags_works(Cuda cuda) {
    for (boolean blocking : new boolean[] {false, true}) {
      for (boolean timing : new boolean[] {false, true}) {
        for (boolean interprocess : new boolean[] {false, true}) {
          if (!(timing && interprocess)) {
            EventOptions options = new EventOptions(blocking, timing, interprocess);
            try (CudaEvent event = cuda.device(0).createEvent(options)) {
              assertThat(event.options()).isEqualTo(options);
              event.record();
              event.synchronize();
              assertThat(event.isDone()).isTrue();
            }
          }
        }
      }
    }
  }

  @CudaTest(simulatedOnly = true)
  void options_areTheFlagsThatTheDriverGets(Cuda cuda, ScriptedDriver driver) {
    driver.note("eventCreate", call -> Long.toString(call.number("flags")));
    for (EventOptions options :
        List.of(
            EventOptions.DEFAULTS,
            EventOptions.DEFAULTS.withBlockingSync(true),
            EventOptions.ORDER_ONLY,
            EventOptions.ORDER_ONLY.withInterprocess(true),
            EventOptions.ORDER_ONLY.withInterprocess(true).withBlockingSync(true))) {
      cuda.device(0).createEvent(options).close();
    }
    assertThat(driver.notes()).containsExactly("0", "1", "2", "6", "7");
  }

  @Test
  void interprocessWithTiming_isRefused() {
    for (boolean blocking : new boolean[] {false, true}) {
      assertThatThrownBy(() -> new EventOptions(blocking, true, true))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("interprocess: true, timing: true")
          .hasMessageContaining("expected: timing false");
    }
    assertThatThrownBy(() -> EventOptions.DEFAULTS.withInterprocess(true))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(EventOptions.DEFAULTS.withTiming(false).withInterprocess(true).interprocess())
        .isTrue();
  }

  /** The stream that it was recorded in before has nothing to do with it any more. */
  @CudaTest(simulatedOnly = true)
  void eventThatAGraphRecords_canBeWaitedForInACallbackOfItsStreamBefore(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver driver) throws Exception {
    AtomicInteger asked = new AtomicInteger();
    driver.answer(
        "eventQuery", call -> asked.getAndIncrement() == 0 ? (Object) false : call.proceed());
    try (CudaEvent event = cuda.device(0).createEvent();
        GraphDefinition graph = new GraphDefinition(cuda.device(0))) {
      event.record(stream);
      GraphNode _ = graph.root().record(event);
      stream.addCallback(event::synchronize).get(60, TimeUnit.SECONDS);
      assertThat(asked).hasValueGreaterThan(1);
    } finally {
      driver.unscript("eventQuery");
    }
  }

  @CudaTest
  void eventNeverRecorded_isDone_andNobodyWaits(Cuda cuda) {
    try (CudaEvent event = cuda.device(0).createEvent()) {
      assertThat(event.isRecorded()).isFalse();
      assertThat(event.isDone()).isTrue();
      event.synchronize();
      cuda.currentStream().waitFor(event);
      cuda.currentStream().synchronize();
    }
  }

  @CudaTest
  void event_isDone_onlyWhenTheWorkBeforeItIs(Cuda cuda, CudaStream stream) {
    try (CudaEvent event = cuda.device(0).createEvent()) {
      Gate gate = Gate.on(stream);
      event.record(stream);
      assertThat(event.isRecorded()).isTrue();
      assertThat(event.isDone()).isFalse();
      gate.open();
      event.synchronize();
      assertThat(event.isDone()).isTrue();
    }
  }

  @CudaTest
  void secondRecord_forgetsTheFirst(Cuda cuda, CudaStream busy, CudaStream idle) {
    try (CudaEvent event = cuda.device(0).createEvent()) {
      try (Gate _ = Gate.on(busy)) {
        event.record(busy);
        event.record(idle);
        event.synchronize();
        assertThat(event.isDone()).isTrue();
        assertThat(busy.isDone()).isFalse();
      }
    }
  }

  @CudaTest
  void record_takesTheCurrentStream(Cuda cuda, @NonBlocking CudaStream stream) {
    try (CudaEvent event = cuda.device(0).createEvent();
        Gate gate = Gate.on(stream)) {
      try (Scope _ = stream.use()) {
        event.record();
      }
      cuda.device(0).nullStream().synchronize(); // which does not wait for this one
      assertThat(event.isDone()).isFalse();
      gate.open();
      event.synchronize();
    }
  }

  @CudaTest
  void recordOfAStream_givesTheEvent(Cuda cuda, CudaStream stream) {
    try (CudaEvent fresh = stream.record();
        CudaEvent own = cuda.device(0).createEvent()) {
      assertThat(fresh.options()).isEqualTo(EventOptions.DEFAULTS);
      assertThat(stream.record(own)).isSameAs(own);
      stream.synchronize();
      assertThat(fresh.isDone() && own.isDone()).isTrue();
    }
  }

  @CudaTest
  void elapsedTime_isMeasuredBetweenTwoEvents(Subject subject, Cuda cuda, CudaStream stream) {
    try (Buffer buffer = cuda.allocate(64 << 20, stream);
        CudaEvent start = stream.record()) {
      for (int i = 0; i < 10; i++) {
        buffer.fill((byte) i, stream);
      }
      try (CudaEvent end = stream.record()) {
        end.synchronize();
        assertThat(CudaEvent.elapsedMillis(start, end)).isPositive();
        if (subject.isSimulated()) {
          assertThat(CudaEvent.elapsedMillis(end, start)).isNegative();
        }
        assertThat(CudaEvent.elapsedMillis(start, start)).isZero();
      }
    }
  }

  @CudaTest
  void elapsedTime_namesTheEventThatWasNotRecorded(Cuda cuda) {
    try (CudaEvent recorded = cuda.currentStream().record();
        CudaEvent fresh = cuda.device(0).createEvent()) {
      recorded.synchronize();
      assertThatThrownBy(() -> CudaEvent.elapsedMillis(fresh, recorded))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageStartingWith("start: event 0x")
          .hasMessageContaining("was not recorded");
      assertThatThrownBy(() -> CudaEvent.elapsedMillis(recorded, fresh))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageStartingWith("end: event 0x");
    }
  }

  @CudaTest
  void elapsedTime_namesTheEventWithoutTiming(Cuda cuda) {
    try (CudaEvent timed = cuda.currentStream().record();
        CudaEvent untimed = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      untimed.record();
      untimed.synchronize();
      assertThatThrownBy(() -> CudaEvent.elapsedMillis(untimed, timed))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageStartingWith("start:")
          .hasMessageContaining("has no timing");
      assertThatThrownBy(() -> CudaEvent.elapsedMillis(timed, untimed))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageStartingWith("end:")
          .hasMessageContaining("has no timing");
    }
  }

  @CudaTest
  void elapsedTime_namesTheEventThatIsNotDone(CudaStream stream) {
    try (CudaEvent done = stream.record()) {
      done.synchronize();
      Gate gate = Gate.on(stream);
      try (CudaEvent waiting = stream.record()) {
        assertThatThrownBy(() -> CudaEvent.elapsedMillis(done, waiting))
            .isInstanceOfSatisfying(
                CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.NOT_READY))
            .hasMessageContaining("end: event 0x");
        assertThatThrownBy(() -> CudaEvent.elapsedMillis(waiting, done))
            .isInstanceOfSatisfying(
                CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.NOT_READY))
            .hasMessageContaining("start: event 0x");
        gate.open();
        waiting.synchronize();
      }
    }
  }

  @CudaTest
  void closedEvent_refusesEverything_andWaitsGoOn(CudaStream stream, CudaStream waiting) {
    CudaEvent neverRecorded = stream.device().createEvent(EventOptions.ORDER_ONLY);
    neverRecorded.close();
    try (CudaEvent open = stream.record()) {
      Gate gate = Gate.on(stream);
      CudaEvent event = stream.record();
      waiting.waitFor(event);
      event.close();
      event.close();
      assertThat(event.isClosed()).isTrue();
      assertThat(waiting.isDone()).isFalse();
      gate.open();
      waiting.synchronize();
      assertThat(stream.isDone()).isTrue();
      for (Runnable call :
          new Runnable[] {
            event::record,
            () -> event.record(stream),
            event::isDone,
            event::synchronize,
            () -> stream.waitFor(event),
            () -> stream.record(event),
            () -> CudaEvent.elapsedMillis(open, event),
            () -> CudaEvent.elapsedMillis(event, open),
            () -> CudaEvent.elapsedMillis(open, neverRecorded),
            () -> CudaEvent.elapsedMillis(neverRecorded, open)
          }) {
        assertThatThrownBy(call::run)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("is closed");
      }
    }
  }

  @CudaTest(devices = 2)
  void recordOnAnotherDevicesStream_isRefused(Cuda cuda) {
    try (CudaEvent event = cuda.device(0).createEvent()) {
      assertThatThrownBy(() -> event.record(cuda.device(1).nullStream()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("expected: a stream of the same device");
    }
  }

  @CudaTest(devices = 2)
  void elapsedTimeBetweenDevices_isRefused(Cuda cuda) {
    try (CudaEvent near = cuda.device(0).nullStream().record();
        CudaEvent far = cuda.device(1).nullStream().record()) {
      near.synchronize();
      far.synchronize();
      assertThatThrownBy(() -> CudaEvent.elapsedMillis(near, far))
          .isInstanceOfAny(CudaException.class, IllegalArgumentException.class);
    }
  }

  @CudaTest
  void closedEvent_isDestroyed(Cuda cuda, ScriptedDriver driver) {
    CudaDevice device = cuda.device(0);
    device.createEvent(EventOptions.DEFAULTS).close();
    assertThat(driver.count("eventDestroy")).isOne();
  }

  /** Also if it was asked for before, or if others could never import the event. */
  @CudaTest(simulatedOnly = true)
  void closedEvent_hasNoDescriptor(Cuda cuda) {
    CudaEvent known = cuda.device(0).createEvent(EventOptions.ORDER_ONLY.withInterprocess(true));
    assertThat(known.descriptor()).isNotNull();
    CudaEvent unknown = cuda.device(0).createEvent(EventOptions.ORDER_ONLY.withInterprocess(true));
    CudaEvent own = cuda.device(0).createEvent(EventOptions.ORDER_ONLY);
    for (CudaEvent event : new CudaEvent[] {known, unknown, own}) {
      event.close();
      assertThatThrownBy(event::descriptor)
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("%s is closed", event);
    }
  }
}
