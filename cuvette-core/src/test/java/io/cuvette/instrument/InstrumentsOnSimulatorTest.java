package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.PoolProperties;
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
  private final List<SimulatedDriver> simulators = new ArrayList<>();

  private SimulatedDriver simulator(String settings) {
    simulators.add(SimulatedDriver.open(SimulatedOptions.parse(settings)));
    return simulators.getLast();
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

  /** A use case that gives everything back whatever fails. */
  private static void carefulPipeline(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    try {
      long device = driver.memory().memAlloc(0, BYTES);
      try {
        driver.transfers().memsetD32Async(0, device, 1, BYTES / Integer.BYTES, stream);
        driver.streams().streamSynchronize(0, stream);
      } finally {
        driver.memory().memFree(0, device);
      }
    } finally {
      driver.streams().streamDestroy(0, stream);
    }
  }

  @Test
  void sweepOfACarefulUseCase_isClean_andTheSimulatorIsEmpty() throws Exception {
    SweepReport report =
        FaultSweep.over(() -> simulator(""))
            .checking(_ -> {
              SimulatedDriver simulator = simulators.getLast();
              boolean empty = simulator.liveAllocations() + simulator.liveStreams() == 0;
              return empty ? List.of() : List.of(simulator.report());
            })
            .run(InstrumentsOnSimulatorTest::carefulPipeline)
            .orThrow();

    assertThat(report.calls()).isEqualTo(6);
    assertThat(report.faults()).isGreaterThan(2 * 6 + 3);
  }

  private static void carefulPoolUser(CudaDriver driver) {
    long pool = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 0));
    try {
      long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
      try {
        long device = driver.ordered().memAllocFromPoolAsync(0, BYTES, pool, stream);
        try {
          driver.transfers().memsetD32Async(0, device, 1, BYTES / Integer.BYTES, stream);
        } finally {
          driver.ordered().memFreeAsync(0, device, stream);
        }
      } finally {
        driver.streams().streamDestroy(0, stream);
      }
    } finally {
      driver.pools().memPoolDestroy(pool);
    }
  }

  @Test
  void sweepOfACarefulPoolUser_isClean_andTheSimulatorIsEmpty() throws Exception {
    SweepReport report =
        FaultSweep.over(() -> simulator(""))
            .checking(_ ->
                List.of(simulators.getLast().report()).stream()
                    .filter(text -> !text.isEmpty())
                    .toList())
            .run(InstrumentsOnSimulatorTest::carefulPoolUser)
            .orThrow();

    assertThat(report.calls()).isEqualTo(7);
    assertThat(report.faults()).isGreaterThan(2 * 7 + 4);
  }

  @Test
  void sweepOfACarelessUseCase_namesWhatIsLeft() throws Exception {
    SweepReport report = FaultSweep.over(() -> simulator("")).run(driver -> pipeline(driver, true));

    assertThat(report.isClean()).isFalse();
    assertThat(report.findings())
        .extracting(SweepFinding::problem)
        .containsOnly(SweepFinding.Problem.LEFT_BEHIND);
    assertThat(report.toString()).contains("is never freed; made by memAlloc(");
  }
}
