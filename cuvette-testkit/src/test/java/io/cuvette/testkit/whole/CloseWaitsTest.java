package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
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
    SlowDriver driver = new SlowDriver(simulated);
    Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver));
    var resource = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    try (var threads = Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
      Future<DeviceBuffer> allocating = threads.submit(() -> resource.allocate(512));
      driver.begun.await();
      Thread closing = Thread.ofPlatform().start(cuda::close);
      boolean waitedForNobody = closing.join(MOMENT);
      driver.goOn.countDown();
      closing.join();
      assertThat(waitedForNobody).isFalse();
      assertThat(cuda.isClosed()).isTrue();
      assertThat(allocating.get().isClosed()).isTrue();
    }
    assertThat(simulated.report().isEmpty()).as("%s", simulated.report()).isTrue();
  }

  private static final class SlowDriver extends ForwardingDriver {
    private final CountDownLatch begun = new CountDownLatch(1);
    private final CountDownLatch goOn = new CountDownLatch(1);

    SlowDriver(CudaDriver delegate) {
      super(delegate);
    }

    @Override
    public long memAllocFromPoolAsync(int device, long bytes, long pool, long stream) {
      begun.countDown();
      try {
        goOn.await();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      return super.memAllocFromPoolAsync(device, bytes, pool, stream);
    }
  }
}
