package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.graph.SimGraph;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Capture: what runs, what is recorded, what is forbidden, and how a capture ends. */
class CaptureTest extends SimTestBase {
  private static final int GLOBAL = 0;
  private static final int THREAD_LOCAL = 1;
  private static final int RELAXED = 2;

  private final long one = stream(0);
  private final long other = stream(0);
  private final long memory = driver.memory().memAlloc(0, 64);

  private void fill(int value, long stream) {
    driver.transfers().memsetD8Async(0, memory, (byte) value, 64, stream);
  }

  private SimGraph graph(long handle) {
    return driver.machine.graphs.graphs.get(handle);
  }

  @Test
  void capturedWork_isRecordedAndDoesNotRun() {
    fill(1, one);
    driver.captures().streamBeginCapture(0, one, RELAXED);
    assertThat(driver.captures().streamIsCapturing(0, one)).isEqualTo(1);
    assertThat(driver.captures().streamIsCapturing(0, other)).isZero();
    fill(2, one);
    driver.streams().launchHostFunc(0, one, () -> {});
    long graph = driver.captures().streamEndCapture(0, one);
    assertThat(driver.captures().streamIsCapturing(0, one)).isZero();
    driver.streams().streamSynchronize(0, one);
    assertThat(read(memory, 1)).containsExactly(1);
    assertThat(graph(graph).size()).isEqualTo(2);
    assertThat(driver.liveGraphs()).isEqualTo(1);
    driver.graphs().graphDestroy(graph);
    assertThat(driver.liveGraphs()).isZero();
    assertFails(CudaStatus.INVALID_HANDLE, "destroyed", () -> driver.graphs().graphDestroy(graph));
  }

  @Test
  void forkAndJoin_captureTheOtherStreamToo() {
    long event = driver.events().eventCreate(0, 2);
    driver.captures().streamBeginCapture(0, one, GLOBAL);
    fill(1, one);
    driver.events().eventRecord(0, event, one);
    driver.streams().streamWaitEvent(0, other, event);
    assertThat(driver.captures().streamIsCapturing(0, other)).isEqualTo(1);
    fill(2, other);
    driver.events().eventRecord(0, event, other);
    driver.streams().streamWaitEvent(0, one, event);
    fill(3, one);
    long graph = driver.captures().streamEndCapture(0, one);
    assertThat(graph(graph).size()).isEqualTo(3);
    assertThat(driver.captures().streamIsCapturing(0, other)).isZero();
    assertFails(
        CudaStatus.INVALID_VALUE, "capture", () -> driver.events().eventSynchronize(0, event));
    assertFails(CudaStatus.INVALID_VALUE, "capture", () -> driver.events().eventQuery(0, event));
    assertFails(
        CudaStatus.INVALID_VALUE, "ended", () -> driver.streams().streamWaitEvent(0, other, event));
    driver.events().eventRecord(0, event, one);
    driver.events().eventSynchronize(0, event);
  }

