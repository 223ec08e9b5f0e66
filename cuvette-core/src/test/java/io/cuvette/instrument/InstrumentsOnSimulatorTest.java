package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class InstrumentsOnSimulatorTest {
  private static final int BYTES = 4096;

  private final List<SanitizerReport> reports = new CopyOnWriteArrayList<>();

  private static SimulatedDriver simulator(String settings) {
    return SimulatedDriver.open(SimulatedOptions.parse(settings));
  }

  /** Fills on one stream, copies on another, waits and checks; ordered by an event or not. */
  private static void pipeline(CudaDriver driver, boolean ordered) {
    long producer = driver.streams().streamCreateWithPriority(0, 1, 0);
    long consumer = driver.streams().streamCreateWithPriority(0, 1, 0);
    long event = driver.events().eventCreate(0, 2);
    long device = driver.memory().memAlloc(0, BYTES);
    MemorySegment pinned = driver.memory().memHostAlloc(0, BYTES, 1);
    driver.transfers().memsetD8Async(0, device, (byte) 7, BYTES, producer);
    driver.events().eventRecord(0, event, producer);
    if (ordered) {
      driver.streams().streamWaitEvent(0, consumer, event);
    }
    driver.transfers().memcpyDtoHAsync(0, pinned, device, consumer);
    driver.streams().streamSynchronize(0, consumer);
    if (ordered) {
      assertThat(pinned.get(ValueLayout.JAVA_BYTE, BYTES - 1)).isEqualTo((byte) 7);
    }
    driver.devices().ctxSynchronize(0);
    driver.memory().memFreeHost(0, pinned.address());
    driver.memory().memFree(0, device);
    driver.events().eventDestroy(0, event);
    driver.streams().streamDestroy(0, consumer);
    driver.streams().streamDestroy(0, producer);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 3, 4, 5, 6, 7})
  void orderedPipeline_isSilent_andTheSameWithoutOrderIsARace_underEverySeed(int seed) {
    try (CudaDriver driver = SanitizerDriver.reporting(simulator("seed=" + seed), reports::add)) {
      pipeline(driver, true);
      assertThat(reports).isEmpty();

      pipeline(driver, false);
      assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.RACE);
    }
    assertThat(reports).as("no leak").hasSize(1);
  }

  @Test
  void virtualThreads_eachWithItsOwnStream_areSilent() throws Exception {
    try (CudaDriver driver = SanitizerDriver.reporting(simulator("devices=2"), reports::add);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<?>> runs = new ArrayList<>();
      for (int i = 0; i < 300; i++) {
        runs.add(threads.submit(() -> pipeline(driver, true)));
      }
      for (Future<?> run : runs) {
        run.get();
      }
    }
    assertThat(reports).isEmpty();
  }
}
