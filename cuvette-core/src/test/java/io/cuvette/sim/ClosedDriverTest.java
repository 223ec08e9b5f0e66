package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixType;
import io.cuvette.driver.PoolProperties;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Each call of a closed driver is refused, and says what was called with what. */
class ClosedDriverTest {
  private static final MemorySegment NATIVE = Arena.global().allocate(3);
  private static final String AT = "0x" + Long.toHexString(NATIVE.address());
  private static final long[] TWO = {0xab, 0xcd};
  private static final BoxCopy BOX =
      new BoxCopy(new BoxCopy.Side(0xab, 8, 2), new BoxCopy.Side(0xcd, 8, 2), 4, 2, 1);
  private static final LaunchShape SHAPE =
      new LaunchShape(1, 1, 1, 32, 1, 1, 1, 1, 1, 0, false, false);
  private static final LaunchParameters ARGUMENTS =
      new LaunchParameters(Arena.global().allocate(8), List.of());
  private static final GraphNodeParams EMPTY = new GraphNodeParams.Empty();
  private static final AllocationProperties PAGES = AllocationProperties.ofDevice(1, 0);
  private static final byte[] HANDLE = new byte[64];

  private static final SimulatedDriver DRIVER =
      SimulatedDriver.open(SimulatedOptions.parse("devices=2"));

  @BeforeAll
  static void close() {
    DRIVER.close();
  }

  private static void says(String call, Runnable called) {
    assertThatThrownBy(called::run)
        .as(call)
        .isInstanceOf(CudaException.class)
        .hasMessage(
            call
                + ": CUDA_ERROR_DEINITIALIZED (4): the driver is shutting down: the driver was"
                + " closed");
  }

  @Test
  void callsOfDevices_areRefused_andSayWhatTheyAre() {
    says("cuDriverGetVersion()", () -> DRIVER.devices().driverGetVersion());
    says("cuDeviceGetCount()", () -> DRIVER.devices().deviceGetCount());
    says("cuDeviceGetName(device=1)", () -> DRIVER.devices().deviceGetName(1));
    says("cuDeviceGetUuid(device=1)", () -> DRIVER.devices().deviceGetUuid(1));
    says("cuDeviceTotalMem(device=1)", () -> DRIVER.devices().deviceTotalMem(1));
    says(
        "cuDeviceGetAttribute(attribute=1, device=75)",
        () -> DRIVER.devices().deviceGetAttribute(1, 75));
    says("cuDeviceGetPCIBusId(device=1)", () -> DRIVER.devices().deviceGetPciBusId(1));
    says(
        "cuDeviceGetByPCIBusId(pciBusId='x%d')", () -> DRIVER.devices().deviceGetByPciBusId("x%d"));
    says(
        "cuDeviceCanAccessPeer(device=1, peer=0)",
        () -> DRIVER.devices().deviceCanAccessPeer(1, 0));
    says(
        "cuCtxEnablePeerAccess(device=1, peer=0)",
        () -> DRIVER.devices().ctxEnablePeerAccess(1, 0));
    says(
        "cuCtxDisablePeerAccess(device=1, peer=0)",
        () -> DRIVER.devices().ctxDisablePeerAccess(1, 0));
    says("cuCtxSynchronize(device=1)", () -> DRIVER.devices().ctxSynchronize(1));
    says(
        "cuCtxGetStreamPriorityRange(device=1)",
        () -> DRIVER.devices().ctxGetStreamPriorityRange(1));
    says("cuCtxGetLimit(device=1, limit=2)", () -> DRIVER.devices().ctxGetLimit(1, 2));
    says("cuCtxSetLimit(device=1, limit=2, value=9)", () -> DRIVER.devices().ctxSetLimit(1, 2, 9));
    says("cuProfilerStart(device=1)", () -> DRIVER.devices().profilerStart(1));
    says("cuProfilerStop(device=1)", () -> DRIVER.devices().profilerStop(1));
    says("cuMemGetInfo(device=1)", () -> DRIVER.devices().memGetInfo(1));
  }

