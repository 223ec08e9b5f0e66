package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.StreamCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.instrument.ForwardingMemory;
import io.cuvette.instrument.ForwardingStreams;
import io.cuvette.internal.base.SpareHandles;
import io.cuvette.internal.fence.WorkMarker;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What a marker knows of the work of its stream, and what it leaves behind. */
@Timeout(60)
class WorkMarkerTest {
  private @Nullable BusyDriver made;
  private @Nullable Scripted script;
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withDecorator(driver -> script = new Scripted(made = new BusyDriver(driver))));
  private final BusyDriver busy = Objects.requireNonNull(made);
  private final Scripted driver = Objects.requireNonNull(script);
  private final CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final CudaStream other = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);

  @AfterEach
  void close() {
    busy.finish(stream);
    busy.finish(other);
    cuda.close();
  }

  private WorkMarker recorded() {
    WorkMarker marker = WorkMarker.of(stream.state);
    marker.record();
    return marker;
  }

  private void beginCapture() {
    driver.captures().streamBeginCapture(0, stream.handle(), 2);
  }

  private void endCapture() {
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, stream.handle()));
  }

  @Test
  void marker_isReachedWhenItsStreamIs_andLeavesNoEvent() {
    busy.begin(stream);
    WorkMarker marker = recorded();
    assertThat(marker.isRecorded()).isTrue();
    assertThat(marker.isDone()).isFalse();
    assertThat(busy.liveEvents()).isOne();
    busy.finish(stream);
    assertThat(marker.isDone()).isTrue();
    assertThat(busy.liveEvents()).isZero();
  }

  /** Somebody who polls may ask before the one that made the marker has recorded it. */
  @Test
  void markerThatWasFoundDone_recordsNothing() {
    WorkMarker marker = WorkMarker.of(stream.state);
    assertThat(marker.isDone()).isTrue();
    marker.record();
    assertThat(marker.isRecorded()).isFalse();
    assertThat(busy.liveEvents()).isZero();
  }

  @Test
  void markerOfACapturingStream_isRecordedAfterTheCapture() {
    beginCapture();
    WorkMarker marker = recorded();
    marker.await(); // which cannot be waited for
    assertThat(marker.isRecorded()).isFalse();
    assertThat(marker.isDone()).isFalse();
    assertThat(busy.liveEvents()).isZero();
    endCapture();
    busy.begin(stream);
    assertThat(marker.isDone()).isFalse();
    assertThat(marker.isRecorded()).isTrue();
    busy.finish(stream);
    assertThat(marker.isDone()).isTrue();
  }

  /** The driver refuses to record in a capture that began between the look and the call. */
  @ParameterizedTest
  @EnumSource(names = "STREAM_CAPTURE_.*", mode = EnumSource.Mode.MATCH_ALL)
  void recordThatACaptureRefuses_leavesNoEvent_andTheMarkerIsNotDone(CudaStatus refused) {
    driver.failRecord(refused);
    WorkMarker marker = recorded();
    assertThat(marker.isRecorded()).isFalse();
    assertThat(busy.liveEvents()).isZero();
    busy.begin(stream);
    assertThat(marker.isDone()).isFalse();
    busy.finish(stream);
    assertThat(marker.isDone()).isTrue();
  }

  @Test
  void recordThatFails_leavesNoEvent_andTheMarkerRecordsLater() {
    driver.failRecord(CudaStatus.LAUNCH_TIMEOUT);
    WorkMarker marker = WorkMarker.of(stream.state);
    assertThatThrownBy(marker::record)
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.LAUNCH_TIMEOUT));
    assertThat(busy.liveEvents()).isZero();
    busy.begin(stream);
    assertThat(marker.isDone()).isFalse();
    assertThat(busy.liveEvents()).isOne();
    busy.finish(stream);
    assertThat(marker.isDone()).isTrue();
  }

  @Test
  void markerWhoseEventCannotBeMade_isForgotten() {
    driver.failCreate = true;
    WeakReference<WorkMarker> left = new WeakReference<>(WorkMarker.of(stream.state));
    assertThatThrownBy(() -> Objects.requireNonNull(left.get()).record())
        .isInstanceOf(CudaException.class);
    for (int i = 0; i < 20 && left.get() != null; i++) {
      System.gc();
    }
    assertThat(left.get()).isNull();
  }

  @Test
  void markerThatIsDone_isForgotten() {
    WeakReference<WorkMarker> left = new WeakReference<>(recorded());
    assertThat(Objects.requireNonNull(left.get()).isDone()).isTrue();
    for (int i = 0; i < 20 && left.get() != null; i++) {
      System.gc();
    }
    assertThat(left.get()).isNull();
  }

  @Test
  void precede_queuesAWait_unlessTheWorkIsDone() {
    busy.begin(stream);
    WorkMarker marker = recorded();
    assertThat(marker.precede(other.state)).isTrue();
    assertThat(driver.waiting).containsExactly(other.state.handle);
    busy.finish(stream);
    assertThat(marker.precede(other.state)).isTrue();
    assertThat(driver.waiting).hasSize(1);
  }

  @Test
  void precedeOfWorkThatIsNotMarked_queuesNothing() {
    beginCapture();
    WorkMarker marker = recorded();
    assertThat(marker.precede(other.state)).isFalse();
    endCapture();
    assertThat(marker.precede(other.state)).isFalse();
    assertThat(driver.waiting).isEmpty();
  }

  /** Its event belongs to a graph: it is another one from then on. */
  @Test
  void precedeOfAnEventThatACaptureHas_queuesNothing_andMarksAgain() {
    stream.handle();
    busy.begin(stream);
    WorkMarker marker = recorded();
    driver.failQuery(CudaStatus.CAPTURED_EVENT);
    assertThat(marker.precede(other.state)).isFalse();
    assertThat(driver.waiting).isEmpty();
    assertThat(busy.liveEvents()).isZero();
    assertThat(marker.isDone()).isFalse();
    assertThat(busy.liveEvents()).isOne();
  }

  @Test
  void failureOfAQuestion_isThrown_thoughTheStreamMayBeCaptured() {
    stream.handle();
    WorkMarker marker = recorded();
    driver.failQuery(CudaStatus.LAUNCH_TIMEOUT);
    assertThatThrownBy(marker::isDone).isInstanceOf(CudaException.class);
    assertThat(marker.isDone()).isTrue();
  }

  @Test
  void await_waitsForTheWork_once() {
    busy.begin(stream);
    WorkMarker marker = recorded();
    marker.await();
    assertThat(marker.isDone()).isTrue();
    assertThat(busy.liveEvents()).isZero();
    marker.await();
    assertThat(busy.waits()).isOne();
  }

  @Test
  void markerThatWasNotRecorded_isDoneWithTheLastWorkOfItsClosedStream() {
    WorkMarker asked = WorkMarker.of(stream.state);
    WorkMarker awaited = WorkMarker.of(stream.state);
    busy.begin(stream);
    stream.close();
    assertThat(asked.isDone()).isFalse();
    assertThat(busy.waits()).isZero();
    awaited.await();
    assertThat(busy.waits()).isOne();
    assertThat(awaited.isDone()).isTrue();
    assertThat(asked.isDone()).isTrue();
  }

  @Test
  void markerOfTheDevice_isDoneOnceTheDeviceWasWaitedFor() {
    WorkMarker marker = WorkMarker.ofDevice(stream.state);
    marker.record();
    assertThat(marker.isRecorded()).isFalse();
    assertThat(marker.isDone()).isFalse();
    cuda.device(0).synchronize();
    assertThat(marker.isDone()).isTrue();
    WorkMarker next = WorkMarker.ofDevice(stream.state);
    assertThat(next.isDone()).isFalse();
    next.await();
    assertThat(next.isDone()).isTrue();
    assertThat(busy.liveEvents()).isZero();
  }

  /** Nobody else knows when its work is done. */
  @Test
  void markerOfTheLastWork_whoseEventACaptureHas_isDoneOnceTheDeviceWasWaitedFor() {
    stream.handle();
    busy.begin(stream);
    stream.close();
    WorkMarker last = Objects.requireNonNull(stream.state.marker());
    driver.failQuery(CudaStatus.CAPTURED_EVENT);
    assertThat(last.isDone()).isFalse();
    assertThat(last.isRecorded()).isFalse();
    assertThat(last.isDone()).isFalse();
    cuda.device(0).synchronize();
    assertThat(last.isDone()).isTrue();
    assertThat(busy.liveEvents()).isZero();
  }

  @Test
  void markerOfADeviceThatCannotBeWaitedFor_isNotDone() {
    WorkMarker marker = WorkMarker.ofDevice(stream.state);
    driver.failAlloc = true;
    marker.await();
    assertThat(marker.isDone()).isFalse();
  }

  /** Whoever captures needs no more than the handle, and no lock of this library. */
  @Test
  void captureThatBeginsAtTheRecord_mayHaveTheEvent_whichIsGivenUp() {
    long handle = stream.handle();
    busy.begin(stream);
    driver.atRecord = () -> driver.captures().streamBeginCapture(0, handle, 2);
    WorkMarker marker = recorded();
    assertThat(marker.isRecorded()).isFalse();
    assertThat(busy.liveEvents()).isZero();
    endCapture();
    driver.atRecord = () -> {};
    assertThat(marker.isDone()).isFalse();
    assertThat(marker.isRecorded()).isTrue();
  }

  @Test
  void eventThatIsNotDestroyed_isDestroyedAtTheEnd() {
    WorkMarker marker = recorded();
    driver.failDestroy = CudaStatus.INVALID_VALUE;
    assertThatThrownBy(marker::isDone).isInstanceOf(CudaException.class);
    assertThat(marker.isDone()).isTrue();
    assertThat(busy.liveEvents()).isOne();
    driver.failDestroy = null;
    cuda.close();
    assertThat(busy.liveEvents()).isZero();
  }

  /** The call may have had its effect, and the handle be another event's by now. */
  @Test
  void eventThatMayBeDestroyed_isNotDestroyedAgain() {
    WorkMarker marker = recorded();
    driver.failDestroy = CudaStatus.ILLEGAL_ADDRESS;
    assertThatThrownBy(marker::isDone).isInstanceOf(CudaException.class);
    driver.failDestroy = null;
    cuda.close();
    assertThat(busy.liveEvents()).isOne();
  }

  @Test
  void abandonedMarker_leavesNoEvent_butThatOfTheLastWorkStays() {
    busy.begin(stream);
    WorkMarker marker = recorded();
    marker.abandon();
    assertThat(busy.liveEvents()).isZero();
    assertThat(marker.isDone()).isTrue();

    stream.close();
    WorkMarker last = Objects.requireNonNull(stream.state.marker());
    last.abandon();
    assertThat(last.isDone()).isFalse();
    assertThat(busy.liveEvents()).isOne();
  }

  /** Between the look of who records and its event somebody else may have found it done. */
  @Test
  void markerThatIsAbandonedAsItsEventIsMade_leavesNone() {
    busy.begin(stream);
    WorkMarker marker = WorkMarker.of(stream.state);
    driver.atCreate = marker::abandon;
    marker.record();
    assertThat(busy.liveEvents()).isZero();
    assertThat(marker.isDone()).isTrue();
  }

  /** Given back under the question, the event would be another marker's already. */
  @Test
  void eventOfAnAbandonedMarker_isItsOwnUntilWhoAsksHasTheAnswer() {
    busy.begin(stream);
    WorkMarker marker = WorkMarker.oneOfMany(stream.state);
    marker.record();
    SpareHandles spares = cuda.device(0).core().spareEvents;
    int before = spares.count();
    driver.atQuery =
        () -> {
          marker.abandon();
          assertThat(spares.count()).isEqualTo(before);
        };
    boolean _ = marker.isDone();
    assertThat(spares.count()).isEqualTo(before + 1);
    assertThat(marker.isDone()).isTrue();
    long _ = stream.handle(); // from now on a graph may have an event of the stream
    WorkMarker ofExposed = WorkMarker.oneOfMany(stream.state);
    ofExposed.record();
    ofExposed.abandon();
    assertThat(spares.count()).as("destroyed").isEqualTo(before);
  }

  @Test
  void markerOfACudaThatIsClosed_isDone() {
    busy.begin(stream);
    WorkMarker marker = recorded();
    cuda.close();
    assertThat(marker.isDone()).isTrue();
    marker.await();
    marker.record();
    marker.abandon();
    assertThat(busy.liveEvents()).isZero();
    assertThat(WorkMarker.of(stream.state).isDone()).as("nobody knows").isFalse();
  }

  @Test
  void questionBesideAWait_isNotHeldUp_andOtherWaitsAre() throws InterruptedException {
    busy.begin(stream);
    WorkMarker marker = recorded();
    CountDownLatch waiting = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    driver.atWait =
        () -> {
          waiting.countDown();
          Latches.await(goOn);
        };
    Thread first = Thread.ofPlatform().daemon().start(marker::await);
    waiting.await();
    assertThat(marker.isDone()).isFalse();
    Thread second = Thread.ofPlatform().daemon().start(marker::await);
    while (second.getState() == Thread.State.NEW || second.getState() == Thread.State.RUNNABLE) {
      Thread.onSpinWait();
    }
    assertThat(second.isAlive()).isTrue();
    goOn.countDown();
    first.join();
    second.join();
    assertThat(marker.isDone()).isTrue();
    assertThat(busy.waits()).isOne();
  }

  /** Fails the next call of a kind, and notes who is made to wait for an event. */
  private static final class Scripted extends ForwardingDriver {
    private final List<Long> waiting = new ArrayList<>();
    private boolean failAlloc;
    private boolean failCreate;
    private @Nullable CudaStatus failDestroy;
    private @Nullable CudaStatus record;
    private @Nullable CudaStatus query;
    private Runnable atCreate = () -> {};
    private Runnable atRecord = () -> {};
    private Runnable atQuery = () -> {};
    private Runnable atWait = () -> {};

    Scripted(CudaDriver delegate) {
      super(delegate);
    }

    void failRecord(CudaStatus status) {
      record = status;
    }

    void failQuery(CudaStatus status) {
      query = status;
    }

    private static void fail(@Nullable CudaStatus status, String call) {
      if (status != null) {
        throw new CudaException(status, call, "on purpose");
      }
    }

    private final MemoryCalls memoryCalls =
        new ForwardingMemory(delegate().memory()) {
          @Override
          public long memAlloc(int device, long bytes) {
            fail(failAlloc ? CudaStatus.OUT_OF_MEMORY : null, "cuMemAlloc");
            return super.memAlloc(device, bytes);
          }
        };

    @Override
    public MemoryCalls memory() {
      return memoryCalls;
    }

    private final EventCalls eventCalls =
        new ForwardingEvents(delegate().events()) {
          @Override
          public void eventDestroy(int device, long event) {
            fail(failDestroy, "cuEventDestroy");
            super.eventDestroy(device, event);
          }

          @Override
          public long eventCreate(int device, int flags) {
            fail(failCreate ? CudaStatus.OUT_OF_MEMORY : null, "cuEventCreate");
            atCreate.run();
            return super.eventCreate(device, flags);
          }

          @Override
          public void eventRecord(int device, long event, long stream) {
            CudaStatus failure = record;
            record = null;
            fail(failure, "cuEventRecord");
            super.eventRecord(device, event, stream);
            atRecord.run();
          }

          @Override
          public boolean eventQuery(int device, long event) {
            CudaStatus failure = query;
            query = null;
            fail(failure, "cuEventQuery");
            atQuery.run();
            return super.eventQuery(device, event);
          }

          @Override
          public void eventSynchronize(int device, long event) {
            atWait.run();
            super.eventSynchronize(device, event);
          }
        };

    @Override
    public EventCalls events() {
      return eventCalls;
    }

    private final StreamCalls streamCalls =
        new ForwardingStreams(delegate().streams()) {
          @Override
          public void streamWaitEvent(int device, long stream, long event) {
            waiting.add(stream);
            super.streamWaitEvent(device, stream, event);
          }
        };

    @Override
    public StreamCalls streams() {
      return streamCalls;
    }
  }
}
