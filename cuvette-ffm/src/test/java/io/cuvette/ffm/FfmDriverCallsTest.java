package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.PriorityRange;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.WeakReference;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** Each call reaches the right form of its function, with each argument in its place and width. */
class FfmDriverCallsTest extends StubDriverTest {
  private static final long BIG = 0x7654_3210_fedcL;

  @Test
  void driverGetVersion() {
    assertThat(driver.devices().driverGetVersion()).isEqualTo(13000);
    noted("cuDriverGetVersion@2020() in c001");
  }

  @Test
  void devices() {
    library.answer(BIG, 0);
    assertThat(driver.devices().deviceGetCount()).isEqualTo(2);
    assertThat(driver.devices().deviceGetName(1)).isEqualTo("Stub 41");
    assertThat(driver.devices().deviceGetUuid(1))
        .isEqualTo(UUID.fromString("f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff"));
    assertThat(driver.devices().deviceTotalMem(1)).isEqualTo(BIG);
    assertThat(driver.devices().deviceGetPciBusId(1)).isEqualTo("0000:1b:00.0");
    assertThat(library.calls())
        .containsExactly(
            "cuDeviceGetName@2000(256, 41) in c001",
            "cuDeviceGetUuid@11040(41) in c001",
            "cuDeviceTotalMem@3020(41) in c001",
            "cuDeviceGetPCIBusId@4010(32, 41) in c001");
  }

  @Test
  void deviceGetAttribute() {
    library.answer(-5, 0);
    assertThat(driver.devices().deviceGetAttribute(75, 1)).isEqualTo(-5);
    noted("cuDeviceGetAttribute@2000(75, 41) in c001");
  }

  @Test
  void deviceGetByPciBusId() {
    library.answer(41, 0);
    assertThat(driver.devices().deviceGetByPciBusId("0000:1b:00.0")).isEqualTo(1);
    noted("cuDeviceGetByPCIBusId@4010(0000:1b:00.0) in c001");
  }

