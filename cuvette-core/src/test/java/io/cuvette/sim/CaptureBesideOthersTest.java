package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.UserObject;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Captures beside each other, into graphs that are there, and what one that fails leaves. */
class CaptureBesideOthersTest extends SimTestBase {
  private static final int RELAXED = 2;
  private static final CudaStatus IMPLICIT = CudaStatus.STREAM_CAPTURE_IMPLICIT;
  private static final CudaStatus INVALIDATED = CudaStatus.STREAM_CAPTURE_INVALIDATED;

  private final long one = driver.streams().streamCreateWithPriority(0, 0, 0);
  private final long other = driver.streams().streamCreateWithPriority(0, 0, 0);
  private final long memory = driver.memory().memAlloc(0, 64);

  private void begin(long stream) {
    driver.captures().streamBeginCapture(0, stream, RELAXED);
  }

  private void beginInto(long graph, long stream, int mode) {
    driver.captures().streamBeginCaptureToGraph(0, stream, graph, new long[0], mode);
  }

  private long end(long stream) {
    return driver.captures().streamEndCapture(0, stream);
  }

  private void fill(long stream) {
    driver.transfers().memsetD8Async(0, memory, (byte) 1, 64, stream);
  }

  private void spoil(long stream) {
    assertFails(
        CudaStatus.STREAM_CAPTURE_UNSUPPORTED,
        "captured",
        () -> driver.streams().streamSynchronize(0, stream));
  }

  @Test
  void captureIntoAGraph_beginsWhereAnyOtherDoes() {
    long graph = driver.graphs().graphCreate();
    CudaStatus status = CudaStatus.STREAM_CAPTURE_UNSUPPORTED;
    assertFails(status, "legacy", () -> beginInto(graph, 0, RELAXED));
    assertFails(status, "legacy", () -> beginInto(graph, 1, RELAXED));
    assertFails(CudaStatus.INVALID_VALUE, "mode: 3", () -> beginInto(graph, one, 3));
    assertFails(CudaStatus.INVALID_VALUE, "mode: -1", () -> beginInto(graph, one, -1));
    begin(one);
    assertFails(CudaStatus.ILLEGAL_STATE, "already", () -> beginInto(graph, one, RELAXED));
    driver.graphs().graphDestroy(end(one));
    AddedNode free = // which no capture holds
        driver.graphs().graphAddNode(0, graph, new long[0], new GraphNodeParams.Empty());
    beginInto(graph, one, RELAXED);
    fill(one);
    assertThat(end(one)).isEqualTo(graph);
    assertThat(driver.graphs().graphGetNodes(graph)).hasSize(2).contains(free.node());
  }

  @Test
  void everyCapture_hasANumberOfItsOwn() {
    Set<Long> ids = new HashSet<>();
    long graph = driver.graphs().graphCreate();
    for (int i = 0; i < 4; i++) {
      begin(one);
      beginInto(graph, other, RELAXED);
      for (long stream : new long[] {one, other}) {
        assertThat(ids.add(driver.captures().streamGetCaptureInfo(0, stream).id())).isTrue();
      }
      driver.graphs().graphDestroy(end(one));
      assertThat(end(other)).isEqualTo(graph);
    }
  }

  /** The legacy stream waits for every blocking stream, so it would wait for a captured one. */
  @Test
  void captureThatEnds_leavesTheRulesOfTheOthers() {
    List<Runnable> ends =
        List.of(
            () -> driver.graphs().graphDestroy(end(one)),
            () -> {
              spoil(one);
              assertFails(INVALIDATED, "during", () -> end(one));
            },
            () -> {
              long gone = driver.streams().streamCreateWithPriority(0, 0, 0);
              begin(gone);
              driver.streams().streamDestroy(0, gone);
              driver.graphs().graphDestroy(end(one));
            });
    for (Runnable ending : ends) {
      begin(one);
      begin(other);
      ending.run();
      assertFails(IMPLICIT, "legacy", () -> fill(0));
      assertFails(INVALIDATED, "during", () -> end(other));
      fill(0);
    }
    driver.streams().streamSynchronize(0, 0);
  }

