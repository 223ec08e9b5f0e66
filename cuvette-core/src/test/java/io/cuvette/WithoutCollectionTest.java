package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.internal.lifetime.Collector;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Memory that can be had without the collector is had without it: a collection is the last. */
@Timeout(60)
class WithoutCollectionTest {
  private static final long MIB = 1 << 20;

  private final Cuda cuda =
      Cuda.open(
          CudaOptions.DEFAULTS.withDriver(
              SimulatedDriver.open(SimulatedOptions.DEFAULTS.withMemoryBytes(64 * MIB))));
  private long before;

  @BeforeEach
  void count() {
    before = Collector.PROCESS.begun();
  }

  @AfterEach
  void compare() {
    cuda.close();
    assertThat(Collector.PROCESS.begun()).as("collections").isEqualTo(before);
  }

  @Test
  void cachesOfOtherPools_areReleased() {
    try (MemoryPool idle = new MemoryPool(cuda);
        MemoryPool pool = new MemoryPool(cuda)) {
      idle.allocate(40 * MIB).close();
      pool.allocate(40 * MIB).close();
    }
  }

  /** The limit has room to the byte: it is upstream that is short. */
  @Test
  void cachesOfOtherPinnedPools_areReleased_ifTheLimitHasJustTheRoom() {
    List<PinnedBuffer> given = new ArrayList<>();
    PinnedPoolOptions options =
        PinnedPoolOptions.DEFAULTS.withUpstream(bytes -> {
          if (given.stream().anyMatch(chunk -> !chunk.isClosed())) {
            throw new CudaException(CudaStatus.OUT_OF_MEMORY, "one()", "one at a time");
          }
          given.add(cuda.directPinned().allocate(bytes));
          return given.getLast();
        });
    options = options.withLimit(MemoryLimit.ofBytes(512));
    try (PinnedMemoryPool idle = new PinnedMemoryPool(cuda, options);
        PinnedMemoryPool pool = new PinnedMemoryPool(cuda, options)) {
      idle.allocate(512).close();
      pool.allocate(512).close();
    }
  }

  /** The listener gives back nothing of the pool's: only the driver has more than before. */
  @Test
  void memoryThatOthersFreed_isAskedFor() {
    long others = cuda.driver().memory().memAlloc(0, 40 * MIB);
    try (MemoryPool pool = new MemoryPool(cuda);
        var _ =
            pool.addPressureListener((_, _) -> {
              cuda.driver().memory().memFree(0, others);
              return 0;
            })) {
      pool.allocate(40 * MIB).close();
    }
  }

  /** It comes back to its stream, whose own work is then to be waited for. */
  @Test
  void memoryThatTwoStreamsHold_isWaitedFor() {
    CudaOptions waiting =
        CudaOptions.simulated()
            .withDecorator(driver ->
                DriverProxy.of(
                    (method, arguments) -> // a wait alone tells that work is done
                    method.getName().equals("streamQuery")
                            ? (Object) false
                            : DriverProxy.forward(driver, method, arguments)));
    try (Cuda busy = Cuda.open(waiting);
        ElasticMemoryPool elastic = new ElasticMemoryPool(busy);
        MemoryPool caching = new MemoryPool(busy)) {
      elastic.setLimit(MemoryLimit.ofBytes(8 * MIB));
      caching.setLimit(MemoryLimit.ofBytes(8 * MIB));
      List<CudaStream> streams = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        streams.add(busy.device(0).createStream(StreamOptions.NON_BLOCKING));
      }
      for (MemoryResource pool : List.of(elastic, caching)) {
        Buffer held = pool.allocate(8 * MIB, streams.get(0));
        held.fill((byte) 1, streams.get(1));
        held.fill((byte) 2, streams.get(0));
        held.close();
        pool.allocate(8 * MIB, streams.get(2)).close();
      }
    }
  }

  /** Whoever is short next tries that free again, before anything that takes longer. */
  @Test
  void memoryWhoseFreeFailed_isFreedBeforeTheDriverIsAskedAgain() {
    AtomicInteger failures = new AtomicInteger(1);
    CudaOptions failing =
        CudaOptions.simulated()
            .withDevice("sim:memory=64MiB")
            .withDecorator(driver ->
                DriverProxy.of((method, arguments) -> {
                  if (method.getName().equals("memFree") && failures.getAndDecrement() > 0) {
                    throw new CudaException(CudaStatus.UNKNOWN, "cuMemFree", "not now");
                  }
                  return DriverProxy.forward(driver, method, arguments);
                }));
    try (Cuda scarce = Cuda.open(failing);
        CudaStream stream = scarce.device(0).createStream();
        AsyncMemoryPool pool = new AsyncMemoryPool(scarce)) {
      for (MemoryResource resource : List.of(pool, MemoryResource.async())) {
        failures.set(1);
        Buffer left = MemoryResource.direct().allocate(40 * MIB, stream);
        assertThatThrownBy(left::close).isInstanceOf(CudaException.class);
        resource.allocate(40 * MIB, stream).close();
        stream.synchronize();
        pool.freeAllBlocks();
      }
    }
  }
}