  @Test
  void deviceGetByPciBusId_withNul_isInvalid() {
    for (String id : List.of("0000:1b:00.0\0", "\0", "\0000:1b:00.0")) {
      assertThatThrownBy(() -> driver.devices().deviceGetByPciBusId(id))
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.INVALID_VALUE));
    }
    assertThat(library.calls()).isEmpty();
  }

  @Test
  void peers() {
    library.answer(1, 0);
    assertThat(driver.devices().deviceCanAccessPeer(0, 1)).isTrue();
    library.answer(0, 0);
    assertThat(driver.devices().deviceCanAccessPeer(1, 0)).isFalse();
    driver.devices().ctxEnablePeerAccess(1, 0);
    driver.devices().ctxDisablePeerAccess(1, 0);
    assertThat(library.calls())
        .containsExactly(
            "cuDeviceCanAccessPeer@4000(40, 41) in c001",
            "cuDeviceCanAccessPeer@4000(41, 40) in c001",
            "cuCtxEnablePeerAccess@4000(c000, 0) in c001",
            "cuCtxDisablePeerAccess@4000(c000) in c001");
  }

  @Test
  void ctxSynchronize_needsNoCurrentContext() {
    driver.devices().ctxSynchronize(0);
    noted("cuCtxSynchronize@13000(c000) in c001");
  }

  @Test
  void limits() {
    library.answer(BIG, 0);
    assertThat(driver.devices().ctxGetLimit(1, 2)).isEqualTo(BIG);
    driver.devices().ctxSetLimit(1, 2, 4096);
    assertThat(library.calls())
        .containsExactly("cuCtxGetLimit@3010(2) in c001", "cuCtxSetLimit@3010(2, 4096) in c001");
  }

  @Test
  void answersOfTwoValues() {
    library.answer(0, -5);
    assertThat(driver.devices().ctxGetStreamPriorityRange(1)).isEqualTo(new PriorityRange(0, -5));
    library.answer(BIG, BIG + 1);
    assertThat(driver.devices().memGetInfo(1)).isEqualTo(new MemoryInfo(BIG, BIG + 1));
    assertThat(library.calls())
        .containsExactly(
            "cuCtxGetStreamPriorityRange@5050() in c001", "cuMemGetInfo@3020() in c001");
  }

  @Test
  void memory() {
    library.answer(BIG, 0);
    assertThat(driver.memory().memAlloc(1, 1L << 40)).isEqualTo(BIG);
    driver.memory().memFree(1, BIG);
    assertThat(library.calls())
        .containsExactly(
            "cuMemAlloc@3020(1099511627776) in c001", "cuMemFree@3020(76543210fedc) in c001");
  }

  @Test
  void hostMemory_canBeWritten() {
    MemorySegment pinned = driver.memory().memHostAlloc(1, 24, 5);
    MemorySegment managed = driver.memory().memAllocManaged(1, 24, 2);
    pinned.set(ValueLayout.JAVA_LONG, 16, BIG);
    managed.set(ValueLayout.JAVA_LONG, 16, BIG);
    assertThat(pinned.byteSize()).isEqualTo(managed.byteSize()).isEqualTo(24);
    driver.memory().memFreeHost(1, 0xabc);
    assertThat(library.calls())
        .containsExactly(
            "cuMemHostAlloc@2020(24, 5) in c001",
            "cuMemAllocManaged@6000(24, 2) in c001",
            "cuMemFreeHost@2000(abc) in c001");
  }

  @Test
  void memoryThatIsThere_isRegistered_andAHeapSegmentIsNot() {
    MemorySegment memory = Arena.ofAuto().allocate(24);
    driver.memory().memHostRegister(1, memory, 11);
    driver.memory().memHostUnregister(1, 0xabc);
    assertThatThrownBy(
            () -> driver.memory().memHostRegister(1, MemorySegment.ofArray(new byte[8]), 3))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("heap segment");
    assertThat(library.calls())
        .containsExactly(
            "cuMemHostRegister@6050(%x, 24, 11) in c001".formatted(memory.address()),
            "cuMemHostUnregister@4000(abc) in c001");
  }

  @Test
  void hostView_diesWithItsArena() {
    MemorySegment pinned = driver.memory().memHostAlloc(1, 8, 0);
    MemorySegment view;
    try (Arena arena = Arena.ofConfined()) {
      view = driver.memory().hostView(1, pinned.address(), 8, arena);
      view.set(ValueLayout.JAVA_LONG, 0, BIG);
      assertThat(pinned.get(ValueLayout.JAVA_LONG, 0)).isEqualTo(BIG);
    }
    assertThatThrownBy(() -> view.get(ValueLayout.JAVA_LONG, 0))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void pointerAttributes_shorterOnesAreZeroExtended() {
    library.answer(-2, 0);
    assertThat(driver.memory().pointerGetAttribute(1, 9, BIG)).isEqualTo(0xffff_fffeL);
    assertThat(driver.memory().pointerGetAttribute(1, 7, BIG)).isEqualTo(-2);
    assertThat(library.calls())
        .containsExactly(
            "cuPointerGetAttribute@4000(9, 76543210fedc) in c001",
            "cuPointerGetAttribute@4000(7, 76543210fedc) in c001");
  }

  @Test
  void managedMemory_placesAreStructuresByValue() {
    library.answer(7, 0);
    driver.memory().memPrefetchAsync(1, BIG, 4096, 1, 1, 0x5);
    driver.memory().memPrefetchAsync(1, BIG, 4096, 3, 1, 0x5);
    driver.memory().memAdvise(1, BIG, 4096, 3, 2, 0);
    assertThat(driver.memory().memRangeGetAttribute(1, 4, BIG, 4096)).isEqualTo(7);
    assertThat(library.calls())
        .containsExactly(
            "cuMemPrefetchAsync@12020(76543210fedc, 4096, {1, 41}, 0, 5) in c001",
            "cuMemPrefetchAsync@12020(76543210fedc, 4096, {3, 1}, 0, 5) in c001",
            "cuMemAdvise@12020(76543210fedc, 4096, 3, {2, 0}) in c001",
            "cuMemRangeGetAttribute@8000(4, 4, 76543210fedc, 4096) in c001");
  }

  @Test
  void copies() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocateFrom("text");
      MemorySegment room = arena.allocate(3);
      driver.transfers().memcpyAsync(1, BIG, 0x20, 4096, 0x5);
      driver.transfers().memcpyHtoDAsync(1, BIG, text, 0x5);
      driver.transfers().memcpyDtoHAsync(1, room, BIG, 0x5);
      driver.transfers().memcpyPeerAsync(1, BIG, 0, 0x20, 1, 4096, 0x5);
      assertThat(room.toArray(ValueLayout.JAVA_BYTE)).containsExactly(7, 7, 7);
    }
    assertThat(library.calls())
        .containsExactly(
            "cuMemcpyAsync@4000(76543210fedc, 20, 4096, 5) in c001",
            "cuMemcpyHtoDAsync@3020(76543210fedc, text, 5, 5) in c001",
            "cuMemcpyDtoHAsync@3020(76543210fedc, 3, 5) in c001",
            "cuMemcpyPeerAsync@4000(76543210fedc, c000, 20, c001, 4096, 5) in c001");
  }

  @Test
  void copiesOfHeapSegments_areRefused() {
    MemorySegment heap = MemorySegment.ofArray(new byte[4]);
    assertThatThrownBy(() -> driver.transfers().memcpyHtoDAsync(1, BIG, heap, 0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("source: heap segment")
        .hasMessageContaining("PinnedBuffer");
    assertThatThrownBy(() -> driver.transfers().memcpyDtoHAsync(1, heap, BIG, 0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("target: heap segment");
    assertThat(library.calls()).isEmpty();
  }

  @Test
  void copiesOfClosedSegments_areRefused() {
    Arena arena = Arena.ofConfined();
    MemorySegment gone = arena.allocate(8);
    arena.close();
    assertThatThrownBy(() -> driver.transfers().memcpyHtoDAsync(1, BIG, gone, 0))
        .isInstanceOf(IllegalStateException.class);
    assertThat(library.calls()).isEmpty();
  }

  @Test
  void fills_takeUnsignedValues() {
    driver.transfers().memsetD8Async(1, BIG, (byte) -2, 3, 0x5);
    driver.transfers().memsetD16Async(1, BIG, (short) -2, 3, 0x5);
    driver.transfers().memsetD32Async(1, BIG, -2, 3, 0x5);
    assertThat(library.calls())
        .containsExactly(
            "cuMemsetD8Async@3020(76543210fedc, 254, 3, 5) in c001",
            "cuMemsetD16Async@3020(76543210fedc, 65534, 3, 5) in c001",
            "cuMemsetD32Async@3020(76543210fedc, 4294967294, 3, 5) in c001");
  }

  @Test
  void streams() {
    library.answer(BIG, 0);
    assertThat(driver.streams().streamCreateWithPriority(1, 1, -3)).isEqualTo(BIG);
    assertThat(driver.streams().streamGetId(1, 0x5)).isEqualTo(BIG);
    library.answer(-3, 0);
    assertThat(driver.streams().streamGetPriority(1, 0x5)).isEqualTo(-3);
    library.answer(1, 0);
    assertThat(driver.streams().streamGetFlags(1, 0x5)).isEqualTo(1);
    driver.streams().streamSynchronize(1, 0x5);
    driver.streams().streamWaitEvent(1, 0x5, 0x6);
    driver.streams().streamDestroy(1, 0x5);
    assertThat(library.calls())
        .containsExactly(
            "cuStreamCreateWithPriority@5050(1, -3) in c001",
            "cuStreamGetId@12000(5) in c001",
            "cuStreamGetPriority@5050(5) in c001",
            "cuStreamGetFlags@5050(5) in c001",
            "cuStreamSynchronize@2000(5) in c001",
            "cuStreamWaitEvent@3020(5, 6, 0) in c001",
            "cuStreamDestroy@4000(5) in c001");
  }

  @Test
  void streamGetDevice_isTheOrdinal() {
    library.answer(0xeee, 41);
    assertThat(driver.streams().streamGetDevice(0, 0x5)).isEqualTo(1);
    assertThat(library.calls())
        .contains("cuStreamGetCtx@9020(5) in c000", "cuCtxGetDevice@2000() in eee");
    library.reset();
    assertThat(driver.streams().streamGetDevice(0, 2)).isEqualTo(0);
    assertThat(driver.streams().streamGetDevice(1, 0)).isEqualTo(1);
    assertThat(library.calls()).isEmpty();
  }

  @Test
  void queries_tellReadyFromNotReadyFromFailed() {
    assertThat(driver.streams().streamQuery(1, 0x5)).isTrue();
    assertThat(driver.events().eventQuery(1, 0x6)).isTrue();
    library.fail("cuStreamQuery", 600);
    assertThat(driver.streams().streamQuery(1, 0x5)).isFalse();
    library.fail("cuEventQuery", 600);
    assertThat(driver.events().eventQuery(1, 0x6)).isFalse();
    library.fail("cuEventQuery", 700);
    assertThatThrownBy(() -> driver.events().eventQuery(1, 0x6))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining(
            "cuEventQuery(event=0x6, device=1): CUDA_ERROR_ILLEGAL_ADDRESS (700)");
  }

  @Test
  void events() {
    library.answer(BIG, 0);
    assertThat(driver.events().eventCreate(1, 6)).isEqualTo(BIG);
    driver.events().eventRecord(1, 0x6, 0x5);
    driver.events().eventSynchronize(1, 0x6);
    assertThat(driver.events().eventElapsedTime(1, 0x6, 0x7)).isEqualTo(1.5f);
    driver.events().eventDestroy(1, 0x6);
    assertThat(library.calls())
        .containsExactly(
            "cuEventCreate@2000(6) in c001",
            "cuEventRecord@2000(6, 5) in c001",
            "cuEventSynchronize@2000(6) in c001",
            "cuEventElapsedTime@12080(6, 7) in c001",
            "cuEventDestroy@4000(6) in c001");
  }

  @Test
  void capture() {
    driver.captures().streamBeginCapture(1, 0x5, 2);
    library.answer(1, 0);
    assertThat(driver.captures().streamIsCapturing(1, 0x5)).isEqualTo(1);
    library.answer(BIG, 0);
    assertThat(driver.captures().streamEndCapture(1, 0x5)).isEqualTo(BIG);
    driver.graphs().graphDestroy(BIG);
    assertThat(library.calls())
        .containsExactly(
            "cuStreamBeginCapture@10010(5, 2) in c001",
            "cuStreamIsCapturing@10000(5) in c001",
            "cuStreamEndCapture@10000(5) in c001",
            "cuGraphDestroy@10000(76543210fedc) in c001");
  }

  @Test
  void hostFunctions_runOnAThreadOfTheDriver() {
    CompletableFuture<Thread> ran = new CompletableFuture<>();
    driver.streams().launchHostFunc(1, 0x5, () -> ran.complete(Thread.currentThread()));
    assertThat(ran.join()).isNotSameAs(Thread.currentThread());
    noted("cuStreamGetCaptureInfo@11030(5, 0, 0) in c001", "cuLaunchHostFunc@10000(5) in c001");
  }

  @Test
  void hostFunctionsThatThrow_harmNobody() {
    CompletableFuture<Boolean> ran = new CompletableFuture<>();
    driver
        .streams()
        .launchHostFunc(
            1,
            0x5,
            () -> {
              throw new IllegalStateException("thrown on purpose");
            });
    driver.streams().launchHostFunc(1, 0x5, () -> ran.complete(true));
    assertThat(ran.join()).isTrue();
  }

  /** Its text and the log's handlers are code of the program, and may throw as well. */
  private static final class Unspeakable extends RuntimeException {
    private static final long serialVersionUID = 1L;

    @Override
    public String toString() {
      throw new IllegalStateException("no words");
    }
  }

  @Test
  void whatAHostFunctionThrows_isLogged_orItsClassWhereThatCannotBe() throws Exception {
    try (LogProbe log = new LogProbe("io.cuvette.ffm.part.HostFunctions")) {
      driver
          .streams()
          .launchHostFunc(
              1,
              0x5,
              () -> {
                throw new IllegalStateException("thrown on purpose");
              });
      await(log, 1);
      driver
          .streams()
          .launchHostFunc(
              1,
              0x5,
              () -> {
                throw new Unspeakable();
              });
      await(log, 2);
      assertThat(log.told())
          .containsExactly(
              "SEVERE a host function threw: java.lang.IllegalStateException: thrown on purpose",
              "SEVERE a host function threw {0}, which cannot be logged ["
                  + Unspeakable.class.getName()
                  + "]");
    }
  }

  private static void await(LogProbe log, int count) throws InterruptedException {
    long end = System.nanoTime() + 60_000_000_000L;
    while (log.told().size() < count && System.nanoTime() < end) {
      Thread.sleep(1);
    }
  }

  /** The library is loaded once for all drivers of a process. */
  @Test
  void secondDriver_usesTheLibraryThatIsLoaded() {
    CudaDriverProvider provider = library.provider();
    try (CudaDriver one = provider.open("");
        CudaDriver two = provider.open("")) {
      assertThat(one.devices().driverGetVersion())
          .isEqualTo(two.devices().driverGetVersion())
          .isEqualTo(13000);
    }
  }

  @Test
  void hostFunctionThatIsNotLaunched_isForgotten() {
    library.fail("cuLaunchHostFunc", 400);
    byte[] captured = new byte[8];
    WeakReference<byte[]> reference = new WeakReference<>(captured);
    launchFails(captured);
    captured = null;
    for (int i = 0; i < 20 && reference.get() != null; i++) {
      System.gc();
    }
    assertThat(reference.get()).isNull();
  }

  private void launchFails(byte[] captured) {
    assertThatThrownBy(() -> driver.streams().launchHostFunc(1, 0x5, () -> captured[0] = 1))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("cuLaunchHostFunc(stream=0x5, device=1)");
  }

  @Test
  void nativeAllocators_areCalledWithTheDeviceCurrent() {
    library.answer(BIG, 0);
    assertThat(driver.natives().callMalloc(library.address("stub_malloc"), 0xaa, 1L << 40, 1))
        .isEqualTo(BIG);
    driver.natives().callFree(library.address("stub_free"), 0xaa, BIG, 1);
    assertThat(library.calls())
        .containsExactly(
            "malloc(aa, 1099511627776, 1) in c001", "free(aa, 76543210fedc, 1) in c001");
    assertThatThrownBy(() -> driver.natives().callMalloc(0, 0, 1, 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("function: 0");
  }
}
