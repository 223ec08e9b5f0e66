package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.UserObject;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** What is captured runs when it is launched, and objects live as long as it can. */
class GraphsTest extends SimTestBase {
  private static final int RELAXED = 2;

  private final long one = stream(0);
  private final long other = stream(0);
  private final long memory = driver.memory().memAlloc(0, 64);

  private void fill(int value, long stream) {
    driver.transfers().memsetD8Async(0, memory, (byte) value, 64, stream);
  }

  private long capture(Runnable body) {
    driver.captures().streamBeginCapture(0, one, RELAXED);
    body.run();
    return driver.captures().streamEndCapture(0, one);
  }

  @Test
  void executable_runsAsOftenAsItIsLaunched_withoutItsGraph() {
    AtomicInteger calls = new AtomicInteger();
    long graph =
        capture(() -> {
          fill(7, one);
          driver.streams().launchHostFunc(0, one, calls::incrementAndGet);
        });
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    driver.graphs().graphDestroy(graph);
    assertThat(driver.liveExecutables()).isEqualTo(1);
    for (int i = 1; i <= 3; i++) {
      fill(i, other);
      driver.graphs().graphLaunch(0, executable, other);
      driver.streams().streamSynchronize(0, other);
      assertThat(calls).hasValue(i);
      assertThat(read(memory, 1)).containsExactly(7);
    }
    driver.graphs().graphExecDestroy(executable);
    assertThat(driver.liveExecutables()).isZero();
    assertFails(
        CudaStatus.INVALID_HANDLE,
        "destroyed",
        () -> driver.graphs().graphLaunch(0, executable, other));
  }

  @Test
  void captureInfo_namesCapturesForEver_andTheirGraph() {
    assertThat(driver.captures().streamGetCaptureInfo(0, one)).isEqualTo(CaptureInfo.of(0, 0, 0));
    CaptureInfo[] info = new CaptureInfo[2];
    long first = capture(() -> info[0] = driver.captures().streamGetCaptureInfo(0, one));
    long second = capture(() -> info[1] = driver.captures().streamGetCaptureInfo(0, one));
    assertThat(info[0].isActive()).isTrue();
    assertThat(info[0].graph()).isEqualTo(first);
    assertThat(info[1].graph()).isEqualTo(second);
    assertThat(info[1].id()).isNotEqualTo(info[0].id());
  }

  @Test
  void userObject_livesAsLongAsGraphExecutablesAndLaunches() {
    UserObject object = driver.graphs().userObjectCreate();
    long graph =
        capture(() -> {
          long captured = driver.captures().streamGetCaptureInfo(0, one).graph();
          driver.graphs().graphRetainUserObject(captured, object.handle());
          fill(1, one);
        });
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    driver.graphs().graphDestroy(graph);
    assertThat(object.isDestroyed()).isFalse();
    CountDownLatch goOn = hold(0, other);
    driver.graphs().graphLaunch(0, executable, other);
    driver.graphs().graphExecDestroy(executable);
    assertThat(object.isDestroyed()).isFalse();
    goOn.countDown();
    driver.streams().streamSynchronize(0, other);
    assertThat(object.isDestroyed()).isTrue();
    assertThat(driver.liveUserObjects()).isZero();
  }

  @Test
  void userObject_ofAChildGraph_livesAsLongAsExecutablesOfItsParent() {
    UserObject object = driver.graphs().userObjectCreate();
    long child = driver.graphs().graphCreate();
    driver.graphs().graphRetainUserObject(child, object.handle());
    long parent = driver.graphs().graphCreate();
    driver.graphs().graphAddNode(0, parent, new long[0], new GraphNodeParams.Child(child));
    long executable = driver.graphs().graphInstantiateWithParams(0, parent, 0, 0).executable();
    driver.graphs().graphDestroy(child);
    driver.graphs().graphDestroy(parent);
    assertThat(object.isDestroyed()).isFalse();
    driver.graphs().graphExecDestroy(executable);
    assertThat(object.isDestroyed()).isTrue();
  }

  @Test
  void userObject_ofACaptureThatFails_isGone() {
    UserObject object = driver.graphs().userObjectCreate();
    driver.captures().streamBeginCapture(0, one, RELAXED);
    driver
        .graphs()
        .graphRetainUserObject(
            driver.captures().streamGetCaptureInfo(0, one).graph(), object.handle());
    assertFails(
        CudaStatus.STREAM_CAPTURE_UNSUPPORTED,
        "captured",
        () -> driver.streams().streamSynchronize(0, one));
    assertThat(object.isDestroyed()).isTrue();
  }

  @Test
  void userObjectNobodyRetained_isReleased() {
    UserObject object = driver.graphs().userObjectCreate();
    driver.graphs().userObjectRelease(object.handle());
    assertThat(object.isDestroyed()).isTrue();
    assertFails(
        CudaStatus.INVALID_HANDLE,
        "destroyed",
        () -> driver.graphs().userObjectRelease(object.handle()));
  }

  @Test
  void report_saysEachThingThatIsLeft() {
    long stream = stream(1);
    long _ = driver.events().eventCreate(1, 2);
    long graph = driver.graphs().graphCreate();
    driver.graphs().graphAddNode(0, graph, new long[0], new GraphNodeParams.Empty());
    driver.graphs().graphInstantiateWithParams(0, graph, 0, 0);
    UserObject _ = driver.graphs().userObjectCreate();
    assertThat(driver.report())
        .contains("stream id %d, device 1\n".formatted(driver.streams().streamGetId(1, stream)))
        .endsWith("event flags 2, device 1\ngraph of 1 nodes\ngraph executable\nuser object\n");
  }
}
