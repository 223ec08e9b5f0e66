package io.cuvette.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.instrument.FaultSweep;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/**
 * Each example with driver call 1, 2, 3 … failing: no leak, no hang, a typed error. They run at the
 * same time, each on drivers of its own.
 */
@Execution(ExecutionMode.CONCURRENT)
class ExamplesUnderFaultsTest {
  /** Not the one that starts a JVM each time: its calls are swept where sharing is tested. */
  static final List<Example> EXAMPLES =
      Example.ALL.stream().filter(example -> !example.name().equals("ipc")).toList();

  private static final Output SILENT =
      new Output() {
        @Override
        public void say(String text) {}

        @Override
        public void show(String name, Object value) {}

        @Override
        public void shown(String name, Object value) {}
      };

  @ParameterizedTest
  @FieldSource("EXAMPLES")
  void example_leavesNothingBehindWhateverFails(Example example) throws Exception {
    FaultSweep.over(() -> SimulatedDriver.open(SimulatedOptions.DEFAULTS.withDevices(2)))
        .recoveringFrom("memAlloc", "memAllocManaged", "memHostAlloc", "memGetInfo")
        .recoveringFrom("memAllocFromPoolAsync")
        // The numbers of an out-of-memory error, which are then unknown.
        .recoveringFrom("driverGetVersion", "memPoolGetAttribute")
        // Access is taken again from one device after the other.
        .recoveringFrom("memPoolSetAccess")
        .run(driver -> {
          try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDriver(driver))) {
            example.program().run(cuda, SILENT);
          }
        })
        .orThrow();
  }

  @Test
  void wrongResult_isAnError() {
    assertThatExceptionOfType(WrongResultException.class)
        .isThrownBy(() -> SILENT.check("used", 513L, 512L))
        .withMessage("used: 513 (expected: 512)");
    SILENT.check("used", 512L, 512L);
    assertThat(Example.find("nonsense")).isEmpty();
  }
}
