package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.PoolProperties;
import io.cuvette.driver.VirtualCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A failed call says what was called with what, and leaves the thread's context alone. */
class FfmFailuresTest {
  private static final MemorySegment NATIVE = Arena.global().allocate(3);
  private static final String AT = "0x" + Long.toHexString(NATIVE.address());

  /** The function that fails, and the call with its arguments in the message. */
  private record Failing(String text, Runnable call) {
    String function() {
      return text.substring(0, text.indexOf('('));
    }
  }

  private final List<Failing> failing = new ArrayList<>();

  @TempDir private Path folder;

  private void fails(String text, Runnable call) {
    failing.add(new Failing(text, call));
  }

  private void check(StubLibrary library) {
    library.makeCurrent(0xeee);
    for (Failing each : failing) {
      library.fail(each.function(), 201);
      assertThatThrownBy(each.call::run)
          .as(each.text)
          .isInstanceOf(CudaException.class)
          .hasMessage(each.text + ": CUDA_ERROR_INVALID_CONTEXT (201): no usable context");
      assertThat(library.current()).isEqualTo(0xeee);
    }
  }

  @Test
  void failuresOfDevices() {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(0);
      driver.devices().memGetInfo(1);
      fails("cuDriverGetVersion()", driver.devices()::driverGetVersion);
      fails("cuDeviceGetName(device=1)", () -> driver.devices().deviceGetName(1));
      fails("cuDeviceGetUuid(device=1)", () -> driver.devices().deviceGetUuid(1));
      fails("cuDeviceTotalMem(device=1)", () -> driver.devices().deviceTotalMem(1));
      fails(
          "cuDeviceGetAttribute(attribute=75, device=1)",
          () -> driver.devices().deviceGetAttribute(75, 1));
      fails("cuDeviceGetPCIBusId(device=1)", () -> driver.devices().deviceGetPciBusId(1));
      fails(
          "cuDeviceGetByPCIBusId(pciBusId=x%d)", () -> driver.devices().deviceGetByPciBusId("x%d"));
      fails(
          "cuDeviceCanAccessPeer(device=1, peer=0)",
          () -> driver.devices().deviceCanAccessPeer(1, 0));
      fails(
          "cuCtxEnablePeerAccess(device=1, peer=0)",
          () -> driver.devices().ctxEnablePeerAccess(1, 0));
      fails(
          "cuCtxDisablePeerAccess(device=1, peer=0)",
          () -> driver.devices().ctxDisablePeerAccess(1, 0));
      fails("cuCtxSynchronize(device=1)", () -> driver.devices().ctxSynchronize(1));
      fails(
          "cuCtxGetStreamPriorityRange(device=1)",
          () -> driver.devices().ctxGetStreamPriorityRange(1));
      fails("cuCtxGetLimit(limit=2, device=1)", () -> driver.devices().ctxGetLimit(1, 2));
      fails(
          "cuCtxSetLimit(limit=2, value=9, device=1)", () -> driver.devices().ctxSetLimit(1, 2, 9));
      fails("cuProfilerStart(device=1)", () -> driver.devices().profilerStart(1));
      fails("cuProfilerStop(device=1)", () -> driver.devices().profilerStop(1));
      fails("cuMemGetInfo(device=1)", () -> driver.devices().memGetInfo(1));
      check(library);
    }
  }

  @Test
  void failuresOfVirtualMemory() {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(0);
      VirtualCalls calls = driver.virtual();
      fails(
          "cuMemAddressReserve(bytes=8, alignment=4, address=0xab)",
          () -> calls.memAddressReserve(8, 4, 0xab));
      fails("cuMemAddressFree(address=0xab, bytes=8)", () -> calls.memAddressFree(0xab, 8));
      fails(
          "cuMemMap(address=0xab, bytes=8, offset=4, handle=0x9)",
          () -> calls.memMap(0xab, 8, 4, 9));
      fails("cuMemUnmap(address=0xab, bytes=8)", () -> calls.memUnmap(0xab, 8));
      fails(
          "cuMemSetAccess(address=0xab, bytes=8, locationType=1, locationIds=[0], access=[3])",
          () -> calls.memSetAccess(0xab, 8, 1, new int[] {0}, 3));
      fails(
          "cuMemGetAccess(address=0xab, locationType=1, locationId=0)",
          () -> calls.memGetAccess(0xab, 1, 0));
      fails("cuMemRelease(handle=0x9)", () -> calls.memRelease(9));
      fails(
          "cuMemRetainAllocationHandle(address=0xab)", () -> calls.memRetainAllocationHandle(0xab));
      fails(
          "cuMemGetAllocationPropertiesFromHandle(handle=0x9)",
          () -> calls.memGetAllocationPropertiesFromHandle(9));
      fails("cuMemExportToShareableHandle(handle=0x9)", () -> calls.memExportToShareableHandle(9));
      fails(
          "cuMemImportFromShareableHandle(descriptor=9)",
          () -> calls.memImportFromShareableHandle(9));
      check(library);
    }
  }

  @Test
  void failuresOfMemory() {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(0);
      driver.devices().memGetInfo(1);
      fails("cuMemAlloc(bytes=512, device=1)", () -> driver.memory().memAlloc(1, 512));
      fails("cuMemFree(address=0xab, device=1)", () -> driver.memory().memFree(1, 0xab));
      fails(
          "cuMemHostAlloc(bytes=8, flags=3, device=1)",
          () -> driver.memory().memHostAlloc(1, 8, 3));
      fails("cuMemFreeHost(address=0xab, device=1)", () -> driver.memory().memFreeHost(1, 0xab));
      MemorySegment registered = Arena.ofAuto().allocate(8);
      fails(
          "cuMemHostRegister(address=0x%x, bytes=8, flags=3, device=1)"
              .formatted(registered.address()),
          () -> driver.memory().memHostRegister(1, registered, 3));
      fails(
          "cuMemHostUnregister(address=0xab, device=1)",
          () -> driver.memory().memHostUnregister(1, 0xab));
      fails(
          "cuMemAllocManaged(bytes=8, flags=1, device=1)",
          () -> driver.memory().memAllocManaged(1, 8, 1));
      fails(
          "cuPointerGetAttribute(attribute=9, address=0xab, device=1)",
          () -> driver.memory().pointerGetAttribute(1, 9, 0xab));
      fails(
          "cuMemRangeGetAttribute(attribute=2, address=0xab, bytes=8, device=1)",
          () -> driver.memory().memRangeGetAttribute(1, 2, 0xab, 8));
      fails(
          "cuMemRangeGetAttribute(attribute=3, address=0xab, bytes=8, count=5, device=1)",
          () -> driver.memory().memRangeGetAttributeList(1, 3, 0xab, 8, 5));
      managedFailures(driver);
      check(library);
    }
  }

  @Test
  void failuresOfManagedMemoryWithCuda12() {
    StubLibrary library = StubLibrary.compile(folder);
    library.version(12_000);
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(1);
      managedFailures(driver);
      fails("cuCtxSynchronize(device=1)", () -> driver.devices().ctxSynchronize(1));
      fails("cuStreamGetCtx(stream=0x5, device=1)", () -> driver.streams().streamGetDevice(1, 5));
      fails("cuCtxGetDevice(stream=0x5, device=1)", () -> driver.streams().streamGetDevice(1, 5));
      check(library);
    }
  }

  private void managedFailures(CudaDriver driver) {
    fails(
        "cuMemPrefetchAsync(address=0xab, bytes=8, locationType=1, locationId=0, stream=0x5,"
            + " device=1)",
        () -> driver.memory().memPrefetchAsync(1, 0xab, 8, 1, 0, 5));
    fails(
        "cuMemAdvise(address=0xab, bytes=8, advice=3, locationType=2, locationId=0, device=1)",
        () -> driver.memory().memAdvise(1, 0xab, 8, 3, 2, 0));
  }

  @Test
  void failuresOfPools() {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      fails("cuDeviceGetDefaultMemPool(device=1)", () -> driver.pools().deviceGetDefaultMemPool(1));
      fails("cuDeviceGetMemPool(device=1)", () -> driver.pools().deviceGetMemPool(1));
      fails("cuDeviceSetMemPool(device=1, pool=0x9)", () -> driver.pools().deviceSetMemPool(1, 9));
      fails(
          "cuMemGetDefaultMemPool(locationType=1, locationId=0, allocationType=2)",
          () -> driver.pools().memGetDefaultMemPool(1, 0, 2));
      fails(
          "cuMemGetMemPool(locationType=3, locationId=1, allocationType=1)",
          () -> driver.pools().memGetMemPool(3, 1, 1));
      fails(
          "cuMemSetMemPool(locationType=1, locationId=0, allocationType=2, pool=0x9)",
          () -> driver.pools().memSetMemPool(1, 0, 2, 9));
      fails(
          "cuMemPoolCreate(allocationType=1, handleTypes=8, locationType=1, locationId=0,"
              + " maxBytes=64)",
          () -> driver.pools().memPoolCreate(new PoolProperties(1, 8, 1, 0, 64)));
      fails("cuMemPoolDestroy(pool=0x9)", () -> driver.pools().memPoolDestroy(9));
      fails("cuMemPoolTrimTo(pool=0x9, bytesToKeep=8)", () -> driver.pools().memPoolTrimTo(9, 8));
      fails(
          "cuMemPoolGetAttribute(pool=0x9, attribute=5)",
          () -> driver.pools().memPoolGetAttribute(9, 5));
      fails(
          "cuMemPoolSetAttribute(pool=0x9, attribute=4, value=7)",
          () -> driver.pools().memPoolSetAttribute(9, 4, 7));
      fails(
          "cuMemPoolGetAccess(pool=0x9, locationType=1, locationId=0)",
          () -> driver.pools().memPoolGetAccess(9, 1, 0));
      fails(
          "cuMemPoolSetAccess(pool=0x9, locationType=1, locationIds=[1, 0], access=[3])",
          () -> driver.pools().memPoolSetAccess(9, 1, new int[] {1, 0}, 3));
      assertThatThrownBy(() -> driver.pools().memPoolSetAccess(9, 1, new int[] {1, 0}, 3, 1, 0))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("access: 3 flags for 2 locations (expected: 1 or 2)");
      check(library);
    }
  }

  @Test
  void failuresOfStreamOrderedMemory() {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(1);
      for (int stream = 2; stream < 4; stream++) {
        streamOrderedFailures(driver, stream);
      }
      check(library);
    }
  }

  private void streamOrderedFailures(CudaDriver driver, int stream) {
    fails(
        "cuMemAllocAsync(bytes=8, stream=0x" + stream + ", device=1)",
        () -> driver.ordered().memAllocAsync(1, 8, stream));
    fails(
        "cuMemAllocFromPoolAsync(bytes=8, pool=0x9, stream=0x" + stream + ", device=1)",
        () -> driver.ordered().memAllocFromPoolAsync(1, 8, 9, stream));
    fails(
        "cuMemFreeAsync(address=0xab, stream=0x" + stream + ", device=1)",
        () -> driver.ordered().memFreeAsync(1, 0xab, stream));
  }

  @Test
  void failuresOfMemoryOfOtherProcesses() {
    StubLibrary library = StubLibrary.compile(folder);
    byte[] handle = new byte[64];
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(1);
      fails(
          "cuMemPoolExportToShareableHandle(pool=0x9)",
          () -> driver.sharing().memPoolExportToShareableHandle(9));
      fails(
          "cuMemPoolImportFromShareableHandle(descriptor=-3)",
          () -> driver.sharing().memPoolImportFromShareableHandle(-3));
      fails(
          "cuMemPoolExportPointer(address=0xab)",
          () -> driver.sharing().memPoolExportPointer(0xab));
      fails(
          "cuMemPoolImportPointer(pool=0x9)",
          () -> driver.sharing().memPoolImportPointer(9, handle));
      fails(
          "cuIpcGetMemHandle(address=0xab, device=1)",
          () -> driver.sharing().ipcGetMemHandle(1, 0xab));
      fails("cuIpcOpenMemHandle(device=1)", () -> driver.sharing().ipcOpenMemHandle(1, handle));
      fails(
          "cuIpcCloseMemHandle(address=0xab, device=1)",
          () -> driver.sharing().ipcCloseMemHandle(1, 0xab));
      fails(
          "cuIpcGetEventHandle(event=0x6, device=1)",
          () -> driver.sharing().ipcGetEventHandle(1, 6));
      fails("cuIpcOpenEventHandle(device=1)", () -> driver.sharing().ipcOpenEventHandle(1, handle));
      check(library);
    }
  }

  @Test
  void failuresOfTransfers() {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(0);
      driver.devices().memGetInfo(1);
      fails(
          "cuMemcpyAsync(target=0xab, source=0xcd, bytes=8, stream=0x5, device=1)",
          () -> driver.transfers().memcpyAsync(1, 0xab, 0xcd, 8, 5));
      fails(
          "cuMemcpyHtoDAsync(target=0xab, source=" + AT + ", bytes=3, stream=0x5, device=1)",
          () -> driver.transfers().memcpyHtoDAsync(1, 0xab, NATIVE, 5));
      fails(
          "cuMemcpyDtoHAsync(target=" + AT + ", source=0xab, bytes=3, stream=0x5, device=1)",
          () -> driver.transfers().memcpyDtoHAsync(1, NATIVE, 0xab, 5));
      fails(
          "cuMemcpyPeerAsync(target=0xab, targetDevice=0, source=0xcd, sourceDevice=1, bytes=8,"
              + " stream=0x5, streamDevice=1)",
          () -> driver.transfers().memcpyPeerAsync(1, 0xab, 0, 0xcd, 1, 8, 5));
      BoxCopy.Side side = new BoxCopy.Side(0xab, 8, 2);
      BoxCopy box = new BoxCopy(side, side, 4, 2, 1);
      fails(
          "cuMemcpy3DAsync(" + box + ", stream=0x5, device=1)",
          () -> driver.transfers().memcpy3DAsync(1, box, 5));
      long[] two = {0xab, 0xcd};
      fails(
          "cuMemcpyBatchAsync(count=2, stream=0x5, device=1)",
          () -> driver.transfers().memcpyBatchAsync(1, two, two, two, 5));
      fails(
          "cuMemsetD8Async(target=0xab, value=-1, count=8, stream=0x5, device=1)",
          () -> driver.transfers().memsetD8Async(1, 0xab, (byte) -1, 8, 5));
      fails(
          "cuMemsetD16Async(target=0xab, value=7, count=8, stream=0x5, device=1)",
          () -> driver.transfers().memsetD16Async(1, 0xab, (short) 7, 8, 5));
      fails(
          "cuMemsetD32Async(target=0xab, value=7, count=8, stream=0x5, device=1)",
          () -> driver.transfers().memsetD32Async(1, 0xab, 7, 8, 5));
      check(library);
    }
  }

  @Test
  void failuresOfStreams() {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(1);
      fails(
          "cuStreamCreateWithPriority(flags=1, priority=-2, device=1)",
          () -> driver.streams().streamCreateWithPriority(1, 1, -2));
      fails("cuStreamDestroy(stream=0x5, device=1)", () -> driver.streams().streamDestroy(1, 5));
      fails(
          "cuStreamGetPriority(stream=0x5, device=1)",
          () -> driver.streams().streamGetPriority(1, 5));
      fails("cuStreamGetFlags(stream=0x5, device=1)", () -> driver.streams().streamGetFlags(1, 5));
      fails("cuStreamGetId(stream=0x5, device=1)", () -> driver.streams().streamGetId(1, 5));
      fails("cuStreamQuery(stream=0x5, device=1)", () -> driver.streams().streamQuery(1, 5));
      fails(
          "cuStreamSynchronize(stream=0x5, device=1)",
          () -> driver.streams().streamSynchronize(1, 5));
      fails(
          "cuStreamWaitEvent(stream=0x5, event=0x6, device=1)",
          () -> driver.streams().streamWaitEvent(1, 5, 6));
      fails(
          "cuLaunchHostFunc(stream=0x5, device=1)",
          () -> driver.streams().launchHostFunc(1, 5, () -> {}));
      check(library);
    }
  }

  @Test
  void failuresOfEventsAndCapture() {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(1);
      fails("cuEventCreate(flags=2, device=1)", () -> driver.events().eventCreate(1, 2));
      fails("cuEventDestroy(event=0x6, device=1)", () -> driver.events().eventDestroy(1, 6));
      fails(
          "cuEventRecord(event=0x6, stream=0x5, device=1)",
          () -> driver.events().eventRecord(1, 6, 5));
      fails("cuEventQuery(event=0x6, device=1)", () -> driver.events().eventQuery(1, 6));
      fails(
          "cuEventSynchronize(event=0x6, device=1)", () -> driver.events().eventSynchronize(1, 6));
      fails(
          "cuEventElapsedTime(start=0x6, end=0x7, device=1)",
          () -> driver.events().eventElapsedTime(1, 6, 7));
      fails(
          "cuStreamBeginCapture(stream=0x5, mode=2, device=1)",
          () -> driver.captures().streamBeginCapture(1, 5, 2));
      fails(
          "cuStreamEndCapture(stream=0x5, device=1)",
          () -> driver.captures().streamEndCapture(1, 5));
      fails(
          "cuStreamIsCapturing(stream=0x5, device=1)",
          () -> driver.captures().streamIsCapturing(1, 5));
      fails("cuGraphDestroy(graph=0x8)", () -> driver.graphs().graphDestroy(8));
      check(library);
    }
  }
}