  @Test
  void captureOfOneDevice_letsAnotherBeWaitedFor() {
    driver.captures().streamBeginCapture(0, one, GLOBAL);
    driver.devices().ctxSynchronize(1);
    fill(1, one);
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, one));
  }

  @Test
  void invalidCapture_takesInNoOtherStream() {
    long event = driver.events().eventCreate(0, 2);
    driver.captures().streamBeginCapture(0, one, GLOBAL);
    driver.events().eventRecord(0, event, one);
    assertFails(
        CudaStatus.STREAM_CAPTURE_UNSUPPORTED,
        "",
        () -> driver.streams().streamSynchronize(0, one));
    assertFails(
        CudaStatus.STREAM_CAPTURE_INVALIDATED,
        "",
        () -> driver.streams().streamWaitEvent(0, other, event));
    assertThat(driver.captures().streamIsCapturing(0, other)).isZero();
  }

  @Test
  void forkWithoutJoin_isAnError_andTheStreamsRunAgain() {
    long event = driver.events().eventCreate(0, 2);
    driver.captures().streamBeginCapture(0, one, RELAXED);
    driver.events().eventRecord(0, event, one);
    driver.streams().streamWaitEvent(0, other, event);
    fill(2, other);
    assertFails(
        CudaStatus.STREAM_CAPTURE_UNJOINED,
        "unjoined",
        () -> driver.captures().streamEndCapture(0, one));
    assertThat(driver.captures().streamIsCapturing(0, one)).isZero();
    assertThat(driver.captures().streamIsCapturing(0, other)).isZero();
    fill(5, other);
    driver.streams().streamSynchronize(0, other);
    assertThat(read(memory, 1)).containsExactly(5);
    assertThat(driver.liveGraphs()).isZero();
  }

  @Test
  void memoryOfTheGraph_isFreedByOneNode() {
    driver.captures().streamBeginCapture(0, one, 2);
    long captured = driver.ordered().memAllocAsync(0, 64, one);
    driver.ordered().memFreeAsync(0, captured, one);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "is freed by a node",
        () -> driver.ordered().memFreeAsync(0, captured, one));
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, one));
  }

  @Test
  void endingElsewhere_isUnmatched() {
    long event = driver.events().eventCreate(0, 2);
    assertFails(
        CudaStatus.ILLEGAL_STATE, "not captured", () -> driver.captures().streamEndCapture(0, one));
    driver.captures().streamBeginCapture(0, one, RELAXED);
    driver.events().eventRecord(0, event, one);
    driver.streams().streamWaitEvent(0, other, event);
    assertFails(
        CudaStatus.STREAM_CAPTURE_UNMATCHED,
        "another stream",
        () -> driver.captures().streamEndCapture(0, other));
    assertThat(driver.captures().streamIsCapturing(0, one)).isEqualTo(2);
    assertFails(
        CudaStatus.STREAM_CAPTURE_INVALIDATED,
        "during",
        () -> driver.captures().streamEndCapture(0, one));
    assertThat(driver.captures().streamIsCapturing(0, one)).isZero();
  }

  @Test
  void beginning_isRefusedOnTheLegacyStream_twice_andWithUnknownMode() {
    CudaStatus status = CudaStatus.STREAM_CAPTURE_UNSUPPORTED;
    assertFails(status, "legacy", () -> driver.captures().streamBeginCapture(0, 0, RELAXED));
    assertFails(status, "legacy", () -> driver.captures().streamBeginCapture(0, 1, RELAXED));
    assertFails(
        CudaStatus.INVALID_VALUE, "mode: 3", () -> driver.captures().streamBeginCapture(0, one, 3));
    driver.captures().streamBeginCapture(0, 2, RELAXED);
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, 2));
    driver.captures().streamBeginCapture(0, one, RELAXED);
    assertFails(
        CudaStatus.ILLEGAL_STATE,
        "already",
        () -> driver.captures().streamBeginCapture(0, one, RELAXED));
  }

  private void assertInvalidates(String message, Runnable call) {
    driver.captures().streamBeginCapture(0, one, RELAXED);
    assertFails(CudaStatus.STREAM_CAPTURE_UNSUPPORTED, message, call::run);
    assertThat(driver.captures().streamIsCapturing(0, one)).isEqualTo(2);
    assertFails(CudaStatus.STREAM_CAPTURE_INVALIDATED, "during", () -> fill(1, one));
    assertFails(
        CudaStatus.STREAM_CAPTURE_INVALIDATED,
        "during",
        () -> driver.captures().streamEndCapture(0, one));
  }

  @Test
  void graphsForACapturedStream_invalidateTheCapture() {
    long graph = driver.graphs().graphCreate();
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    assertInvalidates("captured", () -> driver.graphs().graphUpload(0, executable, one));
    assertInvalidates("captured", () -> driver.graphs().graphLaunch(0, executable, one));
    assertInvalidates(
        "captured", () -> driver.graphs().graphInstantiateWithParams(0, graph, 2, one));
  }

  @Test
  void waitingForACapturedStream_invalidatesTheCapture() {
    long managed = driver.memory().memAllocManaged(0, 64, 1).address();
    assertInvalidates("captured", () -> driver.streams().streamSynchronize(0, one));
    assertInvalidates("captured", () -> driver.streams().streamQuery(0, one));
    assertInvalidates("captured", () -> driver.devices().ctxSynchronize(0));
    assertInvalidates(
        "prefetch", () -> driver.memory().memPrefetchAsync(0, managed, 64, 1, 0, one));
    driver.devices().ctxSynchronize(1);
  }

  @Test
  void unsafeCalls_harmNoCapture() throws InterruptedException {
    for (int mode : new int[] {GLOBAL, THREAD_LOCAL, RELAXED}) {
      driver.captures().streamBeginCapture(0, one, mode);
      Thread.ofVirtual().start(this::allocateAndAsk).join();
      allocateAndAsk();
      assertThat(driver.captures().streamIsCapturing(0, one)).isEqualTo(1);
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, one));
    }
  }

  private void allocateAndAsk() {
    driver.memory().memFree(0, driver.memory().memAlloc(0, 64));
    driver.streams().streamSynchronize(0, other);
  }

  /** As driver 580 does, in every mode; priority and device are told. */
  @Test
  void flagsAndIdentityOfACapturingStream_invalidateTheCapture() {
    for (Runnable question :
        List.<Runnable>of(
            () -> driver.streams().streamGetFlags(0, one),
            () -> driver.streams().streamGetId(0, one))) {
      driver.captures().streamBeginCapture(0, one, RELAXED);
      assertThat(driver.streams().streamGetPriority(0, one)).isZero();
      assertThat(driver.streams().streamGetDevice(0, one)).isZero();
      driver.streams().streamGetFlags(0, other);
      assertThat(driver.captures().streamIsCapturing(0, one)).isEqualTo(1);
      assertFails(CudaStatus.STREAM_CAPTURE_UNSUPPORTED, "captured", question::run);
      assertThat(driver.captures().streamIsCapturing(0, one)).isEqualTo(2);
      assertFails(
          CudaStatus.STREAM_CAPTURE_INVALIDATED,
          "during",
          () -> driver.captures().streamEndCapture(0, one));
    }
  }

  @Test
  void eventThatWasNeverRecorded_isNoneToWaitFor_inACaptureEither() {
    driver.captures().streamBeginCapture(0, one, GLOBAL);
    driver.streams().streamWaitEvent(0, one, driver.events().eventCreate(0, 2));
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, one));
  }

  @Test
  void queryOfACapturedEvent_invalidatesTheCapture() {
    long event = driver.events().eventCreate(0, 2);
    driver.captures().streamBeginCapture(0, one, RELAXED);
    driver.events().eventRecord(0, event, one);
    assertFails(CudaStatus.CAPTURED_EVENT, "capture", () -> driver.events().eventQuery(0, event));
    assertThat(driver.captures().streamIsCapturing(0, one)).isEqualTo(2);
    assertThat(driver.captures().streamGetCaptureInfo(0, one)).isEqualTo(CaptureInfo.of(2, 0, 0));
    assertFails(
        CudaStatus.STREAM_CAPTURE_INVALIDATED,
        "during",
        () -> driver.captures().streamEndCapture(0, one));
    assertThat(driver.liveGraphs()).isZero();
  }

  @Test
  void endingOnAnotherThread_isAllowedToRelaxedCapturesOnly() throws InterruptedException {
    for (int mode : new int[] {THREAD_LOCAL, RELAXED}) {
      driver.captures().streamBeginCapture(0, one, mode);
      CudaStatus[] status = {CudaStatus.SUCCESS};
      Thread.ofVirtual()
          .start(() -> {
            try {
              driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, one));
            } catch (CudaException e) {
              status[0] = e.status();
            }
          })
          .join();
      assertThat(status[0])
          .isEqualTo(mode == RELAXED ? CudaStatus.SUCCESS : CudaStatus.STREAM_CAPTURE_WRONG_THREAD);
      if (mode != RELAXED) {
        driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, one));
      }
    }
  }

  @Test
  void legacyStream_wouldDependOnCapturedBlockingStreams() {
    long blocking = driver.streams().streamCreateWithPriority(0, 0, 0);
    driver.captures().streamBeginCapture(0, blocking, RELAXED);
    assertFails(CudaStatus.STREAM_CAPTURE_IMPLICIT, "legacy", () -> fill(1, 0));
    assertFails(
        CudaStatus.STREAM_CAPTURE_INVALIDATED,
        "during",
        () -> driver.captures().streamEndCapture(0, blocking));
    driver.captures().streamBeginCapture(0, blocking, RELAXED);
    assertFails(
        CudaStatus.STREAM_CAPTURE_IMPLICIT,
        "legacy",
        () -> driver.captures().streamIsCapturing(0, 0));
    assertThat(driver.captures().streamGetCaptureInfo(1, 0).isCapturing()).isFalse();
    driver.streams().streamDestroy(0, blocking);
    fill(1, 0);
    driver.captures().streamBeginCapture(0, one, RELAXED);
    fill(2, 0);
    assertThat(driver.captures().streamGetCaptureInfo(0, 0).isCapturing()).isFalse();
    driver.streams().streamSynchronize(0, 0);
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, one));
  }

  @Test
  void eventsOfOutside_cannotBeWaitedForInside_norOtherCaptures() {
    long outside = driver.events().eventCreate(0, 2);
    driver.events().eventRecord(0, outside, other);
    driver.captures().streamBeginCapture(0, one, RELAXED);
    assertFails(
        CudaStatus.STREAM_CAPTURE_ISOLATION,
        "outside",
        () -> driver.streams().streamWaitEvent(0, one, outside));
    assertFails(
        CudaStatus.STREAM_CAPTURE_INVALIDATED,
        "during",
        () -> driver.captures().streamEndCapture(0, one));
    long inside = driver.events().eventCreate(0, 2);
    driver.captures().streamBeginCapture(0, one, RELAXED);
    driver.captures().streamBeginCapture(0, other, RELAXED);
    driver.events().eventRecord(0, inside, one);
    assertFails(
        CudaStatus.STREAM_CAPTURE_MERGE,
        "another",
        () -> driver.streams().streamWaitEvent(0, other, inside));
    assertThat(driver.captures().streamIsCapturing(0, one)).isEqualTo(2);
    assertThat(driver.captures().streamIsCapturing(0, other)).isEqualTo(2);
  }

  /** The program made it, and gives it back. */
  @Test
  void graphOfTheProgram_outlivesACaptureThatBecameInvalid() {
    long event = driver.events().eventCreate(0, 2);
    long graph = driver.graphs().graphCreate();
    driver.captures().streamBeginCaptureToGraph(0, one, graph, new long[0], RELAXED);
    assertFails(
        CudaStatus.STREAM_CAPTURE_UNSUPPORTED,
        "",
        () -> driver.streams().streamSynchronize(0, one));
    assertFails(
        CudaStatus.STREAM_CAPTURE_INVALIDATED,
        "not allowed",
        () -> driver.events().eventRecord(0, event, one));
    assertFails(
        CudaStatus.STREAM_CAPTURE_INVALIDATED,
        "not allowed",
        () -> driver.captures().streamEndCapture(0, one));
    assertThat(driver.liveGraphs()).isEqualTo(1);
    driver.graphs().graphDestroy(graph);
    assertThat(driver.liveGraphs()).isZero();
  }
}