  @Test
  void callsOfMemory_areRefused_andSayWhatTheyAre() {
    says("cuMemAlloc(bytes=8, device=1)", () -> DRIVER.memory().memAlloc(1, 8));
    says("cuMemFree(address=0xab, device=1)", () -> DRIVER.memory().memFree(1, 0xab));
    says(
        "cuMemAllocManaged(bytes=8, flags=2, device=1)",
        () -> DRIVER.memory().memAllocManaged(1, 8, 2));
    says("cuMemHostAlloc(bytes=8, flags=3, device=1)", () -> DRIVER.memory().memHostAlloc(1, 8, 3));
    says("cuMemFreeHost(address=0xab, device=1)", () -> DRIVER.memory().memFreeHost(1, 0xab));
    says(
        "cuMemHostRegister(address=" + AT + ", bytes=3, flags=2, device=1)",
        () -> DRIVER.memory().memHostRegister(1, NATIVE, 2));
    says(
        "cuMemHostUnregister(address=0xab, device=1)",
        () -> DRIVER.memory().memHostUnregister(1, 0xab));
    says(
        "cuMemPrefetchAsync(address=0xab, bytes=8, location=2:3, stream=0x5)",
        () -> DRIVER.memory().memPrefetchAsync(1, 0xab, 8, 2, 3, 5));
    says(
        "cuMemAdvise(address=0xab, bytes=8, advice=4, location=2:3)",
        () -> DRIVER.memory().memAdvise(1, 0xab, 8, 4, 2, 3));
    says(
        "cuMemRangeGetAttribute(attribute=2, address=0xab, bytes=8)",
        () -> DRIVER.memory().memRangeGetAttribute(1, 2, 0xab, 8));
    says(
        "cuMemRangeGetAttribute(attribute=3, address=0xab, bytes=8, count=5)",
        () -> DRIVER.memory().memRangeGetAttributeList(1, 3, 0xab, 8, 5));
    says(
        "cuPointerGetAttribute(attribute=9, address=0xab)",
        () -> DRIVER.memory().pointerGetAttribute(1, 9, 0xab));
    says(
        "cuMemAllocAsync(bytes=8, stream=0x5, device=1)",
        () -> DRIVER.ordered().memAllocAsync(1, 8, 5));
    says(
        "cuMemAllocFromPoolAsync(bytes=8, pool=0x9, stream=0x5, device=1)",
        () -> DRIVER.ordered().memAllocFromPoolAsync(1, 8, 9, 5));
    says(
        "cuMemFreeAsync(address=0xab, stream=0x5, device=1)",
        () -> DRIVER.ordered().memFreeAsync(1, 0xab, 5));
  }

  @Test
  void callsOfPools_areRefused_andSayWhatTheyAre() {
    says("cuDeviceGetDefaultMemPool(device=1)", () -> DRIVER.pools().deviceGetDefaultMemPool(1));
    says("cuDeviceGetMemPool(device=1)", () -> DRIVER.pools().deviceGetMemPool(1));
    says("cuDeviceSetMemPool(device=1, pool=0x9)", () -> DRIVER.pools().deviceSetMemPool(1, 9));
    says(
        "cuMemGetDefaultMemPool(location=2:3, type=1)",
        () -> DRIVER.pools().memGetDefaultMemPool(2, 3, 1));
    says("cuMemGetMemPool(location=2:3, type=1)", () -> DRIVER.pools().memGetMemPool(2, 3, 1));
    says(
        "cuMemSetMemPool(location=2:3, type=1) with pool=0x9",
        () -> DRIVER.pools().memSetMemPool(2, 3, 1, 9));
    says(
        "cuMemPoolCreate(PoolProperties[allocationType=1, handleTypes=8, locationType=2,"
            + " locationId=3, maxBytes=64])",
        () -> DRIVER.pools().memPoolCreate(new PoolProperties(1, 8, 2, 3, 64)));
    says("cuMemPoolDestroy(pool=0x9)", () -> DRIVER.pools().memPoolDestroy(9));
    says("cuMemPoolTrimTo(pool=0x9, bytesToKeep=8)", () -> DRIVER.pools().memPoolTrimTo(9, 8));
    says(
        "cuMemPoolGetAttribute(pool=0x9, attribute=5)",
        () -> DRIVER.pools().memPoolGetAttribute(9, 5));
    says(
        "cuMemPoolSetAttribute(pool=0x9, attribute=4, value=7)",
        () -> DRIVER.pools().memPoolSetAttribute(9, 4, 7));
    says(
        "cuMemPoolGetAccess(pool=0x9, location=1:0)",
        () -> DRIVER.pools().memPoolGetAccess(9, 1, 0));
    says(
        "cuMemPoolSetAccess(pool=0x9, location type=2, ids=[1, 0], access=[3])",
        () -> DRIVER.pools().memPoolSetAccess(9, 2, new int[] {1, 0}, 3));
  }

