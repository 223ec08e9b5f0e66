package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Threads that have one stream wait for what may be captured do not wait for each other. */
class ExposedAtOnceTest {
  private static final int THREADS = 2;

  /** At a second each, more than the test may take. */
  private static final int ROUNDS = 60;

  @Test
  @Timeout(60)
  void threadsThatExposeANewStream_goOnAtOnce() throws Exception {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver));
        ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
      CyclicBarrier bothHold = new CyclicBarrier(THREADS);
      for (int round = 0; round < ROUNDS; round++) {
        try (CudaStream stream = cuda.device(0).createStream()) {
          List<Future<?>> all = new ArrayList<>();
          for (int i = 0; i < THREADS; i++) {
            all.add(threads.submit(() -> holdAndExpose(stream.state, bothHold)));
          }
          for (Future<?> each : all) {
            each.get();
          }
        }
      }
    }
  }

  private static Void holdAndExpose(DriverStream stream, CyclicBarrier bothHold) throws Exception {
    CudaDriver _ = stream.hold();
    try {
      bothHold.await();
      stream.exposeHeld();
    } finally {
      stream.unhold();
    }
    return null;
  }
}
