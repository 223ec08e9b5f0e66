package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DeviceCalls;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.StreamCalls;
import io.cuvette.instrument.ForwardingDevices;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingMemory;
import io.cuvette.instrument.ForwardingStreams;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.devicepool.DevicePool;
import io.cuvette.internal.devicepool.DeviceShortage;
import io.cuvette.internal.devicepool.MemoryPoolCore;
import io.cuvette.internal.lifetime.Collector;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.Request;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What a caching pool knows, waits for and says where memory is short. */
class DeviceShortageTest {
  private static final long KIB = 1L << 10;

  /** Whether streams say that they are not done; what waits for an event finds them done. */
  private boolean busy;

  /** How often the driver was asked for its free memory. */
  private int infos;

  /** What is done as the driver gets memory back next. */
  private Runnable atFree = () -> {};

  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(Watched::new));
  private final CudaStream one = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final CudaStream two = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final CudaStream three = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final MemoryPool pool = new MemoryPool(cuda);

  @AfterEach
  void close() {
    cuda.close();
  }

  private static CachedBlock block(Buffer buffer) {
    return (CachedBlock) EngineMemory.of(buffer).block();
  }

  private static DevicePool poolOf(Buffer buffer) {
    return (DevicePool) block(buffer).arena.of;
  }

  /** It comes back in order of its own stream, whose work is waited for then. */
  @Test
  void blockThatWaitsForTwoStreams_isHad_onceBothWereWaitedFor() {
    pool.allocate(64 * KIB, one).close();
    Buffer used = pool.allocate(32 * KIB, one);
    Buffer free = pool.allocate(32 * KIB, one);
    pool.setLimit(MemoryLimit.ofBytes(64 * KIB));
    free.fill((byte) 1, two);
    busy = true;
    free.close();
    assertThat(pool.stats().pendingBytes()).isEqualTo(32 * KIB);
    long collections = Collector.PROCESS.begun();
    try (used;
        Buffer had = pool.allocate(32 * KIB, three)) {
      assertThat(had.address()).isEqualTo(free.address());
      assertThat(Collector.PROCESS.begun()).isEqualTo(collections);
    }
  }

  @Test
  void memoryOfGraphs_isNotThatOfOtherStreams_inWhatIsSaid() {
    pool.allocate(64 * KIB, two).close();
    Buffer used = pool.allocate(32 * KIB, two);
    pool.setLimit(MemoryLimit.ofBytes(256 * KIB));
    try (used;
        CudaGraph graph = one.capture(() -> pool.allocate(64 * KIB, one).close())) {
      var e =
          catchThrowableOfType(
              OutOfDeviceMemoryException.class, () -> pool.allocate(192 * KIB, three));
      assertThat(graph.isClosed()).isFalse();
      assertThat(e.details().graphBytes()).isEqualTo(64 * KIB);
      assertThat(e.details().otherStreamsFreeBytes()).isEqualTo(32 * KIB);
      assertThat(e).hasMessageContaining("allocate(bytes=196608, stream=" + three + ")");
    }
  }

  @Test
  void bufferThatTheCollectorFound_isForgotten_untilItIsTakenBack() {
    Buffer forgotten = pool.allocate(64 * KIB, one);
    CachedBlock block = block(forgotten);
    Request request = new Request(block.arena, KIB, KIB, one.core(), new Refusals());
    DeviceShortage shortage = new DeviceShortage(poolOf(forgotten), request);
    assertThat(shortage.hasForgotten()).isFalse();
    Reference.reachabilityFence(forgotten);
    block.clear();
    assertThat(shortage.hasForgotten()).isTrue();
    assertThat(block.reclaim()).isTrue();
    assertThat(shortage.hasForgotten()).isFalse();
  }

  /** Whether upstream is worth asking again is no question for who has memory. */
  @Test
  void driver_isAskedForFreeMemory_onceBeforeASearch_andAfterOneThatFindsNothing() {
    Buffer free = pool.allocate(32 * KIB, one);
    Refusals refusals = new Refusals();
    refusals.add(new CudaException(CudaStatus.OUT_OF_MEMORY, "upstream()", "the test's"));
    Request request = new Request(block(free).arena, 32 * KIB, 32 * KIB, one.core(), refusals);
    free.close();
    DeviceShortage shortage = new DeviceShortage(poolOf(free), request);
    int before = infos;
    assertThat(shortage.search()).isNotNull();
    assertThat(infos).isEqualTo(before + 1);
    assertThat(shortage.search()).isNull();
    assertThat(infos).isEqualTo(before + 3);
  }

  @Test
  void whatOthersTake_isNoticed_asSoonAsUpstreamIsAskedForIt() {
    Buffer first = pool.allocate(64 * KIB, one);
    DevicePool devicePool = poolOf(first);
    first.close();
    long before = devicePool.takes();
    pool.allocate(64 * KIB, one).close();
    long taken = devicePool.takes();
    assertThat(taken).as("a cached one").isGreaterThan(before);
    List<Long> seen = new ArrayList<>();
    pool.addHook(
        new MemoryHook() {
          @Override
          public void allocPreprocess(Growth growth) {
            seen.add(devicePool.takes());
          }
        });
    pool.allocate(128 * KIB, one).close();
    assertThat(seen).singleElement().isNotEqualTo(taken);
  }

  @Test
  void whatOthersTakeOfAnElasticPool_isNoticed_mappedOrNot() {
    try (ElasticMemoryPool elastic = new ElasticMemoryPool(cuda)) {
      DevicePool devicePool;
      try (Buffer first = elastic.allocate(4096 * KIB, one)) {
        devicePool = poolOf(first);
        long before = devicePool.takes();
        elastic.allocate(8192 * KIB, one).close();
        assertThat(devicePool.takes()).as("mapped for it").isGreaterThan(before);
      }
      long before = devicePool.takes();
      elastic.allocate(4096 * KIB, one).close();
      assertThat(devicePool.takes()).as("a cached one").isGreaterThan(before);
    }
  }

  @Test
  void memoryOnItsWayToTheDriver_isFreeAndPending_untilItIsThere() {
    Buffer cached = pool.allocate(64 * KIB, one);
    DevicePool devicePool = poolOf(cached);
    cached.close();
    List<PoolStats> meanwhile = new ArrayList<>();
    atFree =
        () -> {
          meanwhile.add(pool.stats());
          assertThat(devicePool.mayHave(1L << 40)).as("some is on its way").isTrue();
        };
    assertThat(devicePool.mayHave(1L << 40)).isFalse();
    assertThat(pool.freeAllBlocks()).isEqualTo(64 * KIB);
    assertThat(devicePool.mayHave(1L << 40)).isFalse();
    assertThat(meanwhile)
        .singleElement()
        .satisfies(now -> {
          assertThat(now.heldBytes()).isEqualTo(64 * KIB).isEqualTo(now.freeBytes());
          assertThat(now.pendingBytes()).isEqualTo(64 * KIB);
        });
    assertThat(pool.stats().heldBytes()).isZero();
  }

  private DeviceShortage shortage(Buffer of, long bytes) {
    Request request = new Request(block(of).arena, bytes, bytes, one.core(), new Refusals());
    return new DeviceShortage(poolOf(of), request);
  }

  /** Others' only if the driver is short, and not if it is the limit. */
  @Test
  void whatIsCached_isReleasedAndCounted() {
    Buffer used = pool.allocate(32 * KIB, one);
    try (MemoryPool idle = new MemoryPool(cuda)) {
      for (boolean isLimited : new boolean[] {true, false}) {
        pool.setLimit(isLimited ? MemoryLimit.ofBytes(128 * KIB) : MemoryLimit.none());
        pool.allocate(64 * KIB, one).close();
        idle.allocate(16 * KIB, one).close();
        assertThat(shortage(used, 256 * KIB).releaseCached())
            .isEqualTo((isLimited ? 64 : 80) * KIB);
        assertThat(idle.totalBytes()).isEqualTo(isLimited ? 16 * KIB : 0);
        assertThat(pool.totalBytes()).isEqualTo(32 * KIB);
      }
    }
    used.close();
  }

  @Test
  void whatOthersTake_isWhatTheShortageCounts() {
    Buffer used = pool.allocate(32 * KIB, one);
    DeviceShortage shortage = shortage(used, KIB);
    for (int i = 0; i < 3; i++) {
      assertThat(shortage.takes()).isEqualTo(poolOf(used).takes()).isPositive();
      pool.allocate(64 * KIB, one).close();
    }
    used.close();
  }

  @Test
  void whoIsShortOfMemoryOfTheHost_isReleasedNone() {
    Buffer used = pool.allocate(32 * KIB, one);
    MemoryPoolCore core = poolOf(used).pool;
    used.close();
    assertThat(core.release(null)).isZero();
    assertThat(pool.totalBytes()).isEqualTo(32 * KIB);
    assertThat(core.release(cuda.device(0).core())).isEqualTo(32 * KIB);
  }

  /** Only closed pools are waited for, and only if they may have memory of the device. */
  @Test
  void openPool_isNotWaitedFor_andNoneForMemoryOfTheHost() {
    CountDownLatch over = new CountDownLatch(1);
    var _ = two.addCallback(() -> Latches.await(over));
    Buffer used = pool.allocate(32 * KIB, one);
    MemoryPoolCore core = poolOf(used).pool;
    used.fill((byte) 1, two);
    used.close();
    core.awaitIfClosed(cuda.device(0).core());
    cuda.engine().awaitFrees(null);
    assertThat(pool.stats().pendingBytes()).isEqualTo(32 * KIB);
    pool.close();
    cuda.engine().awaitFrees(null);
    assertThat(pool.totalBytes()).isEqualTo(32 * KIB);
    over.countDown();
    core.awaitIfClosed(cuda.device(0).core());
    assertThat(pool.totalBytes()).isZero();
  }

  private final class Watched extends ForwardingDriver {
    Watched(CudaDriver driver) {
      super(driver);
    }

    private final StreamCalls streamCalls =
        new ForwardingStreams(delegate().streams()) {
          @Override
          public boolean streamQuery(int device, long stream) {
            return !busy && super.streamQuery(device, stream);
          }
        };

    private final MemoryCalls memoryCalls =
        new ForwardingMemory(delegate().memory()) {
          @Override
          public void memFree(int device, long address) {
            Runnable now = atFree;
            atFree = () -> {};
            now.run();
            super.memFree(device, address);
          }
        };

    private final DeviceCalls deviceCalls =
        new ForwardingDevices(delegate().devices()) {
          @Override
          public MemoryInfo memGetInfo(int device) {
            infos++;
            return super.memGetInfo(device);
          }
        };

    @Override
    public DeviceCalls devices() {
      return deviceCalls;
    }

    @Override
    public StreamCalls streams() {
      return streamCalls;
    }

    @Override
    public MemoryCalls memory() {
      return memoryCalls;
    }
  }
}