  @Test
  void destroyedStream_endsItsOwnCapture_andNoOther() {
    begin(one);
    begin(other);
    driver.streams().streamDestroy(0, one);
    assertFails(IMPLICIT, "legacy", () -> driver.streams().streamQuery(0, 0));
    assertThat(driver.captures().streamIsCapturing(0, other)).isEqualTo(2);
    assertFails(INVALIDATED, "during", () -> end(other));
    assertThat(driver.streams().streamQuery(0, 0)).isTrue();
    assertThat(driver.liveGraphs()).isZero();
  }

  /** The capture is spoiled, and is to be ended where it began. */
  @Test
  void destroyedStreamThatHadJoined_leavesTheCaptureToItsOrigin() {
    long joined = driver.streams().streamCreateWithPriority(0, 1, 0);
    long event = driver.events().eventCreate(0, 2);
    begin(one);
    driver.events().eventRecord(0, event, one);
    driver.streams().streamWaitEvent(0, joined, event);
    driver.streams().streamDestroy(0, joined);
    assertThat(driver.captures().streamIsCapturing(0, one)).isEqualTo(2);
    assertFails(INVALIDATED, "during", () -> fill(one));
    assertFails(INVALIDATED, "during", () -> end(one));
    assertThat(driver.captures().streamIsCapturing(0, one)).isZero();
    fill(one);
    driver.streams().streamSynchronize(0, one);
    assertThat(driver.liveGraphs()).isZero();
  }

  @Test
  void everyCallOnTheLegacyStream_isRefusedWhileABlockingStreamIsCaptured() {
    long event = driver.events().eventCreate(0, 0);
    List<Runnable> calls =
        List.of(
            () -> driver.streams().streamQuery(0, 0),
            () -> driver.streams().streamSynchronize(0, 0),
            () -> driver.streams().launchHostFunc(0, 0, () -> {}),
            () -> driver.events().eventRecord(0, event, 0),
            () -> driver.streams().streamWaitEvent(0, 0, event),
            () -> driver.ordered().memAllocAsync(0, 64, 0),
            () -> fill(0));
    for (Runnable call : calls) {
      begin(one);
      assertFails(IMPLICIT, "legacy", call::run);
      assertFails(INVALIDATED, "during", () -> end(one));
      call.run();
    }
    driver.devices().ctxSynchronize(0);
  }

  /** Whatever happens to it afterwards. */
  @Test
  void captureThatIsInvalid_letsItsGraphGoOnce() {
    UserObject object = driver.graphs().userObjectCreate();
    long kept = driver.graphs().graphCreate();
    driver.graphs().graphRetainUserObject(kept, object.handle());
    begin(one);
    fill(one);
    assertThat(driver.liveGraphs()).isEqualTo(2);
    spoil(one);
    spoil(one);
    assertFails(IMPLICIT, "legacy", () -> fill(0));
    assertThat(driver.liveGraphs()).isEqualTo(1);
    driver.streams().streamDestroy(0, one);
    assertThat(driver.liveGraphs()).isEqualTo(1);
    assertThat(object.isDestroyed()).isFalse();
    driver.graphs().graphDestroy(kept);
    assertThat(object.isDestroyed()).isTrue();
    assertThat(driver.liveGraphs()).isZero();
  }

  @Test
  void graphThatACaptureSpoiled_isThereAndFree() {
    long graph = driver.graphs().graphCreate();
    beginInto(graph, one, RELAXED);
    fill(one);
    spoil(one);
    spoil(one);
    driver.streams().streamDestroy(0, one);
    assertThat(driver.liveGraphs()).isEqualTo(1);
    driver.graphs().graphAddNode(0, graph, new long[0], new GraphNodeParams.Empty());
    beginInto(graph, other, RELAXED);
    assertThat(end(other)).isEqualTo(graph);
  }

