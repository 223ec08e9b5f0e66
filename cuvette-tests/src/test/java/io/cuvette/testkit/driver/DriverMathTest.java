package io.cuvette.testkit.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MathLibrary;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.instrument.SanitizerReport;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.DriverMathContract;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class DriverMathTest extends DriverMathContract {
  private final SimulatedDriver simulator =
      SimulatedDriver.open(SimulatedOptions.parse("devices=2"));

  @Test
  void simulatedHandles_areThoseOfOneLibraryAndDevice() {
    try (simulator) {
      long handle = simulator.math().mathHandleCreate(MathLibrary.CUBLAS, 1);
      assertThat(simulator.report()).isEqualTo("handle of cuBLAS, device 1\n");
      assertThat(simulator.liveMathHandles()).isOne();
      assertThat(
              catchThrowable(
                  () -> simulator.math().mathHandleDestroy(MathLibrary.CUBLAS, 0, handle)))
          .hasMessageContaining("expected: one of cuBLAS for device 0; this is one of cuBLAS for");
      assertThat(
              catchThrowable(
                  () -> simulator.math().mathHandleDestroy(MathLibrary.CUSOLVER_DN, 1, handle)))
          .hasMessageContaining(CudaStatus.INVALID_HANDLE.name());
      long memory = simulator.memory().memAlloc(1, 4096);
      assertThat(
              catchThrowable(
                  () -> simulator.math().mathHandleSetWorkspace(1, handle, memory + 1, 1024)))
          .hasMessageContaining("256");
      simulator.memory().memFree(1, memory);
      simulator.math().mathHandleDestroy(MathLibrary.CUBLAS, 1, handle);
      assertThat(
              catchThrowable(
                  () -> simulator.math().mathHandleSetStream(MathLibrary.CUBLAS, 1, handle, 0)))
          .hasMessageContaining("a live library handle; this is one that was destroyed");
      assertThat(simulator.liveMathHandles()).isZero();
    }
  }

  @Test
  void sanitizer_findsWhatIsWrongWithHandles() {
    List<Misuse> found = new ArrayList<>();
    CudaDriver driver =
        SanitizerDriver.reporting(
            simulator, (SanitizerReport report) -> found.add(report.misuse()));
    long handle = driver.math().mathHandleCreate(MathLibrary.CUBLAS, 0);
    long memory = driver.memory().memAlloc(0, 4096);
    driver.math().mathHandleSetWorkspace(0, handle, memory, 4096);
    assertThat(found).isEmpty();
    driver.math().mathHandleSetWorkspace(0, handle, memory, 8192);
    driver.memory().memFree(0, memory);
    driver.math().mathHandleSetWorkspace(0, handle, memory, 4096);
    driver.math().mathHandleDestroy(MathLibrary.CUBLAS, 0, handle);
    assertThat(
            catchThrowable(
                () -> driver.math().mathHandleSetStream(MathLibrary.CUBLAS, 0, handle, 0)))
        .isNotNull();
    assertThat(catchThrowable(() -> driver.math().mathHandleDestroy(MathLibrary.CUBLAS, 0, handle)))
        .isNotNull();
    driver.math().mathHandleCreate(MathLibrary.CUSOLVER_SP, 0);
    driver.close();
    assertThat(found)
        .containsExactly(
            Misuse.OUT_OF_BOUNDS,
            Misuse.USE_AFTER_FREE,
            Misuse.DESTROYED_HANDLE,
            Misuse.DOUBLE_FREE,
            Misuse.LEAK);
  }
}
