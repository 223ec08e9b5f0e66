package io.cuvette.testkit;

import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.List;
import java.util.concurrent.FutureTask;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a script changes of a driver, and what it leaves alone. */
@Timeout(60)
class ScriptedDriverTest {
  private final SimulatedDriver simulated = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
  private final ScriptedDriver script = new ScriptedDriver();
  private final CudaDriver driver = script.over(simulated);

  @AfterEach
  void close() {
    script.close();
    simulated.close();
  }

  @Test
  void nameThatTheDriverDoesNotHave_isRefusedAtOnce() {
    for (ThrowingCallable call :
        List.<ThrowingCallable>of(
            () -> script.hold("memfree"),
            () -> script.fail("memfree", CudaStatus.UNKNOWN),
            () -> script.answer("memfree", DriverCall::proceed),
            () -> script.unscript("memfree"),
            () -> script.count("memfree"),
            () -> script.note("memFree", "memfree"))) {
      assertThatThrownBy(call)
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("'memfree'");
    }
  }

  @Test
  void negativeNumberOfTimes_isRefused() {
    assertThatThrownBy(() -> script.fail("memFree", CudaStatus.UNKNOWN, -1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("times: -1 (expected: >= 0)");
  }

  @Test
  void withoutAScript_itIsTheDriverBelow() {
    assertThat(driver).isEqualTo(driver).isNotEqualTo(script.over(simulated));
    assertThat(driver).hasToString("scripted(sim)").hasSameHashCodeAs(driver);
    assertThat(driver.isSimulated()).isTrue();
    assertThatThrownBy(() -> driver.memory().memFree(0, 1)).isInstanceOf(CudaException.class);
    assertThat(script.count("memFree")).as("it failed").isZero();
    driver.memory().memFree(0, driver.memory().memAlloc(0, 512));
    assertThat(script.count("memFree")).isEqualTo(1);
  }

  @Test
  void failures_doNotReachTheDriverBelow_andEnd() {
    script.fail("memAlloc", CudaStatus.OUT_OF_MEMORY, 2);
    for (int i = 0; i < 2; i++) {
      assertThatThrownBy(() -> driver.memory().memAlloc(0, 512))
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY));
    }
    assertThat(simulated.liveAllocations()).isZero();
    driver.memory().memFree(0, driver.memory().memAlloc(0, 512));
    script.fail("memAlloc", CudaStatus.UNKNOWN);
    assertThatThrownBy(() -> driver.memory().memAlloc(0, 512)).isInstanceOf(CudaException.class);
    script.unscript("memAlloc");
    driver.memory().memFree(0, driver.memory().memAlloc(0, 512));
  }

  @Test
  void answers_knowTheArgumentsByName() {
    script.answer(
        "deviceGetAttribute",
        call -> call.number("attribute") == 1 ? (int) call.number("device") + 40 : call.proceed());
    assertThat(driver.devices().deviceGetAttribute(1, 0)).isEqualTo(40);
    assertThat(driver.devices().deviceGetAttribute(2, 0))
        .isEqualTo(simulated.devices().deviceGetAttribute(2, 0));
    script.answer("memAlloc", call -> call.number("size"));
    assertThatThrownBy(() -> driver.memory().memAlloc(0, 512))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("'size'");
  }

  @Test
  void notes_areInTheOrderInWhichCallsEnd_failedOrNot() {
    script.note("memAlloc", call -> "alloc " + call.number("bytes")).note("memFree");
    long address = driver.memory().memAlloc(0, 512);
    driver.memory().memFree(0, address);
    assertThatThrownBy(() -> driver.memory().memFree(0, address)).isInstanceOf(CudaException.class);
    assertThat(script.takeNotes()).containsExactly("alloc 512", "memFree", "memFree");
    assertThat(script.notes()).isEmpty();
  }

  @Test
  void hold_keepsTheNextCallAlone_untilItIsReleased() throws Exception {
    Hold hold = script.hold("memAlloc");
    FutureTask<Long> held = new FutureTask<>(() -> driver.memory().memAlloc(0, 512));
    Thread thread = Thread.ofPlatform().start(held);
    hold.awaitBegun();
    driver.memory().memFree(0, driver.memory().memAlloc(0, 1024));
    assertThat(held).isNotDone();
    assertThat(simulated.liveAllocations()).isZero();
    hold.release();
    thread.join();
    driver.memory().memFree(0, held.get());
  }

  @Test
  void end_letsGoWhatIsHeld() throws Exception {
    Hold hold = script.hold("deviceGetCount");
    Thread thread = Thread.ofPlatform().start(driver.devices()::deviceGetCount);
    hold.awaitBegun();
    script.close();
    thread.join();
  }

  @CudaTest
  void cudaOfATest_isAboveTheScript(Cuda cuda, ScriptedDriver below) {
    below.fail("memAlloc", CudaStatus.NOT_PERMITTED);
    assertThatThrownBy(() -> cuda.allocate(UNIT)).hasMessageContaining("scripted by the test");
    below.unscript("memAlloc");
  }

  @CudaTest
  void fixtures_areOneForEachParameter(
      Cuda cuda, CudaStream one, @NonBlocking CudaStream two, MemoryPool pool, MemoryPool other) {
    assertThat(one.handle()).isNotEqualTo(two.handle());
    assertThat(one.isNonBlocking()).isFalse();
    assertThat(two.isNonBlocking()).isTrue();
    assertThat(cuda.openObjects()).hasSize(4);
    pool.allocate(UNIT, two).close();
    assertThat(pool.totalBytes()).isPositive();
    assertThat(other.totalBytes()).isZero();
  }

  @CudaTest(devices = 2)
  void fixtures_areOfTheDeviceThatIsSaid(
      Cuda cuda,
      @OnDevice(1) CudaStream stream,
      @OnDevice(1) DeviceMemoryResource resource,
      AsyncMemoryPool pool,
      PinnedMemoryPool pinned) {
    assertThat(stream.device()).isEqualTo(cuda.device(1));
    assertThat(resource.deviceId()).isEqualTo(1);
    assertThat(resource.isHandleOwned()).isTrue();
    pinned.allocate(UNIT).close();
    pool.allocate(UNIT, stream).close();
    assertThat(pool.handle(cuda.device(1))).isNotEqualTo(resource.handle());
  }
}