  @Test
  void callsOfTransfers_areRefused_andSayWhatTheyAre() {
    says(
        "cuMemcpyAsync(target=0xab, source=0xcd, bytes=8, stream=0x5, device=1)",
        () -> DRIVER.transfers().memcpyAsync(1, 0xab, 0xcd, 8, 5));
    says(
        "cuMemcpyHtoDAsync(target=0xab, source=" + AT + ", bytes=3, stream=0x5, device=1)",
        () -> DRIVER.transfers().memcpyHtoDAsync(1, 0xab, NATIVE, 5));
    says(
        "cuMemcpyDtoHAsync(target=" + AT + ", source=0xab, bytes=3, stream=0x5, device=1)",
        () -> DRIVER.transfers().memcpyDtoHAsync(1, NATIVE, 0xab, 5));
    says(
        "cuMemcpyPeerAsync(target=0xab on device 2, source=0xcd on device 3, bytes=8, stream=0x5,"
            + " device=4)",
        () -> DRIVER.transfers().memcpyPeerAsync(4, 0xab, 2, 0xcd, 3, 8, 5));
    says(
        "cuMemcpy3DAsync(" + BOX + ", stream=0x5, device=1)",
        () -> DRIVER.transfers().memcpy3DAsync(1, BOX, 5));
    says(
        "cuMemcpyBatchAsync(count=2, stream=0x5, device=1)",
        () -> DRIVER.transfers().memcpyBatchAsync(1, TWO, TWO, TWO, 5));
    says(
        "cuMemsetD8Async(target=0xab, value=-1, count=8, stream=0x5)",
        () -> DRIVER.transfers().memsetD8Async(1, 0xab, (byte) -1, 8, 5));
    says(
        "cuMemsetD16Async(target=0xab, value=7, count=8, stream=0x5)",
        () -> DRIVER.transfers().memsetD16Async(1, 0xab, (short) 7, 8, 5));
    says(
        "cuMemsetD32Async(target=0xab, value=7, count=8, stream=0x5)",
        () -> DRIVER.transfers().memsetD32Async(1, 0xab, 7, 8, 5));
  }

  @Test
  void callsOfStreamsAndEvents_areRefused_andSayWhatTheyAre() {
    says(
        "cuStreamCreateWithPriority(flags=0, priority=-2, device=1)",
        () -> DRIVER.streams().streamCreateWithPriority(1, 0, -2));
    says("cuStreamDestroy(stream=0x5)", () -> DRIVER.streams().streamDestroy(1, 5));
    says("cuStreamGetPriority(stream=0x5)", () -> DRIVER.streams().streamGetPriority(1, 5));
    says("cuStreamGetFlags(stream=0x5)", () -> DRIVER.streams().streamGetFlags(1, 5));
    says("cuStreamGetId(stream=0x5)", () -> DRIVER.streams().streamGetId(1, 5));
    says("cuStreamGetDevice(stream=0x5)", () -> DRIVER.streams().streamGetDevice(1, 5));
    says("cuStreamQuery(stream=0x5)", () -> DRIVER.streams().streamQuery(1, 5));
    says("cuStreamSynchronize(stream=0x5)", () -> DRIVER.streams().streamSynchronize(1, 5));
    says(
        "cuStreamWaitEvent(stream=0x5, event=0x6)",
        () -> DRIVER.streams().streamWaitEvent(1, 5, 6));
    says("cuLaunchHostFunc(stream=0x5)", () -> DRIVER.streams().launchHostFunc(1, 5, () -> {}));
    says(
        "cuStreamWaitValue32(stream=0x5, address=0xab, value=7, flags=2)",
        () -> DRIVER.streams().streamWaitValue32(1, 5, 0xab, 7, 2));
    says("cuEventCreate(flags=2, device=1)", () -> DRIVER.events().eventCreate(1, 2));
    says("cuEventDestroy(event=0x6)", () -> DRIVER.events().eventDestroy(1, 6));
    says("cuEventRecord(event=0x6, stream=0x5)", () -> DRIVER.events().eventRecord(1, 6, 5));
    says("cuEventQuery(event=0x6)", () -> DRIVER.events().eventQuery(1, 6));
    says("cuEventSynchronize(event=0x6)", () -> DRIVER.events().eventSynchronize(1, 6));
    says("cuEventElapsedTime(start=0x6, end=0x7)", () -> DRIVER.events().eventElapsedTime(1, 6, 7));
    says(
        "cuStreamBeginCapture(stream=0x5, mode=2)",
        () -> DRIVER.captures().streamBeginCapture(1, 5, 2));
    says("cuStreamEndCapture(stream=0x5)", () -> DRIVER.captures().streamEndCapture(1, 5));
    says("cuStreamIsCapturing(stream=0x5)", () -> DRIVER.captures().streamIsCapturing(1, 5));
    says("cuStreamGetCaptureInfo(stream=0x5)", () -> DRIVER.captures().streamGetCaptureInfo(1, 5));
    says(
        "cuStreamBeginCaptureToGraph(stream=0x5, graph=0x8, dependencies=2, mode=2)",
        () -> DRIVER.captures().streamBeginCaptureToGraph(1, 5, 8, TWO, 2));
    says(
        "cuStreamGetCaptureInfo(stream=0x5)",
        () -> DRIVER.captures().streamGetCaptureDependencies(1, 5));
    says(
        "cuStreamUpdateCaptureDependencies(stream=0x5, dependencies=2)",
        () -> DRIVER.captures().streamUpdateCaptureDependencies(1, 5, TWO));
  }

