package io.cuvette.examples;

import static io.cuvette.driver.CudaStatus.INVALID_VALUE;
import static io.cuvette.driver.CudaStatus.LAUNCH_FAILED;
import static io.cuvette.driver.CudaStatus.NOT_SUPPORTED;
import static io.cuvette.driver.CudaStatus.OUT_OF_MEMORY;
import static io.cuvette.driver.CudaStatus.PEER_ACCESS_ALREADY_ENABLED;
import static io.cuvette.driver.CudaStatus.PEER_ACCESS_NOT_ENABLED;
import static io.cuvette.driver.CudaStatus.STREAM_CAPTURE_IMPLICIT;
import static io.cuvette.driver.CudaStatus.TOO_MANY_PEERS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.FaultSweep;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.FaultSweeps.CudaUse;
import java.util.List;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/**
 * Each example with a driver call failing, one after the other and one of five in each run: no
 * leak, no hang, a typed error. They run at the same time, each on drivers of its own; no other
 * class does meanwhile, for some set properties.
 */
@Tag("simulated")
class ExamplesUnderFaultsTest {
  private static final boolean EVERY_ERROR = "every".equals(System.getProperty("cuvette.faults"));

  /**
   * Not the one that starts a JVM each time, unless there is time for every error, and not the one
   * whose memory is freed by a thread that has nobody to tell of an error.
   */
  static final List<Example> EXAMPLES =
      Example.ALL.stream()
          .filter(example -> EVERY_ERROR || !example.name().equals("ipc"))
          .filter(example -> !example.name().equals("dlpack"))
          .toList();

  static final Output SILENT =
      new Output() {
        @Override
        public void say(String text) {}

        @Override
        public void show(String name, Object value) {}

        @Override
        public void shown(String name, Object value) {}
      };

  @Execution(ExecutionMode.CONCURRENT)
  @ParameterizedTest
  @FieldSource("EXAMPLES")
  void example_leavesNothingBehindWhateverFails(Example example) throws Exception {
    CudaUse use = cuda -> example.program().run(cuda, SILENT);
    FaultSweep sweep =
        FaultSweep.over(() -> SimulatedDriver.open(SimulatedOptions.DEFAULTS.withDevices(2)));
    // UnderFaultsTest has every error for every use; here it takes minutes: -Dcuvette.faults=every.
    (EVERY_ERROR ? sweep : sweep.failingAsUsual().sampling(5, Long.getLong("cuvette.seed", 1)))
        .recoveringFrom(OUT_OF_MEMORY, "memAlloc", "memAllocManaged", "memHostAlloc")
        .recoveringFrom(OUT_OF_MEMORY, "memAllocFromPoolAsync", "callMalloc")
        .recoveringFrom(OUT_OF_MEMORY, "memCreate", "memMap")
        .recoveringFrom("memGetInfo")
        // Peer access is as it should be, or copies go through the host.
        .recoveringFrom(PEER_ACCESS_ALREADY_ENABLED, "ctxEnablePeerAccess")
        .recoveringFrom(PEER_ACCESS_NOT_ENABLED, "ctxDisablePeerAccess")
        .recoveringFrom(TOO_MANY_PEERS, "ctxEnablePeerAccess")
        // Somebody's capture: an operation is refused, or memory stays where it is meanwhile.
        .recoveringFrom(STREAM_CAPTURE_IMPLICIT, "streamIsCapturing")
        .allowing(STREAM_CAPTURE_IMPLICIT, IllegalStateException.class)
        .allowing(STREAM_CAPTURE_IMPLICIT, WrongResultException.class)
        // What a callback's future fails with, which one example looks at.
        .allowing(LAUNCH_FAILED, CompletionException.class)
        .allowing(LAUNCH_FAILED, WrongResultException.class)
        // The numbers of an out-of-memory error, which are then unknown.
        .recoveringFrom("driverGetVersion", "memPoolGetAttribute")
        // Access is taken again from one device after the other.
        .recoveringFrom("memPoolSetAccess")
        // Pools that a driver does not have; the examples go on without them, and say so.
        .recoveringFrom(INVALID_VALUE, "memPoolCreate", "memPoolSetAttribute", "memGetMemPool")
        .recoveringFrom(NOT_SUPPORTED, "memPoolCreate", "memGetMemPool")
        // An attribute that the driver does not know is absent.
        .recoveringFrom(INVALID_VALUE, "deviceGetAttribute")
        // Behind launches that run when the module is closed: tried again by the next look.
        .recoveringFrom("libraryUnload")
        // Callbacks follow by an event where streams cannot wait for a value.
        .recoveringFrom(NOT_SUPPORTED, "streamWaitValue32")
        .run(FaultSweeps.usingTidily(use))
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
