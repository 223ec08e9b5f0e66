package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.DeviceMemoryResource;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.GrowableBuffer;
import io.cuvette.MemoryResource;
import io.cuvette.Scope;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Sweeps short pipelines over the simulated device. */
class SweptPipelinesTest {
  private static final int BYTES = 4096;

  private final List<SimulatedDriver> simulators = new ArrayList<>();
  private final FaultSweep sweep = FaultSweep.over(this::newDriver);

  private CudaDriver newDriver() {
    simulators.add(SimulatedDriver.open(SimulatedOptions.DEFAULTS));
    return simulators.getLast();
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
        sweep
            .checking(_ -> {
              SimulatedDriver simulator = simulators.getLast();
              boolean empty = simulator.liveAllocations() + simulator.liveStreams() == 0;
              return empty ? List.of() : List.of(simulator.report());
            })
            .run(SweptPipelinesTest::carefulPipeline)
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
        sweep
            .checking(_ ->
                List.of(simulators.getLast().report()).stream()
                    .filter(text -> !text.isEmpty())
                    .toList())
            .run(SweptPipelinesTest::carefulPoolUser)
            .orThrow();

    assertThat(report.calls()).isEqualTo(7);
    assertThat(report.faults()).isGreaterThan(2 * 7 + 4);
  }

  private static void carelessPipeline(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    long device = driver.memory().memAlloc(0, BYTES);
    driver.transfers().memsetD8Async(0, device, (byte) 7, BYTES, stream);
    driver.streams().streamSynchronize(0, stream);
    driver.memory().memFree(0, device);
    driver.streams().streamDestroy(0, stream);
  }

  @Test
  void sweepOfACarelessUseCase_namesWhatIsLeft() throws Exception {
    SweepReport report = sweep.run(SweptPipelinesTest::carelessPipeline);

    assertThat(report.isClean()).isFalse();
    assertThat(report.findings())
        .extracting(SweepFinding::problem)
        .containsOnly(SweepFinding.Problem.LEFT_BEHIND);
    assertThat(report.toString()).contains("is never freed; made by memAlloc(");
  }

  private static final Map<String, FaultSweeps.CudaUse> MEMORY =
      Map.of(
          "growable",
              cuda -> {
                try (GrowableBuffer buffer = cuda.device(0).growable(4L << 20)) {
                  buffer.grow(2L << 20);
                }
              },
          "elastic",
              cuda -> {
                try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
                  pool.allocate(BYTES).close();
                }
              },
          "ordered",
              cuda -> {
                try (Scope _ = cuda.useAllocator(MemoryResource.async())) {
                  cuda.allocate(BYTES).close();
                }
              },
          "of a pool",
              cuda -> {
                try (DeviceMemoryResource pool = new DeviceMemoryResource(cuda.device(0))) {
                  pool.allocate(BYTES).close();
                }
              });

  static Set<String> memory() {
    return MEMORY.keySet();
  }

  /** None of them is said to be swallowed: the library finds memory at the second attempt. */
  @ParameterizedTest
  @MethodSource("memory")
  void memoryOfEveryKind_isRecoveredOnTheSimulator(String kind) throws Exception {
    FaultSweeps.onSimulator("memory=64MiB")
        .failingAsUsual()
        .run(FaultSweeps.usingTidily(Objects.requireNonNull(MEMORY.get(kind))))
        .orThrow();
  }
}