  @Test
  void callsOfKernels_areRefused_andSayWhatTheyAre() {
    says("cuLibraryLoadData(bytes=3)", () -> DRIVER.kernels().libraryLoadData(new byte[3]));
    says("cuLibraryUnload(library=0x6)", () -> DRIVER.kernels().libraryUnload(6));
    says(
        "cuLibraryGetKernel(library=0x6, name=x%d)",
        () -> DRIVER.kernels().libraryGetKernel(6, "x%d"));
    says("cuLibraryGetKernelCount(library=0x6)", () -> DRIVER.kernels().libraryGetKernelCount(6));
    says(
        "cuLibraryEnumerateKernels(library=0x6, count=2)",
        () -> DRIVER.kernels().libraryEnumerateKernels(6, 2));
    says("cuKernelGetName(kernel=0x7)", () -> DRIVER.kernels().kernelGetName(7));
    says(
        "cuKernelGetParamInfo(kernel=0x7, index=2)",
        () -> DRIVER.kernels().kernelGetParamInfo(7, 2));
    says(
        "cuLaunchKernelEx(kernel=0x7, " + SHAPE + ", stream=0x5, device=1)",
        () -> DRIVER.kernels().launchKernel(1, 5, 7, SHAPE, ARGUMENTS));
    says(
        "cuKernelGetAttribute(attribute=2, kernel=0x7, device=1)",
        () -> DRIVER.kernels().kernelGetAttribute(2, 7, 1));
    says(
        "cuKernelSetAttribute(attribute=2, value=3, kernel=0x7, device=1)",
        () -> DRIVER.kernels().kernelSetAttribute(2, 3, 7, 1));
    says(
        "cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel=0x7, threads=32, shared=64, device=1)",
        () -> DRIVER.kernels().occupancyMaxActiveBlocksPerMultiprocessor(1, 7, 32, 64));
    says(
        "cuOccupancyMaxPotentialBlockSize(kernel=0x7, shared=64, limit=32, device=1)",
        () -> DRIVER.kernels().occupancyMaxPotentialBlockSize(1, 7, 64, 32));
    says(
        "cuOccupancyAvailableDynamicSMemPerBlock(kernel=0x7, blocks=2, threads=32, device=1)",
        () -> DRIVER.kernels().occupancyAvailableDynamicSMemPerBlock(1, 7, 2, 32));
    says(
        "cuOccupancyMaxActiveClusters(kernel=0x7, " + SHAPE + ", device=1)",
        () -> DRIVER.kernels().occupancyMaxActiveClusters(1, 7, SHAPE));
    says(
        "cuOccupancyMaxPotentialClusterSize(kernel=0x7, " + SHAPE + ", device=1)",
        () -> DRIVER.kernels().occupancyMaxPotentialClusterSize(1, 7, SHAPE));
  }

