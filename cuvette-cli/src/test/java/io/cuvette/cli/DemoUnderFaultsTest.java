package io.cuvette.cli;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.examples.WrongResultException;
import io.cuvette.instrument.FaultSweep;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

/** The tour with driver call 1, 2, 3 … failing: no leak, no hang, a typed error. */
class DemoUnderFaultsTest {
  @Test
  void demo_leavesNothingBehindWhateverFails() throws Exception {
    PrintStream nowhere =
        new PrintStream(OutputStream.nullOutputStream(), false, StandardCharsets.UTF_8);
    CommonOptions options = new CommonOptions(new Terminal(nowhere, nowhere, false));
    FaultSweep.over(() -> SimulatedDriver.open(SimulatedOptions.DEFAULTS))
        // When memory is short the pool takes another stream's block, which the tour notices.
        .allowing(WrongResultException.class)
        .recoveringFrom("memAlloc", "memAllocManaged", "memHostAlloc", "memGetInfo")
        .run(driver -> {
          try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDriver(driver))) {
            new DemoTour(cuda, new Narrator(options, "demo", "tour")).run();
          }
        })
        .orThrow();
  }
}
