package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PoolOptions;
import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.NvtxCalls;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What a tool is told of the blocks that pools lend. */
class NvtxMemoryDriverTest {
  private static final long CHUNK = 512;
  private final List<String> told = new CopyOnWriteArrayList<>();

  /** What the tool answers for a heap. */
  private long heap = 7;

  private final NvtxCalls tool =
      (NvtxCalls)
          Proxy.newProxyInstance(
              NvtxCalls.class.getClassLoader(),
              new Class<?>[] {NvtxCalls.class},
              (_, method, arguments) -> {
                told.add(method.getName() + Arrays.toString(arguments));
                return method.getReturnType() == long.class ? (Object) heap : null;
              });

  private Cuda open(UnaryOperator<CudaDriver> below) {
    return Cuda.open(
        CudaOptions.simulated()
            .withDecorator(driver -> new NvtxMemoryDriver(below.apply(driver), tool)));
  }

  @Test
  void blocks_areRegionsOfTheirAllocation_untilTheyAreClosed() {
    long address;
    try (Cuda cuda = open(driver -> driver)) {
      Buffer buffer = cuda.allocate(100);
      address = buffer.address();
      buffer.close();
      cuda.allocate(200).close();
      cuda.defaultMemoryPool().freeAllBlocks();
    }
    assertThat(told)
        .containsExactly(
            "memHeapRegister[%d, %d, pool of Cuvette]".formatted(address, CHUNK),
            "memRegionRegister[7, %d, 100]".formatted(address),
            "memRegionUnregister[%d]".formatted(address),
            "memRegionRegister[7, %d, 200]".formatted(address),
            "memRegionUnregister[%d]".formatted(address),
            "memHeapUnregister[7]");
  }

  @Test
  void memoryWithoutAPool_isNoHeap() {
    try (Cuda cuda = open(driver -> driver)) {
      MemoryResource.direct().allocate(4096, cuda.device(0).nullStream()).close();
      cuda.allocatePinned(4096).close();
      cuda.allocateManaged(4096).close();
      MemoryResource.async().allocate(4096, cuda.device(0).nullStream()).close();
    }
    assertThat(told).isEmpty();
  }

