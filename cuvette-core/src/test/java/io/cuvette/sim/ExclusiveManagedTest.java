package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.PoolProperties;
import io.cuvette.driver.TransferCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Managed memory that the host may not touch while the device works on it. */
class ExclusiveManagedTest {
  private static final int SIZE = 10_000;

  private static SimulatedDriver open(String settings) {
    return SimulatedDriver.open(
        SimulatedOptions.parse("memory=64MiB,concurrentManaged=false" + settings));
  }

  private static void assertFails(CudaStatus status, ThrowingCallable call) {
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(call)
        .satisfies(e -> assertThat(e.status()).isEqualTo(status));
  }

  private static byte first(MemorySegment segment) {
    return segment.get(ValueLayout.JAVA_BYTE, 0);
  }

  @ParameterizedTest
  @ValueSource(strings = {"eager", "lazy", "mixed"})
  void hostThatReadsBeforeItWaited_readsNonsense_howeverSoonTheWorkIsDone(String pace) {
    try (SimulatedDriver driver = open(",pace=" + pace)) {
      MemorySegment managed = driver.memory().memAllocManaged(0, SIZE, 1);
      managed.fill((byte) 3);
      long device = driver.memory().memAlloc(0, SIZE);
      driver.transfers().memcpyAsync(0, device, managed.address(), SIZE, 0);
      assertThat(first(managed)).as("only read by the device").isNotEqualTo((byte) 3);
      driver.streams().streamSynchronize(0, 0);
      assertThat(first(managed)).isEqualTo((byte) 3);
      driver.transfers().memsetD8Async(0, managed.address(), (byte) 5, SIZE, 0);
      assertThat(first(managed)).isNotIn((byte) 3, (byte) 5);
      long event = driver.events().eventCreate(0, 2);
      driver.events().eventRecord(0, event, 0);
      driver.events().eventSynchronize(0, event);
      assertThat(first(managed)).isEqualTo((byte) 5);
      managed.fill((byte) 6);
      driver.transfers().memcpyAsync(0, device, managed.address(), SIZE, 0);
      driver.transfers().memcpyAsync(0, managed.address(), device, SIZE, 0);
      driver.devices().ctxSynchronize(0);
      assertThat(first(managed)).isEqualTo((byte) 6);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"eager", "lazy", "mixed"})
  void memoryThatALaunchUses_isHiddenEachTime(String pace) {
    try (SimulatedDriver driver = open(",pace=" + pace)) {
      MemorySegment managed = driver.memory().memAllocManaged(0, SIZE, 1);
      managed.fill((byte) 3);
      long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
      driver.captures().streamBeginCapture(0, stream, 2);
      driver.transfers().memsetD8Async(0, managed.address(), (byte) 5, SIZE, stream);
      long graph = driver.captures().streamEndCapture(0, stream);
      long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
      assertThat(first(managed)).as("only captured").isEqualTo((byte) 3);
      for (int launch = 0; launch < 2; launch++) {
        driver.graphs().graphLaunch(0, executable, stream);
        assertThat(first(managed)).isNotIn((byte) 3, (byte) 5);
        driver.streams().streamSynchronize(0, stream);
        assertThat(first(managed)).isEqualTo((byte) 5);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"eager", "lazy", "mixed"})
  void hostThatWritesBeforeItWaited_breaksTheDevice(String pace) {
    for (int at : new int[] {0, 1, SIZE / 2, SIZE - 2, SIZE - 1}) {
      try (SimulatedDriver driver = open(",pace=" + pace)) {
        MemorySegment managed = driver.memory().memAllocManaged(0, SIZE, 1);
        driver.transfers().memsetD8Async(0, managed.address(), (byte) 5, 10, 0);
        managed.set(ValueLayout.JAVA_BYTE, at, (byte) 1);
        assertFails(CudaStatus.ILLEGAL_ADDRESS, () -> driver.streams().streamSynchronize(0, 0));
        assertFails(CudaStatus.ILLEGAL_ADDRESS, () -> driver.memory().memAlloc(0, 1));
      }
    }
  }

  @Test
  void otherMemory_isTheHostsAllTheTime() {
    try (SimulatedDriver driver = open(",pace=lazy")) {
      MemorySegment managed = driver.memory().memAllocManaged(0, SIZE, 1);
      MemorySegment other = driver.memory().memAllocManaged(0, SIZE, 1);
      MemorySegment pinned = driver.memory().memHostAlloc(0, SIZE, 0);
      driver.transfers().memsetD8Async(0, managed.address(), (byte) 5, SIZE, 0);
      driver.transfers().memsetD8Async(0, pinned.address(), (byte) 5, 10, 0);
      other.fill((byte) 1);
      pinned.set(ValueLayout.JAVA_BYTE, 100, (byte) 2);
      driver.streams().streamSynchronize(0, 0);
      assertThat(first(other)).isEqualTo((byte) 1);
      assertThat(first(managed)).isEqualTo((byte) 5);
      driver.memory().memFree(0, managed.address());
    }
  }

  /** Of several operations the last has to be done, and not only those that were waited for. */
  @Test
  void memoryOfWorkThatIsNotDone_isHidden_whateverElseIsWaitedFor() {
    try (SimulatedDriver driver = open(",pace=lazy")) {
      MemorySegment managed = driver.memory().memAllocManaged(0, SIZE, 1);
      managed.fill((byte) 3);
      long device = driver.memory().memAlloc(0, SIZE);
      long one = driver.streams().streamCreateWithPriority(0, 1, 0);
      long other = driver.streams().streamCreateWithPriority(0, 1, 0);
      driver.transfers().memcpyAsync(0, device, managed.address(), SIZE, one);
      CountDownLatch goOn = SimTestBase.hold(driver, 0, one);
      for (int value = 4; value <= 5; value++) {
        driver.transfers().memsetD8Async(0, managed.address(), (byte) value, SIZE, one);
      }
      for (int i = 0; i < 3; i++) {
        driver.transfers().memsetD8Async(0, device, (byte) 1, SIZE, other);
        driver.streams().streamSynchronize(0, other);
        assertThat(first(managed)).isNotIn((byte) 3, (byte) 4, (byte) 5);
      }
      goOn.countDown();
      driver.streams().streamSynchronize(0, one);
      assertThat(first(managed)).isEqualTo((byte) 5);
    }
  }

  @Test
  void memoryThatIsFreedBehindItsWork_isNoError() {
    try (SimulatedDriver driver = open(",pace=lazy")) {
      MemorySegment managed = driver.memory().memAllocManaged(0, SIZE, 1);
      driver.transfers().memsetD8Async(0, managed.address(), (byte) 5, SIZE, 0);
      driver.memory().memFree(0, managed.address());
      assertThat(driver.report()).isEmpty();
    }
  }

  @Test
  void deviceSaysSo_andFetchesNoPages() {
    try (SimulatedDriver driver = open("")) {
      assertThat(driver.devices().deviceGetAttribute(89, 0)).isZero();
      long managed = driver.memory().memAllocManaged(0, SIZE, 1).address();
      CudaStatus status = CudaStatus.INVALID_DEVICE;
      assertFails(status, () -> driver.memory().memPrefetchAsync(0, managed, SIZE, 1, 0, 0));
      assertFails(status, () -> driver.memory().memAdvise(0, managed, SIZE, 3, 1, 0));
      PoolProperties pool = new PoolProperties(2, 0, 0, 0, 0);
      assertFails(CudaStatus.NOT_SUPPORTED, () -> driver.pools().memPoolCreate(pool));
    }
  }

  /** All that uses managed memory, by the address of some. */
  private static Map<String, LongConsumer> uses(SimulatedDriver driver, MemorySegment managed) {
    long device = driver.memory().memAlloc(0, SIZE);
    long address = managed.address();
    Map<String, LongConsumer> uses = new LinkedHashMap<>();
    TransferCalls transfers = driver.transfers();
    uses.put("copy from", s -> transfers.memcpyAsync(0, device, address, 64, s));
    uses.put("copy to", s -> transfers.memcpyAsync(0, address, device, 64, s));
    uses.put("fill", s -> transfers.memsetD32Async(0, address, 1, 8, s));
    uses.put("peer", s -> transfers.memcpyPeerAsync(0, device, 0, address, 0, 64, s));
    BoxCopy.Side in = new BoxCopy.Side(address, 64, 4);
    BoxCopy.Side on = new BoxCopy.Side(device, 64, 4);
    uses.put("rows to", s -> transfers.memcpy3DAsync(0, new BoxCopy(in, on, 8, 2, 1), s));
    uses.put("rows from", s -> transfers.memcpy3DAsync(0, new BoxCopy(on, in, 8, 2, 1), s));
    long[] here = {address};
    long[] there = {device};
    long[] bytes = {64};
    uses.put("batch to", s -> transfers.memcpyBatchAsync(0, here, there, bytes, s));
    uses.put("batch from", s -> transfers.memcpyBatchAsync(0, there, here, bytes, s));
    uses.put("segment in", s -> transfers.memcpyHtoDAsync(0, device, managed, s));
    uses.put("segment out", s -> transfers.memcpyDtoHAsync(0, managed, device, s));
    long library =
        driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(SimOperations.NOTHING)));
    long kernel = driver.kernels().libraryGetKernel(library, SimOperations.NOTHING.name());
    MemorySegment values = Arena.ofAuto().allocate(8, 8);
    values.set(ValueLayout.JAVA_LONG, 0, address + 8);
    LaunchShape one = new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);
    LaunchParameters pointer = new LaunchParameters(values, List.of(new KernelParameter(0, 8)));
    uses.put("kernel", s -> driver.kernels().launchKernel(0, s, kernel, one, pointer));
    return uses;
  }

  /** CUDA's guide: while any kernel runs, whether it uses the memory or not. */
  @ParameterizedTest
  @ValueSource(strings = {"eager", "lazy", "mixed"})
  void allManagedMemory_isHiddenByAnyKernel_butNotWhatIsTheHostsAlone(String pace) {
    try (SimulatedDriver driver = open(",pace=" + pace);
        SimulatedKernels.Registered _ = SimulatedKernels.register(SimOperations.NOTHING)) {
      MemorySegment used = driver.memory().memAllocManaged(0, SIZE, 1);
      MemorySegment gone = driver.memory().memAllocManaged(0, SIZE, 1);
      LongConsumer kernel = uses(driver, used).get("kernel");
      long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
      driver.captures().streamBeginCapture(0, stream, 2);
      kernel.accept(stream);
      long graph = driver.captures().streamEndCapture(0, stream);
      long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
      driver.memory().memFree(0, gone.address()); // which the node knew of
      MemorySegment other = driver.memory().memAllocManaged(0, SIZE, 1);
      MemorySegment hosts = driver.memory().memAllocManaged(0, SIZE, 2);
      MemorySegment pinned = driver.memory().memHostAlloc(0, SIZE, 0);
      for (MemorySegment each : List.of(used, other, hosts, pinned)) {
        each.fill((byte) 3);
      }
      kernel.accept(stream);
      driver.graphs().graphLaunch(0, executable, stream);
      assertThat(first(used)).isNotEqualTo((byte) 3);
      assertThat(first(other)).isNotEqualTo((byte) 3);
      hosts.fill((byte) 4);
      assertThat(first(pinned)).isEqualTo((byte) 3);
      driver.streams().streamSynchronize(0, stream);
      assertThat(first(used)).isEqualTo((byte) 3);
      assertThat(first(other)).isEqualTo((byte) 3);
      assertThat(first(hosts)).isEqualTo((byte) 4);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"eager", "lazy", "mixed"})
  void memory_isHiddenByAllThatUsesIt_andByNodesThatDo(String pace) {
    try (SimulatedDriver driver = open(",pace=" + pace);
        SimulatedKernels.Registered _ = SimulatedKernels.register(SimOperations.NOTHING)) {
      MemorySegment managed = driver.memory().memAllocManaged(0, SIZE, 1);
      long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
      byte last = 3;
      uses(driver, managed)
          .forEach((name, use) -> {
            managed.set(ValueLayout.JAVA_BYTE, SIZE - 1, last);
            use.accept(stream);
            boolean whole = name.startsWith("segment");
            assertThat(managed.get(ValueLayout.JAVA_BYTE, SIZE - 1)).as(name).isNotEqualTo(last);
            driver.streams().streamSynchronize(0, stream);
            if (!whole) {
              assertThat(managed.get(ValueLayout.JAVA_BYTE, SIZE - 1)).as(name).isEqualTo(last);
              if (!name.startsWith("batch")) {
                assertHiddenByItsNode(driver, managed, name, use, stream);
              }
            }
          });
    }
  }

  private static void assertHiddenByItsNode(
      SimulatedDriver driver, MemorySegment managed, String name, LongConsumer use, long stream) {
    byte last = 3;
    driver.captures().streamBeginCapture(0, stream, 2);
    use.accept(stream);
    long graph = driver.captures().streamEndCapture(0, stream);
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    assertThat(managed.get(ValueLayout.JAVA_BYTE, SIZE - 1)).as(name).isEqualTo(last);
    driver.graphs().graphLaunch(0, executable, stream);
    assertThat(managed.get(ValueLayout.JAVA_BYTE, SIZE - 1)).as(name).isNotEqualTo(last);
    driver.streams().streamSynchronize(0, stream);
    assertThat(managed.get(ValueLayout.JAVA_BYTE, SIZE - 1)).as(name).isEqualTo(last);
  }

  /** Whatever the host waits with, it has its memory again. */
  @ParameterizedTest
  @ValueSource(strings = {"eager", "lazy", "mixed"})
  void memory_isTheHostsAgain_withAnyWaitForTheDevice(String pace) {
    try (SimulatedDriver driver = open(",pace=" + pace)) {
      MemorySegment managed = driver.memory().memAllocManaged(0, SIZE, 1);
      long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
      long event = driver.events().eventCreate(0, 2);
      List<Runnable> waits =
          List.of(
              () -> driver.devices().ctxSynchronize(0),
              () -> driver.streams().streamSynchronize(0, stream),
              () -> driver.events().eventSynchronize(0, event),
              () -> ask(() -> driver.streams().streamQuery(0, stream)),
              () -> ask(() -> driver.events().eventQuery(0, event)),
              () -> driver.memory().memFree(0, driver.memory().memAlloc(0, 64)),
              () ->
                  driver.memory().memFreeHost(0, driver.memory().memHostAlloc(0, 64, 0).address()));
      for (int i = 0; i < waits.size(); i++) {
        byte value = (byte) (i + 1);
        driver.transfers().memsetD8Async(0, managed.address(), value, SIZE, stream);
        driver.events().eventRecord(0, event, stream);
        assertThat(first(managed)).as("wait %d", i).isNotEqualTo(value);
        waits.get(i).run();
        assertThat(first(managed)).as("wait %d", i).isEqualTo(value);
      }
    }
  }

  private static void ask(BooleanSupplier question) {
    boolean done = false;
    while (!done) {
      done = question.getAsBoolean();
    }
  }
}
