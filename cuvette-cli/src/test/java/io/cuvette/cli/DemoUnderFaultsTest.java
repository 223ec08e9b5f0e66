package io.cuvette.cli;

import static io.cuvette.driver.CudaStatus.OUT_OF_MEMORY;
import static io.cuvette.driver.CudaStatus.STREAM_CAPTURE_IMPLICIT;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.examples.WrongResultException;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.FaultSweep;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * The tour with one of four driver calls failing, others with other seeds: no leak, no hang, a
 * typed error.
 */
@Isolated
@Tag("simulated")
class DemoUnderFaultsTest {
  @Test
  void demo_leavesNothingBehindWhateverFails() throws Exception {
    FaultSweep.over(() -> SimulatedDriver.open(SimulatedOptions.DEFAULTS))
        .failingAsUsual()
        .sampling(4, Long.getLong("cuvette.seed", 1))
        // When memory is short the pool takes another stream's block, which the tour notices.
        .allowing(WrongResultException.class)
        .recoveringFrom(OUT_OF_MEMORY, "memAlloc", "memAllocManaged", "memHostAlloc")
        .recoveringFrom(OUT_OF_MEMORY, "memAddressReserve", "memCreate", "memMap", "memSetAccess")
        .recoveringFrom("memGetInfo")
        // Somebody's capture: an operation is refused, or memory stays where it is meanwhile.
        .recoveringFrom(STREAM_CAPTURE_IMPLICIT, "streamIsCapturing")
        .allowing(STREAM_CAPTURE_IMPLICIT, IllegalStateException.class)
        .run(driver -> {
          try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDriver(driver))) {
            tour(cuda).run();
          }
        })
        .orThrow();
  }

  @CudaTest(simulatedOnly = true)
  void demo_leavesNothingBehind(Cuda cuda) {
    tour(cuda).run();
  }

  private static DemoTour tour(Cuda cuda) {
    PrintStream nowhere =
        new PrintStream(OutputStream.nullOutputStream(), false, StandardCharsets.UTF_8);
    CommonOptions options = new CommonOptions(new Terminal(nowhere, nowhere, false));
    return new DemoTour(cuda, new Narrator(options, "demo", "tour"));
  }
}