  @Test
  void callsOfGraphs_areRefused_andSayWhatTheyAre() {
    says("cuGraphCreate()", () -> DRIVER.graphs().graphCreate());
    says("cuGraphClone(graph=0x8)", () -> DRIVER.graphs().graphClone(8));
    says("cuGraphDestroy(graph=0x8)", () -> DRIVER.graphs().graphDestroy(8));
    says(
        "cuGraphAddEmptyNode(graph=0x8, dependencies=2, Empty[], device=1)",
        () -> DRIVER.graphs().graphAddNode(1, 8, TWO, EMPTY));
    says("cuGraphDestroyNode(node=0x7)", () -> DRIVER.graphs().graphDestroyNode(7));
    says("cuGraphNodeGetType(node=0x7)", () -> DRIVER.graphs().graphNodeGetType(7));
    says("cuGraphNodeGetParams(node=0x7)", () -> DRIVER.graphs().graphNodeGetParams(7));
    says(
        "cuGraphEmptyNodeSetParams(node=0x7, Empty[], device=1)",
        () -> DRIVER.graphs().graphNodeSetParams(1, 7, EMPTY));
    says(
        "cuGraphKernelNodeGetAttribute(node=0x7)",
        () -> DRIVER.graphs().graphKernelNodeGetPriority(7));
    says(
        "cuGraphKernelNodeSetAttribute(node=0x7, priority=-2)",
        () -> DRIVER.graphs().graphKernelNodeSetPriority(7, -2));
    says(
        "cuGraphNodeFindInClone(node=0x7, clone=0x8)",
        () -> DRIVER.graphs().graphNodeFindInClone(7, 8));
    says("cuGraphGetNodes(graph=0x8)", () -> DRIVER.graphs().graphGetNodes(8));
    says("cuGraphGetRootNodes(graph=0x8)", () -> DRIVER.graphs().graphGetRootNodes(8));
    says("cuGraphGetEdges(graph=0x8)", () -> DRIVER.graphs().graphGetEdges(8));
    says("cuGraphNodeGetDependencies(node=0x7)", () -> DRIVER.graphs().graphNodeGetDependencies(7));
    says(
        "cuGraphNodeGetDependentNodes(node=0x7)",
        () -> DRIVER.graphs().graphNodeGetDependentNodes(7));
    says(
        "cuGraphAddDependencies(graph=0x8, [])",
        () -> DRIVER.graphs().graphAddDependencies(8, List.of()));
    says(
        "cuGraphRemoveDependencies(graph=0x8, [])",
        () -> DRIVER.graphs().graphRemoveDependencies(8, List.of()));
    says(
        "cuGraphConditionalHandleCreate(graph=0x8, default=3, assigned=true, device=1)",
        () -> DRIVER.graphs().graphConditionalHandleCreate(1, 8, 3, true));
    says(
        "cuGraphDebugDotPrint(graph=0x8, flags=2)", () -> DRIVER.graphs().graphDebugDotPrint(8, 2));
  }

  /** The functions of CUDA have names of their own for each kind of node. */
  @Test
  void callsOfNodes_areNamedAsThoseOfTheirKind() {
    Map<String, GraphNodeParams> kinds = new LinkedHashMap<>();
    kinds.put("Kernel", new GraphNodeParams.Kernel(3, SHAPE, ARGUMENTS));
    kinds.put("Memcpy", new GraphNodeParams.Copy(1, 2, 3));
    kinds.put("Memset", new GraphNodeParams.Fill(1, 2, 4, 3));
    kinds.put("Host", new GraphNodeParams.Host(() -> {}));
    kinds.put("ChildGraph", new GraphNodeParams.Child(9));
    kinds.put("Empty", EMPTY);
    kinds.put("EventWait", new GraphNodeParams.EventWait(4));
    kinds.put("EventRecord", new GraphNodeParams.EventRecord(4));
    kinds.put("MemAlloc", new GraphNodeParams.Allocation(0, 8, List.of(), 0));
    kinds.put("MemFree", new GraphNodeParams.Free(4));
    kinds.put("", new GraphNodeParams.Conditional(5, GraphConditionType.IF, 1));
    kinds.forEach((kind, params) -> {
      says(
          "cuGraphAdd%sNode(graph=0x8, dependencies=2, %s, device=1)".formatted(kind, params),
          () -> DRIVER.graphs().graphAddNode(1, 8, TWO, params));
      says(
          "cuGraph%sNodeSetParams(node=0x7, %s, device=1)".formatted(kind, params),
          () -> DRIVER.graphs().graphNodeSetParams(1, 7, params));
      says(
          "cuGraphExec%sNodeSetParams(executable=0x6, node=0x7, %s, device=1)"
              .formatted(kind, params),
          () -> DRIVER.graphs().graphExecNodeSetParams(1, 6, 7, params));
    });
  }

