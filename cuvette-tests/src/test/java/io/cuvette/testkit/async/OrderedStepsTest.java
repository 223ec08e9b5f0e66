package io.cuvette.testkit.async;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.AsyncPoolOptions;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.MemoryResource;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import java.util.List;

/**
 * The calls by which memory of the driver's pools is freed in order, and found when it is short.
 */
class OrderedStepsTest {
  private static final long BYTES = 4096;

  /** The free is queued at once behind the other stream: no later look has to make it. */
  @CudaTest(simulatedOnly = true)
  void memoryThatAnotherStreamUses_isFreedInOrderAtOnce(
      ScriptedDriver driver,
      DeviceMemoryResource resource,
      @NonBlocking CudaStream home,
      @NonBlocking CudaStream other) {
    Buffer buffer = resource.allocate(BYTES, home);
    try (Gate _ = Gate.on(other)) {
      buffer.recordUse(other);
      driver.note("streamWaitEvent", "memFreeAsync");
      buffer.close();
      assertThat(driver.notes()).containsExactly("streamWaitEvent", "memFreeAsync");
    }
  }

  /** Its work cannot be marked then, so nothing can be queued behind it. */
  @CudaTest(simulatedOnly = true)
  void memoryThatAStreamUsesWhichBeginsACapture_isFreedOnceItsWorkIsDone(
      ScriptedDriver driver,
      DeviceMemoryResource resource,
      @NonBlocking CudaStream home,
      @NonBlocking CudaStream other) {
    Buffer buffer = resource.allocate(BYTES, home);
    try (Gate _ = Gate.on(other)) {
      buffer.recordUse(other);
      driver.fail("eventRecord", CudaStatus.STREAM_CAPTURE_INVALIDATED, 2).note("memFreeAsync");
      buffer.close();
      assertThat(driver.notes()).isEmpty();
      resource.attributes().usedMemCurrent(); // whoever asks looks again
      assertThat(driver.notes()).isEmpty();
    }
    home.synchronize();
    other.synchronize();
    resource.attributes().usedMemCurrent();
    assertThat(driver.notes()).containsExactly("memFreeAsync");
  }

  /** What the driver gets back during the wait may be what it lacked. */
  @CudaTest(simulatedOnly = true)
  void memoryThatIsUsedNoMore_isFreed_beforeTheDriverIsAskedAgain(
      Cuda cuda,
      ScriptedDriver driver,
      DeviceMemoryResource resource,
      @NonBlocking CudaStream home,
      @NonBlocking CudaStream other) {
    Buffer buffer = resource.allocate(BYTES, home);
    try (Gate gate = Gate.on(other)) {
      buffer.recordUse(other);
      driver.fail("eventRecord", CudaStatus.STREAM_CAPTURE_INVALIDATED, 2);
      buffer.close();
      driver.fail("memAllocFromPoolAsync", CudaStatus.OUT_OF_MEMORY, 1);
      driver.note("memAllocFromPoolAsync", "memFreeAsync");
      driver.answer(
          "streamSynchronize",
          call -> {
            driver.unscript("streamSynchronize");
            gate.open();
            cuda.driver().streams().streamSynchronize(0, other.handle());
            return call.proceed();
          });
      resource.allocate(2 * BYTES, home).close();
      assertThat(driver.notes())
          .startsWith("memAllocFromPoolAsync", "memFreeAsync", "memAllocFromPoolAsync");
    }
    home.synchronize();
  }

  @CudaTest(simulatedOnly = true)
  void refusedAllocation_hasTheCurrentPoolTrimmed_beforeAnotherIsMade(
      ScriptedDriver driver, @NonBlocking CudaStream stream) {
    driver
        .fail("memAllocAsync", CudaStatus.OUT_OF_MEMORY, 2)
        .note("memPoolTrimTo", call -> "trim to " + call.number("bytesToKeep"))
        .note("memAllocAsync");
    MemoryResource.async().allocate(BYTES, stream).close();
    assertThat(driver.notes())
        .isEqualTo(List.of("memAllocAsync", "memAllocAsync", "trim to 0", "memAllocAsync"));
  }

  /** The calls of some names as a pool whose threshold is not raised is refused so often. */
  private static List<String> stepsAfter(
      int refusals, Cuda cuda, ScriptedDriver driver, CudaStream stream, String... noted) {
    AsyncPoolOptions options = AsyncPoolOptions.DEFAULTS.withThresholdRaised(false);
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofDefault(), options)) {
      driver.fail("memAllocFromPoolAsync", CudaStatus.OUT_OF_MEMORY, refusals).note(noted);
      pool.allocate(BYTES, stream).close();
      return driver.notes();
    }
  }

  @CudaTest(simulatedOnly = true)
  void refusedAllocation_hasItsPoolTrimmed_thoughNothingIsRaised(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    assertThat(stepsAfter(2, cuda, driver, stream, "memAllocFromPoolAsync", "memPoolTrimTo"))
        .containsExactly(
            "memAllocFromPoolAsync",
            "memAllocFromPoolAsync",
            "memPoolTrimTo",
            "memAllocFromPoolAsync");
  }

  /** What others gave back meanwhile is in pools that keep it. */
  @CudaTest(simulatedOnly = true)
  void poolsAreTrimmedAgain_afterOthersWereWaitedFor(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    assertThat(
            stepsAfter(
                3,
                cuda,
                driver,
                stream,
                "memAllocFromPoolAsync",
                "memPoolTrimTo",
                "streamSynchronize"))
        .containsExactly(
            "memAllocFromPoolAsync",
            "streamSynchronize",
            "memAllocFromPoolAsync",
            "memPoolTrimTo",
            "memAllocFromPoolAsync",
            "streamSynchronize", // which has frees of what others gave back by now
            "memPoolTrimTo",
            "memAllocFromPoolAsync");
  }
}
