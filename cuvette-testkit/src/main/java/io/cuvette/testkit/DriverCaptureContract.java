package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import io.cuvette.driver.UserObject;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** What every driver promises about captures and graphs. Extend it in the tests of a driver. */
public abstract class DriverCaptureContract {
  private static final int RELAXED = 2;
  private static final long NULL_STREAM = 0;
  private static final int BYTES = 512;

  /** For subclasses. */
  protected DriverCaptureContract() {}

  /**
   * A capture is reported while it goes on and ends in a graph.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void capture_isSeen_andEndsInAGraph(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    long memory = driver.memory().memAlloc(0, 512);
    for (int mode = 0; mode <= RELAXED; mode++) {
      driver.captures().streamBeginCapture(0, stream, mode);
      assertThat(driver.captures().streamIsCapturing(0, stream)).isEqualTo(1);
      driver.transfers().memsetD8Async(0, memory, (byte) 1, 512, stream);
      long graph = driver.captures().streamEndCapture(0, stream);
      assertThat(graph).isNotZero();
      assertThat(driver.captures().streamIsCapturing(0, stream)).isZero();
      driver.graphs().graphDestroy(graph);
    }
    driver.memory().memFree(0, memory);
    driver.streams().streamDestroy(0, stream);
  }

  /**
   * Captures that CUDA does not allow are refused.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void capturesThatCannotBe_areRefused(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    Refused.with(
        CudaStatus.STREAM_CAPTURE_UNSUPPORTED,
        () -> driver.captures().streamBeginCapture(0, NULL_STREAM, RELAXED));
    Refused.with(CudaStatus.ILLEGAL_STATE, () -> driver.captures().streamEndCapture(0, stream));
    Refused.with(
        CudaStatus.INVALID_VALUE, () -> driver.captures().streamBeginCapture(0, stream, 9));
    driver.captures().streamBeginCapture(0, stream, RELAXED);
    Refused.with(
        CudaStatus.ILLEGAL_STATE, () -> driver.captures().streamBeginCapture(0, stream, RELAXED));
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, stream));
    driver.streams().streamDestroy(0, stream);
  }

  /**
   * Waiting for a capturing stream invalidates the capture.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void waitForACapturingStream_spoilsTheCapture(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    driver.captures().streamBeginCapture(0, stream, RELAXED);
    Refused.with(
        CudaStatus.STREAM_CAPTURE_UNSUPPORTED, () -> driver.streams().streamSynchronize(0, stream));
    Refused.with(
        CudaStatus.STREAM_CAPTURE_INVALIDATED, () -> driver.captures().streamEndCapture(0, stream));
    driver.streams().streamSynchronize(0, stream);
    driver.streams().streamDestroy(0, stream);
  }

  /**
   * As cuda.h says: the capture of the blocking stream is not invalidated by the question.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void askingTheNullStreamWhileABlockingOneCaptures_isRefused_andHarmless(
      CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 0, 0);
    driver.captures().streamBeginCapture(0, stream, RELAXED);
    Refused.with(
        CudaStatus.STREAM_CAPTURE_IMPLICIT,
        () -> driver.captures().streamIsCapturing(0, NULL_STREAM));
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, stream));
    driver.streams().streamDestroy(0, stream);
  }

  /**
   * Calls of other streams leave a capture valid in every mode.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void callsBesideACapture_leaveItValid_inEveryMode(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    long other = driver.streams().streamCreateWithPriority(0, 1, 0);
    long memory = driver.memory().memAlloc(0, BYTES);
    for (int mode = 0; mode <= RELAXED; mode++) {
      driver.captures().streamBeginCapture(0, stream, mode);
      callEverything(driver, other);
      Thread thread = Thread.ofPlatform().start(() -> callEverything(driver, other));
      join(thread);
      assertThat(driver.captures().streamIsCapturing(0, stream)).isEqualTo(1);
      driver.transfers().memsetD8Async(0, memory, (byte) 1, BYTES, stream);
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, stream));
    }
    driver.memory().memFree(0, memory);
    driver.streams().streamDestroy(0, other);
    driver.streams().streamDestroy(0, stream);
  }

  /** What CUDA counts as unsafe beside a capture in global mode, and what it might. */
  private static void callEverything(CudaDriver driver, long stream) {
    long memory = driver.memory().memAlloc(0, BYTES);
    MemorySegment pinned = driver.memory().memHostAlloc(0, BYTES, 0);
    MemorySegment managed = driver.memory().memAllocManaged(0, BYTES, 1);
    long event = driver.events().eventCreate(0, 2);
    driver.transfers().memcpyHtoDAsync(0, memory, pinned, stream);
    driver.events().eventRecord(0, event, stream);
    driver.events().eventQuery(0, event);
    driver.events().eventSynchronize(0, event);
    driver.streams().streamQuery(0, stream);
    driver.streams().streamSynchronize(0, stream);
    long ordered = driver.ordered().memAllocAsync(0, BYTES, stream);
    driver.ordered().memFreeAsync(0, ordered, stream);
    long pool = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 0));
    driver.pools().memPoolGetAttribute(pool, 5);
    driver.pools().memPoolSetAttribute(pool, 4, 0);
    driver.pools().memPoolTrimTo(pool, 0);
    driver.pools().memPoolDestroy(pool);
    driver.devices().memGetInfo(0);
    driver.memory().pointerGetAttribute(0, 9, memory);
    driver.streams().streamDestroy(0, driver.streams().streamCreateWithPriority(0, 1, 0));
    driver.events().eventDestroy(0, event);
    driver.memory().memFree(0, managed.address());
    driver.memory().memFreeHost(0, pinned.address());
    driver.memory().memFree(0, memory);
  }

  /**
   * A capturing stream reports the identity and graph of its capture.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void captureInfo_namesTheCaptureAndItsGraph(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    assertThat(driver.captures().streamGetCaptureInfo(0, stream).isCapturing()).isFalse();
    driver.captures().streamBeginCapture(0, stream, RELAXED);
    CaptureInfo first = driver.captures().streamGetCaptureInfo(0, stream);
    assertThat(first.isActive()).isTrue();
    assertThat(driver.captures().streamGetCaptureInfo(0, stream)).isEqualTo(first);
    long graph = driver.captures().streamEndCapture(0, stream);
    assertThat(graph).isEqualTo(first.graph());
    driver.graphs().graphDestroy(graph);
    driver.captures().streamBeginCapture(0, stream, RELAXED);
    assertThat(driver.captures().streamGetCaptureInfo(0, stream).id()).isNotEqualTo(first.id());
    Refused.with(
        CudaStatus.STREAM_CAPTURE_UNSUPPORTED, () -> driver.streams().streamQuery(0, stream));
    assertThat(driver.captures().streamGetCaptureInfo(0, stream))
        .isEqualTo(CaptureInfo.of(2, 0, 0));
    Refused.with(
        CudaStatus.STREAM_CAPTURE_INVALIDATED, () -> driver.captures().streamEndCapture(0, stream));
    driver.streams().streamDestroy(0, stream);
  }

  /**
   * A user object lives as long as the graph, its executables and their launches.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void userObject_isDestroyed_withTheLastOfGraphExecutableAndLaunch(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    MemorySegment pinned = driver.memory().memHostAlloc(0, BYTES, 0);
    long memory = driver.memory().memAlloc(0, BYTES);
    UserObject object = driver.graphs().userObjectCreate();
    driver.captures().streamBeginCapture(0, stream, 0);
    long captured = driver.captures().streamGetCaptureInfo(0, stream).graph();
    driver.graphs().graphRetainUserObject(captured, object.handle());
    driver.transfers().memsetD8Async(0, memory, (byte) 9, BYTES, stream);
    driver.transfers().memcpyDtoHAsync(0, pinned, memory, stream);
    long graph = driver.captures().streamEndCapture(0, stream);
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    driver.graphs().graphDestroy(graph);
    for (int i = 0; i < 2; i++) {
      pinned.fill((byte) 0);
      driver.graphs().graphLaunch(0, executable, stream);
      driver.streams().streamSynchronize(0, stream);
      assertThat(pinned.toArray(ValueLayout.JAVA_BYTE)).containsOnly(9);
    }
    assertThat(object.isDestroyed()).isFalse();
    driver.graphs().graphExecDestroy(executable);
    GraphBench.awaitDestroyed(object);
    driver.memory().memFree(0, memory);
    driver.memory().memFreeHost(0, pinned.address());
    driver.streams().streamDestroy(0, stream);
  }

  /**
   * A capture that fails destroys the user objects of its graph.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void userObject_isDestroyed_withACaptureThatFails(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    UserObject object = driver.graphs().userObjectCreate();
    driver.captures().streamBeginCapture(0, stream, RELAXED);
    long captured = driver.captures().streamGetCaptureInfo(0, stream).graph();
    driver.graphs().graphRetainUserObject(captured, object.handle());
    Refused.with(
        CudaStatus.STREAM_CAPTURE_UNSUPPORTED, () -> driver.streams().streamQuery(0, stream));
    Refused.with(
        CudaStatus.STREAM_CAPTURE_INVALIDATED, () -> driver.captures().streamEndCapture(0, stream));
    GraphBench.awaitDestroyed(object);
    driver.streams().streamDestroy(0, stream);
  }

  /**
   * A user object that no graph retained can be released.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void userObject_thatNobodyRetained_isReleased(CudaDriver driver) {
    UserObject object = driver.graphs().userObjectCreate();
    assertThat(object.isDestroyed()).isFalse();
    driver.graphs().userObjectRelease(object.handle());
    GraphBench.awaitDestroyed(object);
  }

  private static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
