package io.cuvette.testkit.races;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** The operations of the library, and what is none. Stateless. */
final class Operations {
  /** Answers that are there already: nothing that could end is asked. */
  private static final Set<String> ANSWERS =
      Set.of(
          "AllocationHandle.isClosed()",
          "AllocationHandle.of(int)",
          "AllocationHandle.of(int, UUID)",
          "AllocationHandle.uuid()",
          "AsyncMemoryPool.freeBlocks()",
          "AsyncMemoryPool.isClosed()",
          "Buffer.address()",
          "Buffer.blockBytes()",
          "Buffer.byteSize()",
          "Buffer.device()",
          "Buffer.isClosed()",
          "Buffer.isHostAccessible()",
          "Buffer.isMapped()",
          "Buffer.parent()",
          "Buffer.stream()",
          "Cuda.currentAllocator()",
          "Cuda.currentDevice()",
          "Cuda.defaultMemoryPool()",
          "Cuda.defaultPinnedMemoryPool()",
          "Cuda.device(int)",
          "Cuda.deviceCount()",
          "Cuda.devices()",
          "Cuda.directPinned()",
          "Cuda.driver()",
          "Cuda.isClosed()",
          "Cuda.isSimulated()",
          "Cuda.pinnedAllocator()",
          "CudaDevice.cuda()",
          "CudaDevice.id()",
          "CudaDevice.profiler()",
          "GraphDefinition.after(GraphNode[])",
          "GraphCondition.definition()",
          "GraphCondition.handle()",
          "GraphDefinition.graph()",
          "GraphDefinition.isBody()",
          "GraphDefinition.of(CudaGraph)",
          "GraphDefinition.root()",
          "GraphDependency.from()",
          "GraphDependency.to()",
          "GrowableBuffer.byteSize()",
          "GrowableBuffer.maxBytes()",
          "GraphNode.definition()",
          "GraphNode.handle()",
          "GraphPlace.dependencies()",
          "CudaGraph.deviceId()",
          "CudaGraph.isClosed()",
          "CudaGraphExec.deviceId()",
          "CudaGraphExec.isClosed()",
          "CudaGraphExec.options()",
          "CudaKernel.module()",
          "CopyBatch.of(List, List)",
          "CopyBatch.size()",
          "HostRows.of(List)",
          "HostRows.of(byte[][])",
          "HostRows.of(char[][])",
          "HostRows.of(double[][])",
          "HostRows.of(float[][])",
          "HostRows.of(int[][])",
          "HostRows.of(long[][])",
          "HostRows.of(short[][])",
          "LaunchableKernel.name()",
          "CudaKernel.parameters()",
          "CudaModule.cuda()",
          "CudaModule.isClosed()",
          "CudaProfiler.initialize(String, String, ProfilerOutput)",
          "CudaEvent.device()",
          "CudaEvent.isClosed()",
          "CudaEvent.isRecorded()",
          "CudaEvent.options()",
          "CudaStream.device()",
          "CudaStream.isClosed()",
          "CudaStream.owner()",
          "GraphMemory.deviceId()",
          "GraphMemory.isClosed()",
          "KernelArguments.kernel()",
          "DeviceMemoryResource.deviceId()",
          "DeviceMemoryResource.isDeviceAccessible()",
          "DeviceMemoryResource.isHostAccessible()",
          "DriverPoolResource.deviceId()",
          "DriverPoolResource.isClosed()",
          "DriverPoolResource.isDeviceAccessible()",
          "DriverPoolResource.isHandleOwned()",
          "DriverPoolResource.isHostAccessible()",
          "DriverPoolResource.isIpcEnabled()",
          "DriverPoolResource.isMapped()",
          "DriverPoolResource.uuid()",
          "IpcChannel.isClosed()",
          "IpcChannel.connect(Path, Duration)",
          "IpcListener.isClosed()",
          "IpcListener.open(Path)",
          "IpcListener.path()",
          "ManagedBuffer.isHostAccessible()",
          "ManagedBuffer.parent()",
          "ManagedMemoryResource.deviceId()",
          "ManagedMemoryResource.isDeviceAccessible()",
          "ManagedMemoryResource.isHostAccessible()",
          "ManagedMemoryResource.isManaged()",
          "ManagedMemoryResource.preferredLocation()",
          "LibraryHandle.isClosed()",
          "LibraryHandle.library()",
          "ElasticMemoryPool.isClosed()",
          "ElasticMemoryPool.options()",
          "MemoryPool.isClosed()",
          "MemoryPool.options()",
          "MemoryResource.async()",
          "MemoryResource.direct()",
          "MemoryResource.managed()",
          "NativeFunctionResource.owner()",
          "PageHandles.descriptor()",
          "PageHandles.isClosed()",
          "PageHandles.pageBytes()",
          "PageHandles.pages()",
          "new NativeFunctionResource(MemorySegment, MemorySegment, MemorySegment, Object)",
          "PinnedBuffer.isHostAccessible()",
          "PinnedBuffer.parent()",
          "PinnedMemoryPool.isClosed()",
          "ForeignLoan.giveBack()",
          "ForeignLoan.isOver()",
          "ForeignLoan.of(Runnable)",
          "PinnedMemoryResource.deviceId()",
          "PinnedMemoryResource.isDeviceAccessible()",
          "PinnedMemoryResource.isHostAccessible()",
          "PinnedMemoryResource.numaId()");

  /** Values, and what users write or hand in. */
  private static final Set<String> OTHER_TYPES =
      Set.of(
          "AsyncPoolChoice",
          "BufferDescriptor",
          "CaptureBody",
          "CompilerOptions",
          "DeviceBuffer",
          "DebugPrintHook",
          "EventDescriptor",
          "LineProfileHook",
          "MemoryHook",
          "MemoryLimit",
          "MemoryLocation",
          "Nvtx",
          "NvtxDomain",
          "NvtxEvent",
          "NvtxRange",
          "NvtxString",
          "PressureListener",
          "StreamCallback",
          "StreamCallback.WithStatus");

  private Operations() {}

  static List<Operation> all() {
    List<Operation> all = new ArrayList<>();
    all.addAll(BufferOperations.all());
    all.addAll(ManagedOperations.all());
    all.addAll(GrowableOperations.all());
    all.addAll(ElasticOperations.all());
    all.addAll(StreamOperations.all());
    all.addAll(KernelOperations.all());
    all.addAll(GraphOperations.all());
    all.addAll(DefinitionOperations.all());
    all.addAll(PoolOperations.all());
    all.addAll(AsyncOperations.all());
    all.addAll(ResourceOperations.all());
    all.addAll(DeviceOperations.all());
    all.addAll(CudaOperations.all());
    all.addAll(SharingOperations.all());
    all.addAll(ChannelOperations.all());
    return all;
  }

  /** Whether a public method is none that something could end beside. */
  static boolean isNone(String method) {
    String name = method.replaceFirst("^new ", "");
    String type = name.substring(0, name.indexOf('('));
    int last = type.lastIndexOf('.');
    String owner = method.startsWith("new ") ? type : type.substring(0, last);
    return ANSWERS.contains(method)
        || OTHER_TYPES.contains(owner)
        || name.endsWith(".toString()")
        || name.endsWith(".hashCode()")
        || name.endsWith(".equals(Object)")
        || name.contains(".compareTo(");
  }
}
