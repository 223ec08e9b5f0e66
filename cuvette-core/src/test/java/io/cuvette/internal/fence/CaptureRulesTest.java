package io.cuvette.internal.fence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** For whom a capture is over, what it keeps, and whose a stream takes part in. */
class CaptureRulesTest {
  private static final CaptureInfo NONE = CaptureInfo.of(0, 7, 8);
  private static final CaptureInfo ACTIVE = CaptureInfo.of(1, 7, 8);
  private static final CaptureInfo OTHER = CaptureInfo.of(1, 9, 8);
  private static final CaptureInfo INVALID = CaptureInfo.of(2, 7, 8);

  /** The graphs of one owner never run at the same time, so that they share memory. */
  @Test
  void captureThatEnded_isOverForThoseOfItsMemory_andForOthersWithItsGraph() {
    CaptureMemory shared = CaptureMemory.ofSeveral("owner");
    Capture capture = Capture.own(7, shared);
    Fence forSame = capture.isOverFor(shared);
    Fence forOthers = capture.isOverFor(CaptureMemory.ofSeveral("owner"));
    Fence forNone = capture.isOverFor(null);
    assertThat(List.of(forSame, forOthers, forNone)).noneMatch(Fence::isDone);
    capture.ended();
    assertThat(forSame.isDone()).isTrue();
    assertThat(List.of(forOthers, forNone)).noneMatch(Fence::isDone);
    assertThat(shared.isDone()).isFalse();
    capture.letGo();
    assertThat(List.of(forSame, forOthers, forNone)).allMatch(Fence::isDone);
    assertThat(shared.isDone()).as("more may come").isFalse();
    shared.close();
    assertThat(shared.isDone()).isTrue();
  }

  /** One that never ended, such as a capture that was given up. */
  @Test
  void captureWhoseGraphIsGone_isOverForAll() {
    CaptureMemory shared = CaptureMemory.ofSeveral("owner");
    Capture capture = Capture.own(7, shared);
    Capture alone = Capture.built();
    Fence ofAlone = alone.isOverFor(alone.memory);
    alone.ended();
    assertThat(ofAlone.isDone()).as("its graph may run").isFalse();
    capture.letGo();
    alone.letGo();
    assertThat(List.of(capture.isOverFor(shared), ofAlone)).allMatch(Fence::isDone);
  }