  @Test
  void callsOfExecutables_areRefused_andSayWhatTheyAre() {
    says(
        "cuGraphInstantiateWithParams(graph=0x8, flags=2)",
        () -> DRIVER.graphs().graphInstantiateWithParams(1, 8, 2, 5));
    says("cuGraphExecGetFlags(executable=0x6)", () -> DRIVER.graphs().graphExecGetFlags(6));
    says(
        "cuGraphExecUpdate(executable=0x6, graph=0x8)",
        () -> DRIVER.graphs().graphExecUpdate(1, 6, 8));
    says(
        "cuGraphExecEmptyNodeSetParams(executable=0x6, node=0x7, Empty[], device=1)",
        () -> DRIVER.graphs().graphExecNodeSetParams(1, 6, 7, EMPTY));
    says(
        "cuGraphNodeSetEnabled(executable=0x6, node=0x7, enabled=true)",
        () -> DRIVER.graphs().graphNodeSetEnabled(6, 7, true));
    says(
        "cuGraphNodeGetEnabled(executable=0x6, node=0x7)",
        () -> DRIVER.graphs().graphNodeGetEnabled(6, 7));
    says("cuGraphUpload(executable=0x6, stream=0x5)", () -> DRIVER.graphs().graphUpload(1, 6, 5));
    says("cuGraphLaunch(executable=0x6, stream=0x5)", () -> DRIVER.graphs().graphLaunch(1, 6, 5));
    says("cuGraphExecDestroy(executable=0x6)", () -> DRIVER.graphs().graphExecDestroy(6));
    says(
        "cuDeviceGetGraphMemAttribute(device=1, USED_HIGH)",
        () -> DRIVER.graphs().deviceGetGraphMemAttribute(1, GraphMemAttribute.USED_HIGH));
    says(
        "cuDeviceSetGraphMemAttribute(device=1, USED_HIGH)",
        () -> DRIVER.graphs().deviceResetGraphMemAttribute(1, GraphMemAttribute.USED_HIGH));
    says("cuDeviceGraphMemTrim(device=1)", () -> DRIVER.graphs().deviceGraphMemTrim(1));
    says("cuUserObjectCreate()", () -> DRIVER.graphs().userObjectCreate());
    says("cuUserObjectRelease(object=0x9)", () -> DRIVER.graphs().userObjectRelease(9));
    says(
        "cuGraphRetainUserObject(graph=0x8, object=0x9)",
        () -> DRIVER.graphs().graphRetainUserObject(8, 9));
  }

  @Test
  void callsOfSharing_areRefused_andSayWhatTheyAre() {
    says(
        "cuMemPoolExportToShareableHandle(pool=0x9)",
        () -> DRIVER.sharing().memPoolExportToShareableHandle(9));
    says(
        "cuMemPoolImportFromShareableHandle(descriptor=-3)",
        () -> DRIVER.sharing().memPoolImportFromShareableHandle(-3));
    says("cuMemPoolExportPointer(address=0xab)", () -> DRIVER.sharing().memPoolExportPointer(0xab));
    says(
        "cuMemPoolImportPointer(pool=0x9, 64 bytes)",
        () -> DRIVER.sharing().memPoolImportPointer(9, HANDLE));
    says(
        "cuIpcGetMemHandle(address=0xab, device=1)",
        () -> DRIVER.sharing().ipcGetMemHandle(1, 0xab));
    says(
        "cuIpcOpenMemHandle(64 bytes, device=1)",
        () -> DRIVER.sharing().ipcOpenMemHandle(1, HANDLE));
    says(
        "cuIpcCloseMemHandle(address=0xab, device=1)",
        () -> DRIVER.sharing().ipcCloseMemHandle(1, 0xab));
    says("cuIpcGetEventHandle(event=0x6)", () -> DRIVER.sharing().ipcGetEventHandle(1, 6));
    says(
        "cuIpcOpenEventHandle(64 bytes, device=1)",
        () -> DRIVER.sharing().ipcOpenEventHandle(1, HANDLE));
  }

