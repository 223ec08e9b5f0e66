package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.LeakLevel;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What is left of a program before its Cuda is closed, and the end of all that was opened. */
class LeftoversTest {
  private static Cuda open(LiveHandles live) {
    return Cuda.open(CudaOptions.DEFAULTS.withDriver(live).withLeakLevel(LeakLevel.FULL));
  }

  /** A program may use more devices than its test asks for. */
  @Test
  void cacheOfADeviceThatWasUsedAllTheSame_isNotLeftBehind() {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse("devices=2"));
    LiveHandles live = new LiveHandles(driver);
    try (Cuda cuda = open(live)) {
      Buffer used;
      try (CudaStream stream = cuda.device(1).createStream()) {
        used = cuda.allocate(64, stream);
      }
      assertThatThrownBy(() -> Leftovers.of(cuda, live, 1).throwIfAny())
          .isInstanceOf(AssertionError.class)
          .hasMessageContaining("open: ");
      used.close();
      assertThat(cuda.defaultMemoryPool().stats(cuda.device(1)).heldBytes()).isPositive();
      assertThatCode(() -> Leftovers.of(cuda, live, 1).throwIfAny()).doesNotThrowAnyException();
    }
    driver.close();
  }

  @Test
  void memoryThatNobodyHas_isNamedWithItsPlace() {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    LiveHandles live = new LiveHandles(driver);
    try (Cuda cuda = open(live)) {
      long address = live.memory().memAlloc(0, 64);
      assertThatThrownBy(() -> Leftovers.of(cuda, live, 1).throwIfAny())
          .isInstanceOf(AssertionError.class)
          .hasMessageContaining("MEMORY 0x%x of memAlloc(64 bytes)".formatted(address))
          .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
      live.memory().memFree(0, address);
      assertThatCode(() -> Leftovers.of(cuda, live, 1).throwIfAny()).doesNotThrowAnyException();
    }
    driver.close();
  }

  @Test
  void stepsAfterOneThatFailed_areRun_andTheirFailuresKept() {
    List<String> ran = new ArrayList<>();
    Cleanup cleanup = new Cleanup();
    cleanup.run(() -> {
      throw new IllegalStateException("first");
    });
    cleanup.run(() -> ran.add("second"));
    cleanup.run(() -> {
      throw new AssertionError("third");
    });
    assertThat(ran).containsExactly("second");
    assertThatThrownBy(cleanup::throwFirst)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("first")
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
  }
}
