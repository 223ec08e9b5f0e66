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
import io.cuvette.driver.CudaException;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.ArrayList;
import java.util.List;
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
}