  @Test
  void callsOfVirtualMemory_areRefused_andSayWhatTheyAre() {
    says(
        "cuMemGetAllocationGranularity(AllocationProperties[handleTypes=0, locationType=1,"
            + " locationId=1], option=1)",
        () -> DRIVER.virtual().memGetAllocationGranularity(PAGES, 1));
    says(
        "cuMemAddressReserve(bytes=8, alignment=4, address=0xab)",
        () -> DRIVER.virtual().memAddressReserve(8, 4, 0xab));
    says("cuMemAddressFree(address=0xab, bytes=8)", () -> DRIVER.virtual().memAddressFree(0xab, 8));
    says(
        "cuMemCreate(bytes=8, AllocationProperties[handleTypes=0, locationType=1, locationId=1])",
        () -> DRIVER.virtual().memCreate(8, PAGES));
    says(
        "cuMemMap(address=0xab, bytes=8, offset=4, handle=0x9)",
        () -> DRIVER.virtual().memMap(0xab, 8, 4, 9));
    says("cuMemUnmap(address=0xab, bytes=8)", () -> DRIVER.virtual().memUnmap(0xab, 8));
    says(
        "cuMemSetAccess(address=0xab, bytes=8, location type=2, ids=[1, 0], access=[3])",
        () -> DRIVER.virtual().memSetAccess(0xab, 8, 2, new int[] {1, 0}, 3));
    says(
        "cuMemGetAccess(address=0xab, location=2:3)",
        () -> DRIVER.virtual().memGetAccess(0xab, 2, 3));
    says("cuMemRelease(handle=0x9)", () -> DRIVER.virtual().memRelease(9));
    says(
        "cuMemRetainAllocationHandle(address=0xab)",
        () -> DRIVER.virtual().memRetainAllocationHandle(0xab));
    says(
        "cuMemGetAllocationPropertiesFromHandle(handle=0x9)",
        () -> DRIVER.virtual().memGetAllocationPropertiesFromHandle(9));
    says(
        "cuMemExportToShareableHandle(handle=0x9)",
        () -> DRIVER.virtual().memExportToShareableHandle(9));
    says(
        "cuMemImportFromShareableHandle(descriptor=-3)",
        () -> DRIVER.virtual().memImportFromShareableHandle(-3));
  }

  @Test
  void callsOfMathAndNativeFunctions_areRefused_andSayWhatTheyAre() {
    says("cuBLAS version", () -> DRIVER.math().mathLibraryVersion(MathLibrary.CUBLAS));
    says("cuBLAS create(device=1)", () -> DRIVER.math().mathHandleCreate(MathLibrary.CUBLAS, 1));
    says(
        "cuBLAS destroy(handle=0x9, device=1)",
        () -> DRIVER.math().mathHandleDestroy(MathLibrary.CUBLAS, 1, 9));
    says(
        "cuBLAS setStream(handle=0x9, device=1) to stream 0x5",
        () -> DRIVER.math().mathHandleSetStream(MathLibrary.CUBLAS, 1, 9, 5));
    says(
        "cuBLAS setWorkspace(handle=0x9, device=1) to 0xab, 8 bytes",
        () -> DRIVER.math().mathHandleSetWorkspace(1, 9, 0xab, 8));
    MatrixProduct.Operand one = new MatrixProduct.Operand(false, 1, 0);
    MatrixProduct product = new MatrixProduct(MatrixType.FLOAT, 1, 1, 1, one, one, one, 1);
    says(
        "cuBLAS gemm(handle=0x9, device=1) of %s, c=0x5, a=0x6, b=0x7".formatted(product),
        () -> DRIVER.math().gemm(1, 9, product, 5, 6, 7));
    says(
        "callMalloc(function=0xab, parameter=0x8, bytes=5, device=1)",
        () -> DRIVER.natives().callMalloc(0xab, 8, 5, 1));
    says(
        "callFree(function=0xab, parameter=0xcd, address=0x8, device=1)",
        () -> DRIVER.natives().callFree(0xab, 0xcd, 8, 1));
  }
}