  /** Its address is that of no memory any more. */
  @Test
  void memoryForACaptureThatIsInvalid_isNotKept() {
    long before = capturedAddress();
    begin(one);
    long valid = driver.ordered().memAllocAsync(0, 64, one);
    spoil(one);
    assertFails(INVALIDATED, "during", () -> driver.ordered().memAllocAsync(0, 64, one));
    assertFails(INVALIDATED, "during", () -> end(one));
    long behind = capturedAddress();
    long step = valid - before;
    assertThat(behind - valid).isEqualTo(2 * step);
    for (long gone : new long[] {valid, valid + step}) {
      assertFails(
          CudaStatus.INVALID_VALUE,
          "was freed",
          () -> driver.transfers().memsetD8Async(0, gone, (byte) 1, 64, 0));
    }
    assertThat(driver.liveAllocations()).isEqualTo(1);
  }

  private long capturedAddress() {
    begin(one);
    long address = driver.ordered().memAllocAsync(0, 64, one);
    long _ = end(one);
    return address;
  }

  private CudaStatus statusOf(Runnable call) {
    try {
      call.run();
      return CudaStatus.SUCCESS;
    } catch (io.cuvette.driver.CudaException e) {
      return e.status();
    }
  }

  /** An event of a capture has no time, and is of that capture alone, also when it has ended. */
  @Test
  void eventOfACapture_isThatOfNoOther_andHasNoTime() {
    long captured = driver.events().eventCreate(0, 0);
    long plain = driver.events().eventCreate(0, 0);
    driver.events().eventRecord(0, plain, 0);
    driver.streams().streamSynchronize(0, 0);
    for (int again = 0; again < 3; again++) {
      begin(one);
      driver.events().eventRecord(0, captured, one);
      assertTimeless(captured, plain, CudaStatus.CAPTURED_EVENT);
      assertThat(driver.captures().streamIsCapturing(0, one)).isEqualTo(1);
      driver.graphs().graphDestroy(end(one));
      assertTimeless(captured, plain, CudaStatus.INVALID_VALUE);
      if (again > 0) {
        begin(again == 1 ? one : other);
      }
      assertTimeless(captured, plain, CudaStatus.INVALID_VALUE);
      for (Runnable question :
          List.<Runnable>of(
              () -> driver.events().eventQuery(0, captured),
              () -> driver.events().eventSynchronize(0, captured),
              () -> driver.streams().streamWaitEvent(0, one, captured),
              () -> driver.streams().streamWaitEvent(0, other, captured))) {
        assertThat(statusOf(question)).isEqualTo(CudaStatus.INVALID_VALUE);
      }
      if (again > 0) {
        long stream = again == 1 ? one : other;
        assertThat(driver.captures().streamIsCapturing(0, stream)).isEqualTo(1);
        driver.graphs().graphDestroy(end(stream));
      }
    }
    driver.events().eventRecord(0, captured, 0);
    driver.streams().streamSynchronize(0, 0);
    assertThat(driver.events().eventElapsedTime(0, plain, captured)).isPositive();
  }

  private void assertTimeless(long captured, long plain, CudaStatus status) {
    for (long[] pair : new long[][] {{captured, plain}, {plain, captured}, {captured, captured}}) {
      assertThat(statusOf(() -> driver.events().eventElapsedTime(0, pair[0], pair[1])))
          .isEqualTo(status);
    }
  }

  /** Whichever of the captures began first. */
  @Test
  void waitForADevice_isRefusedWhereAnyOfTheCapturesIsOnIt() {
    try (SimulatedDriver two = SimulatedDriver.open(SimulatedOptions.parse("devices=3"))) {
      for (int device = 0; device < 2; device++) {
        long captured = two.streams().streamCreateWithPriority(device, 1, 0);
        two.captures().streamBeginCapture(device, captured, 2);
      }
      assertThatCode(() -> two.devices().ctxSynchronize(2)).doesNotThrowAnyException();
      for (int device = 1; device >= 0; device--) {
        int waited = device;
        assertThatThrownBy(() -> two.devices().ctxSynchronize(waited))
            .isInstanceOf(CudaException.class)
            .hasMessageContaining("a stream of the device is captured");
      }
    }
  }
}