  @Test
  void poolOverAPool_isSeenAsWhatThatOneLentIt() {
    try (Cuda cuda = open(driver -> driver);
        MemoryPool pool =
            new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(cuda.defaultMemoryPool()))) {
      pool.allocate(100).close();
      assertThat(told).hasSize(2);
    }
  }

  @Test
  void heapsThatAreLeft_endWithTheDriver() {
    try (Cuda cuda = open(driver -> driver)) {
      cuda.allocate(100);
    }
    assertThat(told.getLast()).isEqualTo("memHeapUnregister[7]");
  }

  @Test
  void allocationThatTheDriverDoesNotFree_canBeLentAgain() {
    SimulatedDriver simulator = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    try (CudaDriver driver = new NvtxMemoryDriver(simulator, tool)) {
      long address = driver.memory().memAlloc(0, CHUNK);
      assertThatThrownBy(() -> driver.memory().memFree(0, address + 1))
          .isInstanceOf(CudaException.class);
      driver.memory().memFree(0, address);
      assertThatThrownBy(() -> driver.memory().memFree(0, address))
          .isInstanceOf(CudaException.class);
    }
    assertThat(told).isEmpty();
  }

  private static void lend(CudaDriver driver, long address) {
    BlockListener listener = Objects.requireNonNull(driver.blockListener());
    BlockListener.Block block = new BlockListener.Block(1, address, 100);
    listener.blockAllocated(block, 0, 0);
    listener.blockFreed(block);
  }

  /** A driver may fail to free what it freed before, as an error of earlier work comes late. */
  @Test
  void heapThatTheDriverDidNotFree_isOneAgain() {
    CudaDriver refusing =
        new ForwardingDriver(SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
          @Override
          public MemoryCalls memory() {
            return new ForwardingMemory(super.memory()) {
              @Override
              public void memFree(int device, long address) {
                throw new CudaException(CudaStatus.UNKNOWN, "cuMemFree", "for a test");
              }
            };
          }
        };
    try (CudaDriver driver = new NvtxMemoryDriver(refusing, tool)) {
      long address = driver.memory().memAlloc(0, CHUNK);
      lend(driver, address);
      assertThatThrownBy(() -> driver.memory().memFree(0, address))
          .isInstanceOf(CudaException.class);
      assertThat(told.getLast()).isEqualTo("memHeapUnregister[7]");
      told.clear();
      lend(driver, address);
      assertThat(told).hasSize(3).first().asString().startsWith("memHeapRegister");
    }
  }

  @Test
  void blockBehindAnAllocation_isNoPartOfIt() {
    SimulatedDriver simulator = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    try (CudaDriver driver = new NvtxMemoryDriver(simulator, tool)) {
      long address = driver.memory().memAlloc(0, CHUNK);
      lend(driver, address + CHUNK);
      assertThat(told).isEmpty();
      lend(driver, address + CHUNK - 100);
      assertThat(told).hasSize(3);
    }
  }

  @Test
  void toolThatMakesNoHeap_isNotToldOfItsParts() {
    heap = 0;
    try (Cuda cuda = open(driver -> driver)) {
      cuda.allocate(100).close();
    }
    assertThat(told).hasSize(1).first().asString().startsWith("memHeapRegister");
  }

  /** A sanitizer below would miss what is not passed on to it. */
  @ParameterizedTest
  @MethodSource("reports")
  void listenerOfTheDriverBelow_isToldToo(Consumer<BlockListener> report) {
    List<String> below = new ArrayList<>();
    BlockListener listener =
        (BlockListener)
            Proxy.newProxyInstance(
                BlockListener.class.getClassLoader(),
                new Class<?>[] {BlockListener.class},
                (_, method, arguments) -> {
                  below.add(method.getName() + Arrays.toString(arguments));
                  return null;
                });
    report.accept(listener);
    assertThat(below).hasSize(1);
    CudaDriver target =
        new ForwardingDriver(SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
          @Override
          public BlockListener blockListener() {
            return listener;
          }
        };
    try (CudaDriver driver = new NvtxMemoryDriver(target, tool)) {
      report.accept(Objects.requireNonNull(driver.blockListener()));
    }
    assertThat(below).hasSize(2);
    assertThat(below.get(1)).isEqualTo(below.get(0));
  }

  static List<Consumer<BlockListener>> reports() {
    BlockListener.Block block = new BlockListener.Block(2, 512, 100);
    return List.of(
        listener -> listener.blockAllocated(block, 1, 7),
        listener -> listener.blockAllocated(block),
        listener -> listener.blockFreed(block),
        listener -> listener.usedElsewhere(512, 100, 1, 7),
        listener -> listener.hostAccess(512, 100, true),
        listener -> listener.hostCopy(512, 100, 4096));
  }

  @Test
  void withoutATool_nothingIsDecorated() {
    try (SimulatedDriver simulator = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      assertThat(NvtxMemoryDriver.over(simulator)).isSameAs(simulator);
    }
  }

  @Test
  void close_closesTheDriverBelow_behindItsHeaps() {
    TinyDriver tiny = new TinyDriver();
    new NvtxMemoryDriver(tiny.driver, tool).close();
    assertThat(tiny.closed).isTrue();
  }

  @Test
  void heapsOfMemoryThatWasNotFreed_endWithTheDriver_once() {
    TinyDriver tiny = new TinyDriver();
    NvtxMemoryDriver driver = new NvtxMemoryDriver(tiny.driver, tool);
    lend(driver, driver.memory().memAlloc(0, CHUNK));
    lend(driver, driver.memory().memAlloc(0, CHUNK));
    long unused = driver.memory().memAlloc(0, CHUNK);
    assertThat(unused).isNotZero();
    told.clear();
    driver.close();
    assertThat(told).containsExactly("memHeapUnregister[7]", "memHeapUnregister[7]");
    driver.close();
    assertThat(told).hasSize(2);
  }

  /** Each call leaves the heap to other threads. */
  @Test
  void heap_isUsedByOneThreadAfterTheOther() throws Exception {
    TinyDriver tiny = new TinyDriver();
    try (NvtxMemoryDriver driver = new NvtxMemoryDriver(tiny.driver, tool)) {
      long address = driver.memory().memAlloc(0, CHUNK);
      BlockListener.Block block = new BlockListener.Block(1, address, 100);
      BlockListener listener = driver.blockListener();
      List<Runnable> calls =
          List.of(
              () -> listener.blockAllocated(block, 0, 0),
              () -> listener.blockFreed(block),
              () -> listener.blockAllocated(block, 0, 0),
              () -> driver.memory().memFree(0, address));
      for (Runnable call : calls) {
        CompletableFuture.runAsync(call, task -> Thread.ofPlatform().daemon().start(task))
            .get(40, TimeUnit.SECONDS);
      }
      assertThat(told).hasSize(5).last().isEqualTo("memHeapUnregister[7]");
    }
  }

  @Test
  void useElsewhere_isNothing_ifNobodyBelowListens() {
    TinyDriver tiny = new TinyDriver();
    try (NvtxMemoryDriver driver = new NvtxMemoryDriver(tiny.driver, tool)) {
      driver.blockListener().usedElsewhere(0x1000, 64, 0, 0);
      driver.blockListener().hostAccess(0x1000, 64, true);
      driver.blockListener().hostCopy(0x1000, 64, 0x2000);
    }
    assertThat(told).isEmpty();
  }
}
