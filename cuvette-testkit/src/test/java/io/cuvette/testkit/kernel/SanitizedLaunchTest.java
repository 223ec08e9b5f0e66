package io.cuvette.testkit.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.instrument.SanitizerReport;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the sanitizer reports of launches: their arguments are uses. */
class SanitizedLaunchTest {
  private static final LaunchShape SHAPE =
      new LaunchShape(1, 1, 1, 32, 1, 1, 1, 1, 1, 0, false, false);
  private static final int COUNT = 32;
  private static final long BYTES = COUNT * 4L;

  private final List<SanitizerReport> reports = new ArrayList<>();
  private CudaDriver driver;
  private long library;
  private long scale;
  private long first;
  private long second;
  private long data;

  @BeforeEach
  void open() {
    driver =
        SanitizerDriver.reporting(SimulatedDriver.open(SimulatedOptions.DEFAULTS), reports::add);
    library = driver.kernels().libraryLoadData(TestKernels.code("launches.ptx"));
    scale = driver.kernels().libraryGetKernel(library, "scale");
    first = driver.streams().streamCreateWithPriority(0, 1, 0);
    second = driver.streams().streamCreateWithPriority(0, 1, 0);
    data = driver.memory().memAlloc(0, BYTES);
    driver.transfers().memsetD8Async(0, data, (byte) 0, BYTES, first);
    driver.streams().streamSynchronize(0, first);
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private void launch(long stream, long address) {
    MemorySegment values = Arena.ofAuto().allocate(16, 8);
    values.set(ValueLayout.JAVA_LONG, 0, address);
    values.set(ValueLayout.JAVA_FLOAT, 8, 1f);
    values.set(ValueLayout.JAVA_INT, 12, COUNT);
    List<KernelParameter> places =
        List.of(
            driver.kernels().kernelGetParamInfo(scale, 0),
            driver.kernels().kernelGetParamInfo(scale, 1),
            driver.kernels().kernelGetParamInfo(scale, 2));
    driver.kernels().launchKernel(0, stream, scale, SHAPE, new LaunchParameters(values, places));
  }

  private void reported(Misuse misuse, String text) {
    assertThat(reports).hasSize(1);
    assertThat(reports.getFirst().misuse()).isEqualTo(misuse);
    assertThat(reports.getFirst().toString()).contains(text);
    reports.clear();
  }

  @Test
  void freedMemory_isNoArgument() {
    driver.memory().memFree(0, data);
    assertThatCode(() -> launch(first, data)).doesNotThrowAnyException();
    reported(Misuse.USE_AFTER_FREE, "launchKernel");
  }

  @Test
  void unorderedUseOfAnotherStream_isARace_inBothDirections() {
    driver.transfers().memsetD8Async(0, data, (byte) 0, BYTES, first);
    launch(second, data);
    reported(Misuse.RACE, "launchKernel");
    driver.streams().streamSynchronize(0, first);
    driver.streams().streamSynchronize(0, second);
    launch(first, data + 8);
    driver.transfers().memsetD8Async(0, data, (byte) 0, BYTES, second);
    reported(Misuse.RACE, "memsetD8Async");
  }

  @Test
  void orderedUses_andLaunchesThatShareAnInput_areFine() {
    launch(first, data);
    launch(second, data);
    driver.streams().streamSynchronize(0, second);
    driver.streams().streamSynchronize(0, first);
    driver.transfers().memsetD8Async(0, data, (byte) 0, BYTES, second);
    assertThat(reports).isEmpty();
  }

  @Test
  void whatAKernelMayHaveWritten_canBeRead() {
    long fresh = driver.memory().memAlloc(0, BYTES);
    launch(first, fresh);
    driver.transfers().memcpyAsync(0, data, fresh, BYTES, first);
    driver.transfers().memcpyDtoHAsync(0, Arena.ofAuto().allocate(BYTES), data, first);
    driver.streams().streamSynchronize(0, first);
    assertThat(reports).isEmpty();
    driver.memory().memFree(0, fresh);
  }
}
