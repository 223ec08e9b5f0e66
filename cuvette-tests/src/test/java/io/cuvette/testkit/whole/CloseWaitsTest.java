package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.ScriptedDriver;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A Cuda that is closed while a thread is inside a call of the driver. */
@Timeout(60)
class CloseWaitsTest {
  /** By far longer than closing takes if it waits for nobody. */
  private static final Duration MOMENT = Duration.ofMillis(300);

  @Test
  void allocationThatTheDriverIsAbout_isWaitedFor_andFreed() throws Exception {
    SimulatedDriver simulated = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    ScriptedDriver script = new ScriptedDriver();
    Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(script.over(simulated)));
    var resource = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    try (var threads = Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory());
        Hold hold = script.hold("memAllocFromPoolAsync")) {
      Future<DeviceBuffer> allocating = threads.submit(() -> resource.allocate(512));
      hold.awaitBegun();
      Thread closing = Thread.ofPlatform().start(cuda::close);
      boolean waitedForNobody = closing.join(MOMENT);
      hold.release();
      closing.join();
      assertThat(waitedForNobody).isFalse();
      assertThat(cuda.isClosed()).isTrue();
      assertThat(allocating.get().isClosed()).isTrue();
    }
    assertThat(simulated.report().isEmpty()).as("%s", simulated.report()).isTrue();
  }
}
