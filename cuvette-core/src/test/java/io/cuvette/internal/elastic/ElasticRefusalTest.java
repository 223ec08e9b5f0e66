package io.cuvette.internal.elastic;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.EngineMemory;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What an elastic pool leaves apart to threads that meet, until the driver has no more. */
@Timeout(60)
class ElasticRefusalTest {
  private static final long MIB = 1L << 20;
  private static final int MOST = 40;

  private final Cuda cuda =
      Cuda.open(
          CudaOptions.DEFAULTS.withDriver(
              SimulatedDriver.open(SimulatedOptions.DEFAULTS.withMemoryBytes(256 * MIB))));
  private final CudaStream stream = cuda.currentStream();
  private final ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
  private final List<Buffer> buffers = new ArrayList<>();

  @AfterEach
  void close() {
    cuda.close();
  }

  private ElasticCache cache() {
    try (Buffer one = pool.allocate(512, stream)) {
      return (ElasticCache) ((CachedBlock) EngineMemory.of(one).block()).arena;
    }
  }

  @Test
  void refusalOfTheDriver_endsWhatIsLeftApart() {
    ElasticCache cache = cache();
    ElasticHeap heap = ((ElasticDevicePool) cache.of).heap();
    cache.front = cache.newFront(); // as for threads that have met
    for (int i = 0; i < MOST && !heap.leavesApart(512); i++) {
      pool.allocate(512, stream).close();
      buffers.add(pool.allocate(5 * MIB, stream)); // brings together what the front has
    }
    assertThat(heap.leavesApart(512)).isTrue();
    assertThatThrownBy(() -> pool.allocate(255 * MIB, stream))
        .isInstanceOf(OutOfDeviceMemoryException.class)
        .hasCauseInstanceOf(CudaException.class);
    assertThat(heap.leavesApart(512)).isFalse();
  }

  /** Who waits for memory hears so of others that take what comes back, and waits on. */
  @Test
  void blockThatIsTakenAgain_isCounted() {
    ElasticDevicePool devicePool = (ElasticDevicePool) cache().of;
    long before = devicePool.takes();
    pool.allocate(512, stream).close();
    assertThat(devicePool.takes()).isEqualTo(before + 1);
  }

  /** Each is a call of the driver, and whoever comes next asks others. */
  @Test
  void missAsksEightStreamsAtMost_inTurn() {
    Set<Object> asked = ConcurrentHashMap.newKeySet();
    CudaOptions busy =
        CudaOptions.simulated()
            .withDecorator(driver ->
                DriverProxy.of((method, arguments) -> {
                  boolean asks = method.getName().equals("streamQuery");
                  boolean _ = asks && asked.add(arguments[1]);
                  return asks ? (Object) false : DriverProxy.forward(driver, method, arguments);
                }));
    try (Cuda many = Cuda.open(busy);
        ElasticMemoryPool asking = new ElasticMemoryPool(many)) {
      List<CudaStream> streams = new ArrayList<>(); // reachable
      for (int i = 0; i < 20; i++) {
        streams.add(many.device(0).createStream(StreamOptions.NON_BLOCKING));
        Buffer freed = asking.allocate(MIB, streams.getLast());
        buffers.add(asking.allocate(MIB, streams.getLast())); // lies between
        freed.fill((byte) 1, streams.getLast());
        freed.close();
      }
      Set<Object> all = new HashSet<>();
      for (int miss = 1; miss <= 2; miss++) {
        asked.clear();
        buffers.add(asking.allocate(8 * MIB, many.device(0).nullStream()));
        assertThat(asked).hasSize(8);
        all.addAll(asked);
      }
      assertThat(all).as("others the second time").hasSizeGreaterThan(8);
    }
  }
}
