package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.Faults;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.FaultSweep;
import io.cuvette.testkit.FaultSweeps;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

/** The programs of docs/guide/simulated-device.md. */
class SimulatedGuideTest {
  @Test
  void settings_areGivenAsTextOrAsOptions() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDevice("sim:devices=2,memory=80GiB"))) {
      assertThat(cuda.deviceCount()).isEqualTo(2);
      assertThat(cuda.isSimulated()).isTrue();
    }
    SimulatedDriver driver =
        SimulatedDriver.open(SimulatedOptions.DEFAULTS.withDevices(2).withSeed(7));
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver))) {
      cuda.allocate(1 << 20).close();
      assertThat(driver.liveBytes(0)).isEqualTo(1 << 20); // cached by the pool
    }
    assertThat(driver.report()).isEmpty(); // nothing left behind
  }

  @Test
  void sanitizer_findsWhatAGpuHides() {
    CudaOptions options = CudaOptions.simulated().withDecorator(SanitizerDriver::throwing);
    try (Cuda cuda = Cuda.open(options);
        Buffer buffer = cuda.allocate(64)) {
      buffer.fill((byte) 1);
    }
  }

  @Test
  void fault_isInjectedIntoTheCallsThatAreNamed() {
    CudaOptions options =
        CudaOptions.simulated()
            .withDecorator(driver ->
                Faults.at(driver, 1, CudaStatus.UNKNOWN).only("memcpyHtoDAsync").driver());
    try (Cuda cuda = Cuda.open(options);
        Buffer buffer = cuda.allocate(64);
        java.lang.foreign.Arena arena = java.lang.foreign.Arena.ofConfined()) {
      assertThatThrownBy(() -> buffer.copyFrom(arena.allocate(64)))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("memcpyHtoDAsync");
    }
  }

  @Test
  void faultSweep_failsEveryCallInTurn() throws InterruptedException {
    FaultSweep.over(() -> SimulatedDriver.open(SimulatedOptions.DEFAULTS))
        .recoveringFrom("memAlloc", "memHostAlloc")
        .failingAsUsual() // without it also with every other error that the driver documents
        .run(SimulatedGuideTest::useTheLibrary)
        .orThrow();
  }

  @Test
  void sweepOfAProgram_knowsWhatTheLibraryRecoversFrom() throws InterruptedException {
    FaultSweeps.onSimulator("devices=2")
        .run(
            FaultSweeps.using(cuda -> {
              try (Buffer buffer = cuda.allocate(64)) {
                buffer.fill((byte) 1);
              }
            }))
        .orThrow();
  }

  @CudaTest(seeds = 24) // every schedule, with and without shared queues
  void aCopyThatIsWaitedFor_hasTheBytes(CudaStream stream, MemoryPool pool) {
    try (Buffer buffer = pool.allocate(64, stream)) {
      buffer.fill((byte) 7, stream);
      stream.synchronize();
      byte[] back = new byte[64];
      buffer.copyTo(MemorySegment.ofArray(back));
      assertThat(back).containsOnly(7);
    }
  }

  private static void useTheLibrary(CudaDriver driver) {
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver));
        Buffer buffer = cuda.allocate(64)) {
      buffer.fill((byte) 1);
      buffer.copyTo(MemorySegment.ofArray(new byte[64]));
    }
  }
}