  @Test
  void refusalToTellOfTheEnd_isTheDrivers_unlessItCannotTellAtAll() {
    for (CudaStatus status : List.of(CudaStatus.NOT_SUPPORTED, CudaStatus.NOT_PERMITTED)) {
      CudaException refusal = new CudaException(status, "cuUserObjectCreate", "the test's");
      Capture capture = Capture.refused(7, refusal);
      var thrown = assertThatThrownBy(() -> capture.checked("allocate", "stream 1"));
      thrown.hasMessageContaining("allocate: stream 1 is capturing a graph, and the driver");
      if (status == CudaStatus.NOT_SUPPORTED) {
        thrown.isInstanceOf(IllegalStateException.class).hasCause(refusal);
      } else {
        thrown.isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(status));
      }
      assertThat(capture.isDone()).isFalse();
    }
    Capture own = Capture.built();
    assertThat(own.checked("allocate", "stream 1")).isSameAs(own);
  }

  /** Keeps nothing of its own. */
  private static Retainable ending(Runnable step) {
    return new Retainable() {
      @Override
      public void retain() {}

      @Override
      public void letGo() {
        step.run();
      }
    };
  }

  @Test
  void whatFailsToEndWithACapture_isTold_onceAllHasEnded() {
    Capture capture = Capture.built();
    List<Integer> ended = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      int number = i;
      capture.hold(
          ending(() -> {
            ended.add(number);
            throw new IllegalStateException("end of " + number);
          }));
    }
    assertThatThrownBy(capture::letGo)
        .hasMessage("end of 0")
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(2));
    assertThat(ended).containsExactly(0, 1, 2);
    assertThat(capture.isDone()).isTrue();
    assertThat(capture.forgetIfDone()).as("once").isTrue();
  }

  /** Its graph may run as long as somebody has it. */
  @Test
  void captureIsForgotten_onceItIsDone() {
    Capture capture = Capture.built();
    assertThat(capture.forgetIfDone()).isFalse();
    capture.keep(MemorySegment.ofArray(new byte[1]));
    capture.letGo();
    assertThat(capture.forgetIfDone()).isTrue();
    capture.forEachHost(host -> assertThat(host).as("nothing is kept").isNull());
  }

  @Test
  void stream_takesPartInTheCaptureThatIsNamed_whileThatIsValid() {
    OwnCapture first = new OwnCapture();
    OwnCapture second = new OwnCapture();
    for (CaptureInfo info : List.of(NONE, ACTIVE, OTHER, INVALID)) {
      assertThat(first.isJoined(info) || first.isBegun(info)).as("%s", info).isFalse();
    }
    assertThat(second.isJoinedTo(first)).isFalse();
    Capture capture = Capture.own(7, CaptureMemory.ofOne());
    first.begun(capture);
    second.joined(capture);
    for (CaptureInfo info : List.of(NONE, ACTIVE, OTHER, INVALID)) {
      assertThat(first.isBegun(info)).as("%s", info).isEqualTo(info.equals(ACTIVE));
      assertThat(second.isJoined(info)).as("%s", info).isEqualTo(info.equals(ACTIVE));
    }
    assertThat(second.isJoinedTo(first)).isTrue();
    assertThat(first.isJoinedTo(second)).isFalse();
    assertThat(first.taken(OTHER)).as("another is going on").isNull();
    assertThat(first.taken(NONE)).isSameAs(capture);
    assertThat(first.begun()).isNull();
    first.over(NONE);
    assertThat(capture.isDone()).as("it is the taker's").isFalse();
  }

  @Test
  void captureWithoutAGraph_isLetGoOf_once() {
    OwnCapture first = new OwnCapture();
    for (CaptureInfo info : List.of(NONE, INVALID, ACTIVE)) {
      Capture capture = Capture.own(7, CaptureMemory.ofOne());
      first.begun(capture);
      assertThat(first.begun()).isSameAs(capture);
      first.over(OTHER);
      assertThat(capture.isDone()).as("another is going on").isFalse();
      first.over(info);
      assertThat(capture.isDone()).isTrue();
      assertThat(first.begun()).isNull();
    }
    Capture last = Capture.own(7, CaptureMemory.ofOne());
    first.begun(last);
    first.over();
    assertThat(last.isDone()).isTrue();
    first.over();
    assertThat(first.begun()).isNull();
  }

  /** Under a lock that the next thread has to get. */
  @Test
  @Timeout(60)
  void streamsThatTakeMemory_areNumberedInTheirOrder_byAnyThread() throws InterruptedException {
    Capture capture = Capture.built();
    List<Integer> numbers = new ArrayList<>();
    capture.hold(ending(() -> numbers.add(-1)));
    for (String name : List.of("first", "second", "first", "third", "second", "third")) {
      Thread thread =
          Thread.ofPlatform()
              .start(() -> {
                numbers.add(capture.number(name));
                capture.keep(MemorySegment.ofArray(new byte[1]));
                capture.hold(ending(() -> {}));
                capture.forEachHost(host -> assertThat(host.byteSize()).isEqualTo(1));
              });
      thread.join();
    }
    assertThat(numbers).containsExactly(0, 1, 0, 2, 1, 2);
    capture.letGo();
    assertThat(numbers).endsWith(2, -1);
    Thread last = Thread.ofPlatform().start(() -> numbers.add(capture.number("fourth")));
    last.join();
    assertThat(numbers).endsWith(-1, 3);
  }

  @Test
  void eventThatAGraphHas_isKnownByTheRefusal() {
    for (CudaStatus status : CudaStatus.values()) {
      assertThat(Capture.hasTheRecord(new CudaException(status, "cuEventQuery", "the test's")))
          .as("%s", status)
          .isEqualTo(status == CudaStatus.CAPTURED_EVENT || status == CudaStatus.INVALID_VALUE);
    }
  }

  /** One segment of an arena stands for all of it. */
  @Test
  void launchIsRefused_onceAnyOfTheArenasIsClosed() {
    Retained retained = new Retained();
    try (Arena open = Arena.ofConfined()) {
      MemorySegment gone;
      Retained copy;
      try (Arena closed = Arena.ofConfined()) {
        gone = closed.allocate(8);
        for (MemorySegment host : List.of(open.allocate(8), open.allocate(8), gone)) {
          Capture capture = Capture.built();
          capture.keep(host);
          retained.take(capture);
        }
        copy = retained.copy();
        retained.checkHosts();
        copy.checkHosts();
      }
      for (Retained each : List.of(retained, copy)) {
        assertThatThrownBy(each::checkHosts)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageStartingWith("launch: the graph copies from or to " + gone);
        each.release();
        each.checkHosts();
      }
    }
  }

  @Test
  void nodesThatAreBuilt_useMemoryByOneThing() {
    Retained retained = new Retained();
    Capture built = retained.built();
    assertThat(retained.built()).isSameAs(built);
    assertThat(built.isDone()).isFalse();
    retained.release();
    assertThat(built.isDone()).isTrue();
  }
}
