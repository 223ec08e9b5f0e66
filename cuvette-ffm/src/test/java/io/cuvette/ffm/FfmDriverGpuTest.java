package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.PriorityRange;
import io.cuvette.ffm.library.Versions;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Every call once on a real GPU; skipped where there is none. */
@SuppressWarnings("restricted")
class FfmDriverGpuTest {
  private static final int BYTES = 1 << 20;

  private CudaDriver driver;
  private long stream;

  @BeforeEach
  void open() {
    FfmDriverProvider provider = new FfmDriverProvider();
    assumeTrue(provider.isAvailable(), "no GPU");
    driver = provider.open("");
    stream = driver.streams().streamCreateWithPriority(0, 1, 0);
  }

  @AfterEach
  void close() {
    if (driver != null) {
      driver.streams().streamDestroy(0, stream);
      driver.close();
    }
  }

  private static void assertStatus(CudaStatus status, Runnable call) {
    assertThatThrownBy(call::run)
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.status()).isEqualTo(status));
  }

  @Test
  void device_isDescribed() {
    assertThat(driver.devices().driverGetVersion()).isGreaterThanOrEqualTo(Versions.OLDEST);
    assertThat(driver.devices().deviceGetCount()).isPositive();
    assertThat(driver.devices().deviceGetName(0)).isNotBlank();
    assertThat(driver.devices().deviceGetUuid(0).getMostSignificantBits()).isNotZero();
    assertThat(driver.devices().deviceTotalMem(0)).isGreaterThan(1L << 30);
    assertThat(driver.devices().deviceGetAttribute(75, 0)).isGreaterThanOrEqualTo(5);
    String address = driver.devices().deviceGetPciBusId(0);
    assertThat(address).matches("[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-9a-fA-F]");
    assertThat(driver.devices().deviceGetByPciBusId(address)).isZero();
    assertThat(driver.devices().deviceCanAccessPeer(0, 0)).isFalse();
    assertStatus(CudaStatus.INVALID_VALUE, () -> driver.devices().deviceGetAttribute(100_000, 0));
    assertStatus(CudaStatus.INVALID_VALUE, () -> driver.devices().deviceGetByPciBusId("nonsense"));
  }

  @Test
  void runtimeVersion_isEmptyOrPlausible() {
    assertThat(driver.devices().runtimeGetVersion().orElse(12_000)).isGreaterThanOrEqualTo(10_000);
  }

  @Test
  void context_isDescribed() {
    MemoryInfo memory = driver.devices().memGetInfo(0);
    assertThat(memory.freeBytes()).isPositive().isLessThanOrEqualTo(memory.totalBytes());
    PriorityRange range = driver.devices().ctxGetStreamPriorityRange(0);
    assertThat(range.contains(0)).isTrue();
    long stack = driver.devices().ctxGetLimit(0, 0);
    driver.devices().ctxSetLimit(0, 0, stack);
    assertThat(driver.devices().ctxGetLimit(0, 0)).isEqualTo(stack);
    driver.devices().ctxSynchronize(0);
  }

  @Test
  void peers_canBeEnabledOnce() {
    assumeTrue(driver.devices().deviceGetCount() > 1, "one GPU");
    assumeTrue(driver.devices().deviceCanAccessPeer(0, 1), "no peer access");
    takeBackAccess(0, 1);
    driver.devices().ctxEnablePeerAccess(0, 1);
    assertStatus(
        CudaStatus.PEER_ACCESS_ALREADY_ENABLED, () -> driver.devices().ctxEnablePeerAccess(0, 1));
    driver.devices().ctxDisablePeerAccess(0, 1);
    assertStatus(
        CudaStatus.PEER_ACCESS_NOT_ENABLED, () -> driver.devices().ctxDisablePeerAccess(0, 1));
  }

  /** Access belongs to the contexts, which other tests of the process may retain. */
  private void takeBackAccess(int device, int peer) {
    try {
      driver.devices().ctxDisablePeerAccess(device, peer);
    } catch (CudaException e) {
      assertThat(e.status()).isEqualTo(CudaStatus.PEER_ACCESS_NOT_ENABLED);
    }
  }

  @Test
  void bytes_goThereAndBack() {
    long first = driver.memory().memAlloc(0, BYTES);
    long second = driver.memory().memAlloc(0, BYTES);
    MemorySegment source = driver.memory().memHostAlloc(0, BYTES, 1);
    MemorySegment target = driver.memory().memHostAlloc(0, BYTES, 1);
    for (int i = 0; i < BYTES; i += Integer.BYTES) {
      source.set(ValueLayout.JAVA_INT, i, 31 * i);
    }
    driver.transfers().memcpyHtoDAsync(0, first, source, stream);
    driver.transfers().memcpyAsync(0, second, first, BYTES, stream);
    driver.transfers().memcpyPeerAsync(0, first, 0, second, 0, BYTES, stream);
    driver.transfers().memcpyDtoHAsync(0, target, first, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(target.mismatch(source)).isEqualTo(-1);
    driver.memory().memFreeHost(0, target.address());
    driver.memory().memFreeHost(0, source.address());
    driver.memory().memFree(0, second);
    driver.memory().memFree(0, first);
    assertStatus(CudaStatus.INVALID_VALUE, () -> driver.memory().memFree(0, first));
  }

  @Test
  void fills_fill() {
    long memory = driver.memory().memAlloc(0, 16);
    MemorySegment target = driver.memory().memHostAlloc(0, 16, 0);
    driver.transfers().memsetD32Async(0, memory, 0xfedc_ba98, 4, stream);
    driver.transfers().memsetD16Async(0, memory, (short) 0xfedc, 2, stream);
    driver.transfers().memsetD8Async(0, memory, (byte) 0xfe, 2, stream);
    driver.transfers().memcpyDtoHAsync(0, target, memory, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(target.toArray(ValueLayout.JAVA_INT_UNALIGNED))
        .containsExactly(0xfedc_fefe, 0xfedc_ba98, 0xfedc_ba98, 0xfedc_ba98);
    driver.memory().memFreeHost(0, target.address());
    driver.memory().memFree(0, memory);
  }

  @Test
  void managedMemory_isSeenByBoth() {
    MemorySegment managed = driver.memory().memAllocManaged(0, BYTES, 1);
    long address = managed.address();
    driver.memory().memAdvise(0, address, BYTES, 3, 1, 0);
    driver.memory().memPrefetchAsync(0, address, BYTES, 1, 0, stream);
    driver.transfers().memsetD8Async(0, address, (byte) 5, BYTES, stream);
    driver.memory().memPrefetchAsync(0, address, BYTES, 2, 0, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(managed.get(ValueLayout.JAVA_BYTE, BYTES - 1)).isEqualTo((byte) 5);
    assertThat(driver.memory().memRangeGetAttribute(0, 2, address, BYTES))
        .isZero(); // preferred: device 0
    try (Arena arena = Arena.ofConfined()) {
      assertThat(driver.memory().hostView(0, address, 8, arena).byteSize()).isEqualTo(8);
    }
    driver.memory().memFree(0, address);
  }

  @Test
  void pointers_areKnown() {
    long memory = driver.memory().memAlloc(0, BYTES);
    assertThat(driver.memory().pointerGetAttribute(0, 2, memory)).isEqualTo(2); // device memory
    assertThat(driver.memory().pointerGetAttribute(0, 9, memory)).isZero(); // its ordinal
    assertThat(driver.memory().pointerGetAttribute(0, 11, memory)).isEqualTo(memory); // its start
    assertThat(driver.memory().pointerGetAttribute(0, 12, memory)).isEqualTo(BYTES); // its size
    assertThat(driver.memory().pointerGetAttribute(0, 8, memory)).isZero(); // not managed
    driver.memory().memFree(0, memory);
    assertStatus(CudaStatus.INVALID_VALUE, () -> driver.memory().pointerGetAttribute(0, 9, 0x10));
  }

  @Test
  void streams_answer() {
    PriorityRange range = driver.devices().ctxGetStreamPriorityRange(0);
    long urgent = driver.streams().streamCreateWithPriority(0, 0, range.greatest());
    assertThat(driver.streams().streamGetPriority(0, urgent)).isEqualTo(range.greatest());
    assertThat(driver.streams().streamGetFlags(0, urgent)).isZero();
    assertThat(driver.streams().streamGetFlags(0, stream)).isOne();
    assertThat(driver.streams().streamGetId(0, urgent))
        .isNotEqualTo(driver.streams().streamGetId(0, stream));
    assertThat(driver.streams().streamGetDevice(0, urgent)).isZero();
    driver.streams().streamSynchronize(0, urgent);
    assertThat(driver.streams().streamQuery(0, urgent)).isTrue();
    driver.streams().streamDestroy(0, urgent);
    for (long special = 0; special <= 2; special++) {
      driver.streams().streamSynchronize(0, special);
      assertThat(driver.streams().streamGetDevice(0, special)).isZero();
    }
  }

  @Test
  void events_measureTime() {
    long start = driver.events().eventCreate(0, 0);
    long end = driver.events().eventCreate(0, 0);
    assertThat(driver.events().eventQuery(0, start)).isTrue();
    assertStatus(CudaStatus.INVALID_HANDLE, () -> driver.events().eventElapsedTime(0, start, end));
    driver.events().eventRecord(0, start, stream);
    driver.events().eventRecord(0, end, stream);
    driver.streams().streamWaitEvent(0, stream, end);
    driver.events().eventSynchronize(0, end);
    assertThat(driver.events().eventElapsedTime(0, start, end)).isNotNegative();
    driver.events().eventDestroy(0, end);
    driver.events().eventDestroy(0, start);
  }

  @Test
  void captures_giveGraphs() {
    long memory = driver.memory().memAlloc(0, 16);
    driver.captures().streamBeginCapture(0, stream, 2);
    driver.transfers().memsetD8Async(0, memory, (byte) 1, 16, stream);
    assertThat(driver.captures().streamIsCapturing(0, stream)).isOne();
    long graph = driver.captures().streamEndCapture(0, stream);
    assertThat(graph).isNotZero();
    assertThat(driver.captures().streamIsCapturing(0, stream)).isZero();
    driver.graphs().graphDestroy(graph);
    driver.memory().memFree(0, memory);
  }

  @Test
  void hostFunctions_runInOrder() {
    StringBuffer order = new StringBuffer();
    for (char letter = 'a'; letter <= 'e'; letter++) {
      char appended = letter;
      driver.streams().launchHostFunc(0, stream, () -> order.append(appended));
    }
    driver.streams().streamSynchronize(0, stream);
    assertThat(order).hasToString("abcde");
  }

  @Test
  void hostFunctions_holdBackTheStream() {
    CompletableFuture<Void> gate = new CompletableFuture<>();
    driver.streams().launchHostFunc(0, stream, gate::join);
    long event = driver.events().eventCreate(0, 2);
    driver.events().eventRecord(0, event, stream);
    assertThat(driver.events().eventQuery(0, event)).isFalse();
    assertThat(driver.streams().streamQuery(0, stream)).isFalse();
    gate.complete(null);
    driver.events().eventSynchronize(0, event);
    assertThat(driver.events().eventQuery(0, event)).isTrue();
    driver.events().eventDestroy(0, event);
  }

  @Test
  void nativeAllocators_mayCallTheDriver() throws Exception {
    MethodHandle allocator =
        MethodHandles.lookup()
            .findVirtual(MemoryCalls.class, "memAlloc", type(long.class, int.class, long.class))
            .bindTo(driver.memory());
    MethodHandle inOrder =
        MethodHandles.permuteArguments(
            allocator, type(long.class, long.class, long.class, int.class), 2, 1);
    try (Arena arena = Arena.ofConfined()) {
      long function =
          Linker.nativeLinker()
              .upcallStub(
                  inOrder,
                  FunctionDescriptor.of(
                      ValueLayout.JAVA_LONG,
                      ValueLayout.JAVA_LONG,
                      ValueLayout.JAVA_LONG,
                      ValueLayout.JAVA_INT),
                  arena)
              .address();
      long memory = driver.natives().callMalloc(function, 0, BYTES, 0);
      assertThat(driver.memory().pointerGetAttribute(0, 12, memory)).isEqualTo(BYTES);
      driver.memory().memFree(0, memory);
    }
  }

  private static MethodType type(Class<?> result, Class<?>... parameters) {
    return MethodType.methodType(result, parameters);
  }

  /** Stores 7 where its parameter points to. */
  private static final String SEVEN =
      """
      .version 8.0
      .target sm_75
      .address_size 64
      .visible .entry seven(.param .u64 place) {
        .reg .u64 %rd<3>;
        .reg .u32 %r<2>;
        ld.param.u64 %rd1, [place];
        cvta.to.global.u64 %rd2, %rd1;
        mov.u32 %r1, 7;
        st.global.u32 [%rd2], %r1;
        ret;
      }
      """;

  @Test
  void launches_runInTheContextOfTheirStream_whateverIsCurrent() throws Exception {
    long library = driver.kernels().libraryLoadData(SEVEN.getBytes(StandardCharsets.US_ASCII));
    long kernel = driver.kernels().libraryGetKernel(library, "seven");
    runsSeven(kernel);
    try (ExecutorService fresh = Executors.newSingleThreadExecutor()) {
      fresh.submit(() -> runsSeven(kernel)).get(); // without a context
    }
    try (ExecutorService fresh = Executors.newSingleThreadExecutor()) {
      Callable<Void> work =
          () -> {
            try (OtherContext other = new OtherContext()) {
              runsSeven(kernel);
              assertThat(OtherContext.current()).isEqualTo(other.handle());
            }
            runsSeven(kernel);
            return null;
          };
      fresh.submit(work).get();
    }
    driver.kernels().libraryUnload(library);
  }

  private void runsSeven(long kernel) {
    long memory = driver.memory().memAlloc(0, 8);
    MemorySegment values = Arena.ofAuto().allocate(8, 8);
    values.set(ValueLayout.JAVA_LONG, 0, memory);
    LaunchParameters parameters = new LaunchParameters(values, List.of(new KernelParameter(0, 8)));
    LaunchShape one = new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);
    MemorySegment found = Arena.ofAuto().allocate(4, 4);
    driver.kernels().launchKernel(0, stream, kernel, one, parameters);
    driver.transfers().memcpyDtoHAsync(0, found, memory, stream);
    driver.streams().streamSynchronize(0, stream);
    driver.memory().memFree(0, memory);
    assertThat(found.get(ValueLayout.JAVA_INT, 0)).isEqualTo(7);
  }

  /** The thread has the context of a driver that is closed. */
  @Test
  void launchesAfterReopening_run() {
    for (int i = 0; i < 2; i++) {
      long library = driver.kernels().libraryLoadData(SEVEN.getBytes(StandardCharsets.US_ASCII));
      runsSeven(driver.kernels().libraryGetKernel(library, "seven"));
      driver.kernels().libraryUnload(library);
      driver.streams().streamDestroy(0, stream);
      driver.close();
      driver = new FfmDriverProvider().open("");
      stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    }
  }

  @Test
  void hugeAllocation_isOutOfMemory() {
    assertStatus(CudaStatus.OUT_OF_MEMORY, () -> driver.memory().memAlloc(0, 1L << 50));
    assertStatus(CudaStatus.INVALID_VALUE, () -> driver.memory().memAlloc(0, 0));
  }

  /** The thread keeps the context of the first driver as its current one, and it is gone. */
  @Test
  void driver_canBeOpenedAgainOnTheSameThread() {
    for (int i = 0; i < 3; i++) {
      driver.streams().streamDestroy(0, stream);
      driver.close();
      driver = new FfmDriverProvider().open("");
      stream = driver.streams().streamCreateWithPriority(0, 1, 0);
      long memory = driver.memory().memAlloc(0, BYTES);
      driver.transfers().memsetD8Async(0, memory, (byte) 1, BYTES, stream);
      driver.streams().streamSynchronize(0, stream);
      driver.memory().memFree(0, memory);
    }
  }

  @Test
  void virtualThreads_allGetTheirMemory() {
    try (ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor()) {
      IntStream.range(0, 2_000)
          .mapToObj(i ->
              CompletableFuture.runAsync(
                  () -> {
                    int bytes = 512 + i;
                    long event = driver.events().eventCreate(0, 2);
                    Thread.yield();
                    long memory = driver.memory().memAlloc(0, bytes);
                    Thread.yield();
                    driver.transfers().memsetD8Async(0, memory, (byte) i, bytes, stream);
                    driver.events().eventRecord(0, event, stream);
                    driver.events().eventSynchronize(0, event);
                    driver.memory().memFree(0, memory);
                    driver.events().eventDestroy(0, event);
                  },
                  executor))
          .toList()
          .forEach(done -> assertThatCode(done::join).doesNotThrowAnyException());
    }
  }
}
