package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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

  /** It would be destroyed under the call. What is exposed is asked by an event. */
  @ParameterizedTest
  @CsvSource({
    "streamQuery, false, false",
    "streamSynchronize, false, true",
    "eventRecord, true, false",
    "eventSynchronize, true, true"
  })
  void streamThatTheDriverIsAskedAbout_isDestroyedAfterThat(
      String call, boolean isExposed, boolean waits) throws Exception {
    SimulatedDriver simulated = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    ScriptedDriver script = new ScriptedDriver();
    Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(script.over(simulated)));
    CudaStream stream = cuda.device(0).createStream();
    if (isExposed) {
      assertThat(stream.handle()).isNotZero();
    }
    try (Buffer buffer = cuda.allocate(512, stream);
        var threads = Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory());
        Hold hold = script.hold(call)) {
      Future<?> asking =
          threads.submit(() -> {
            buffer.fill((byte) 1, stream);
            if (waits) {
              stream.synchronize();
            } else {
              boolean _ = stream.isDone();
            }
          });
      hold.awaitBegun();
      long before = script.count("streamDestroy");
      Thread closing = Thread.ofPlatform().start(cuda::close);
      boolean waitedForNobody = closing.join(MOMENT);
      long destroyed = script.count("streamDestroy");
      hold.release();
      closing.join();
      Object _ = asking.state();
      assertThat(waitedForNobody).isFalse();
      assertThat(destroyed).isEqualTo(before);
    }
    assertThat(simulated.report().isEmpty()).as("%s", simulated.report()).isTrue();
  }
}
