package io.cuvette.sim;

import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.PoolProperties;
import io.cuvette.driver.PriorityRange;
import io.cuvette.driver.UserObject;
import io.cuvette.sim.internal.allocation.SimIpcCalls;
import io.cuvette.sim.internal.allocation.SimMemoryCalls;
import io.cuvette.sim.internal.allocation.SimOrderedCalls;
import io.cuvette.sim.internal.allocation.SimPoolCalls;
import io.cuvette.sim.internal.calls.SimCaptureCalls;
import io.cuvette.sim.internal.calls.SimDeviceCalls;
import io.cuvette.sim.internal.calls.SimEventCalls;
import io.cuvette.sim.internal.calls.SimStreamCalls;
import io.cuvette.sim.internal.calls.SimTransferCalls;
import io.cuvette.sim.internal.machine.SimMachine;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.OptionalInt;
import java.util.UUID;

/** Passes each call on to its part; what parts share is the machine. Thread-safe. */
abstract class SimCalls implements CudaDriver {
  final SimMachine machine;
  private final SimDeviceCalls devices;
  private final SimMemoryCalls memory;
  private final SimTransferCalls transfers;
  private final SimPoolCalls pools;
  private final SimOrderedCalls ordered;
  final SimEventCalls events;
  private final SimStreamCalls streams;
  final SimCaptureCalls captures;
  private final SimIpcCalls sharing;

  SimCalls(SimMachine machine) {
    this.machine = machine;
    this.devices = new SimDeviceCalls(machine);
    this.memory = new SimMemoryCalls(machine);
    this.transfers = new SimTransferCalls(machine);
    this.pools = new SimPoolCalls(machine);
    this.ordered = new SimOrderedCalls(machine);
    this.events = new SimEventCalls(machine);
    this.streams = new SimStreamCalls(machine, events);
    this.captures = new SimCaptureCalls(machine);
    this.sharing = new SimIpcCalls(machine, events);
  }

  @Override
  public final int driverGetVersion() {
    return devices.driverGetVersion();
  }

  @Override
  public final OptionalInt runtimeGetVersion() {
    return devices.runtimeGetVersion();
  }

  @Override
  public final int deviceGetCount() {
    return devices.deviceGetCount();
  }

  @Override
  public final String deviceGetName(int device) {
    return devices.deviceGetName(device);
  }

  @Override
  public final UUID deviceGetUuid(int device) {
    return devices.deviceGetUuid(device);
  }

  @Override
  public final long deviceTotalMem(int device) {
    return devices.deviceTotalMem(device);
  }

  @Override
  public final int deviceGetAttribute(int attribute, int device) {
    return devices.deviceGetAttribute(attribute, device);
  }

  @Override
  public final String deviceGetPciBusId(int device) {
    return devices.deviceGetPciBusId(device);
  }

  @Override
  public final int deviceGetByPciBusId(String pciBusId) {
    return devices.deviceGetByPciBusId(pciBusId);
  }

  @Override
  public final boolean deviceCanAccessPeer(int device, int peer) {
    return devices.deviceCanAccessPeer(device, peer);
  }

  @Override
  public final void ctxEnablePeerAccess(int device, int peer) {
    devices.ctxEnablePeerAccess(device, peer);
  }

  @Override
  public final void ctxDisablePeerAccess(int device, int peer) {
    devices.ctxDisablePeerAccess(device, peer);
  }

  @Override
  public final void ctxSynchronize(int device) {
    devices.ctxSynchronize(device);
  }

  @Override
  public final PriorityRange ctxGetStreamPriorityRange(int device) {
    return devices.ctxGetStreamPriorityRange(device);
  }

  @Override
  public final long ctxGetLimit(int device, int limit) {
    return devices.ctxGetLimit(device, limit);
  }

  @Override
  public final void ctxSetLimit(int device, int limit, long value) {
    devices.ctxSetLimit(device, limit, value);
  }

  @Override
  public final MemoryInfo memGetInfo(int device) {
    return devices.memGetInfo(device);
  }

  @Override
  public final long memAlloc(int device, long bytes) {
    return memory.memAlloc(device, bytes);
  }

  @Override
  public final void memFree(int device, long address) {
    memory.memFree(device, address);
  }

  @Override
  public final MemorySegment memAllocManaged(int device, long bytes, int flags) {
    return memory.memAllocManaged(device, bytes, flags);
  }

  @Override
  public final MemorySegment memHostAlloc(int device, long bytes, int flags) {
    return memory.memHostAlloc(device, bytes, flags);
  }

  @Override
  public final void memFreeHost(int device, long address) {
    memory.memFreeHost(device, address);
  }

  @Override
  public final MemorySegment hostView(int device, long address, long bytes, Arena arena) {
    return memory.hostView(device, address, bytes, arena);
  }

  @Override
  public final void memcpyAsync(int device, long target, long source, long bytes, long stream) {
    transfers.memcpyAsync(device, target, source, bytes, stream);
  }

  @Override
  public final void memcpyHtoDAsync(int device, long target, MemorySegment source, long stream) {
    transfers.memcpyHtoDAsync(device, target, source, stream);
  }

  @Override
  public final void memcpyDtoHAsync(int device, MemorySegment target, long source, long stream) {
    transfers.memcpyDtoHAsync(device, target, source, stream);
  }

  @Override
  public final void memcpyPeerAsync(
      int device,
      long target,
      int targetDevice,
      long source,
      int sourceDevice,
      long bytes,
      long stream) {
    transfers.memcpyPeerAsync(device, target, targetDevice, source, sourceDevice, bytes, stream);
  }

  @Override
  public final void memsetD8Async(int device, long target, byte value, long count, long stream) {
    transfers.memsetD8Async(device, target, value, count, stream);
  }

  @Override
  public final void memsetD16Async(int device, long target, short value, long count, long stream) {
    transfers.memsetD16Async(device, target, value, count, stream);
  }

  @Override
  public final void memsetD32Async(int device, long target, int value, long count, long stream) {
    transfers.memsetD32Async(device, target, value, count, stream);
  }

  @Override
  public final void memPrefetchAsync(
      int device, long address, long bytes, int locationType, int locationId, long stream) {
    memory.memPrefetchAsync(device, address, bytes, locationType, locationId, stream);
  }

  @Override
  public final void memAdvise(
      int device, long address, long bytes, int advice, int locationType, int locationId) {
    memory.memAdvise(device, address, bytes, advice, locationType, locationId);
  }

  @Override
  public final int memRangeGetAttribute(int device, int attribute, long address, long bytes) {
    return memory.memRangeGetAttribute(device, attribute, address, bytes);
  }

  @Override
  public final int[] memRangeGetAttributeList(
      int device, int attribute, long address, long bytes, int count) {
    return memory.memRangeGetAttributeList(device, attribute, address, bytes, count);
  }

  @Override
  public final long pointerGetAttribute(int device, int attribute, long address) {
    return memory.pointerGetAttribute(device, attribute, address);
  }

  @Override
  public final long deviceGetDefaultMemPool(int device) {
    return pools.deviceGetDefaultMemPool(device);
  }

  @Override
  public final long deviceGetMemPool(int device) {
    return pools.deviceGetMemPool(device);
  }

  @Override
  public final void deviceSetMemPool(int device, long pool) {
    pools.deviceSetMemPool(device, pool);
  }

  @Override
  public final long memGetDefaultMemPool(int locationType, int locationId, int allocationType) {
    return pools.memGetDefaultMemPool(locationType, locationId, allocationType);
  }

  @Override
  public final long memGetMemPool(int locationType, int locationId, int allocationType) {
    return pools.memGetMemPool(locationType, locationId, allocationType);
  }

  @Override
  public final void memSetMemPool(int locationType, int locationId, int allocationType, long pool) {
    pools.memSetMemPool(locationType, locationId, allocationType, pool);
  }

  @Override
  public final long memPoolCreate(PoolProperties properties) {
    return pools.memPoolCreate(properties);
  }

  @Override
  public final void memPoolDestroy(long pool) {
    pools.memPoolDestroy(pool);
  }

  @Override
  public final void memPoolTrimTo(long pool, long bytesToKeep) {
    pools.memPoolTrimTo(pool, bytesToKeep);
  }

  @Override
  public final long memPoolGetAttribute(long pool, int attribute) {
    return pools.memPoolGetAttribute(pool, attribute);
  }

  @Override
  public final void memPoolSetAttribute(long pool, int attribute, long value) {
    pools.memPoolSetAttribute(pool, attribute, value);
  }

  @Override
  public final int memPoolGetAccess(long pool, int locationType, int locationId) {
    return pools.memPoolGetAccess(pool, locationType, locationId);
  }

  @Override
  public final void memPoolSetAccess(
      long pool, int locationType, int[] locationIds, int... access) {
    pools.memPoolSetAccess(pool, locationType, locationIds, access);
  }

  @Override
  public final long memAllocAsync(int device, long bytes, long stream) {
    return ordered.memAllocAsync(device, bytes, stream);
  }

  @Override
  public final long memAllocFromPoolAsync(int device, long bytes, long pool, long stream) {
    return ordered.memAllocFromPoolAsync(device, bytes, pool, stream);
  }

  @Override
  public final void memFreeAsync(int device, long address, long stream) {
    ordered.memFreeAsync(device, address, stream);
  }

  @Override
  public final long streamCreateWithPriority(int device, int flags, int priority) {
    return streams.streamCreateWithPriority(device, flags, priority);
  }

  @Override
  public final void streamDestroy(int device, long stream) {
    streams.streamDestroy(device, stream);
  }

  @Override
  public final int streamGetPriority(int device, long stream) {
    return streams.streamGetPriority(device, stream);
  }

  @Override
  public final int streamGetFlags(int device, long stream) {
    return streams.streamGetFlags(device, stream);
  }

  @Override
  public final long streamGetId(int device, long stream) {
    return streams.streamGetId(device, stream);
  }

  @Override
  public final int streamGetDevice(int device, long stream) {
    return streams.streamGetDevice(device, stream);
  }

  @Override
  public final boolean streamQuery(int device, long stream) {
    return streams.streamQuery(device, stream);
  }

  @Override
  public final void streamSynchronize(int device, long stream) {
    streams.streamSynchronize(device, stream);
  }

  @Override
  public final void streamWaitEvent(int device, long stream, long event) {
    streams.streamWaitEvent(device, stream, event);
  }

  @Override
  public final void launchHostFunc(int device, long stream, Runnable function) {
    streams.launchHostFunc(device, stream, function);
  }

  @Override
  public final void streamWaitValue32(int device, long stream, long address, int value, int flags) {
    streams.streamWaitValue32(device, stream, address, value, flags);
  }

  @Override
  public final long eventCreate(int device, int flags) {
    return events.eventCreate(device, flags);
  }

  @Override
  public final void eventDestroy(int device, long event) {
    events.eventDestroy(device, event);
  }

  @Override
  public final void eventRecord(int device, long event, long stream) {
    events.eventRecord(device, event, stream);
  }

  @Override
  public final boolean eventQuery(int device, long event) {
    return events.eventQuery(device, event);
  }

  @Override
  public final void eventSynchronize(int device, long event) {
    events.eventSynchronize(device, event);
  }

  @Override
  public final float eventElapsedTime(int device, long start, long end) {
    return events.eventElapsedTime(device, start, end);
  }

  @Override
  public final void streamBeginCapture(int device, long stream, int mode) {
    captures.streamBeginCapture(device, stream, mode);
  }

  @Override
  public final long streamEndCapture(int device, long stream) {
    return captures.streamEndCapture(device, stream);
  }

  @Override
  public final int streamIsCapturing(int device, long stream) {
    return captures.streamIsCapturing(device, stream);
  }

  @Override
  public final CaptureInfo streamGetCaptureInfo(int device, long stream) {
    return captures.streamGetCaptureInfo(device, stream);
  }

  @Override
  public final UserObject userObjectCreate() {
    return captures.userObjectCreate();
  }

  @Override
  public final void userObjectRelease(long object) {
    captures.userObjectRelease(object);
  }

  @Override
  public final void graphRetainUserObject(long graph, long object) {
    captures.graphRetainUserObject(graph, object);
  }

  @Override
  public final long graphInstantiate(int device, long graph) {
    return captures.graphInstantiate(device, graph);
  }

  @Override
  public final void graphLaunch(int device, long executable, long stream) {
    captures.graphLaunch(device, executable, stream);
  }

  @Override
  public final void graphExecDestroy(long executable) {
    captures.graphExecDestroy(executable);
  }

  @Override
  public final void graphDestroy(long graph) {
    captures.graphDestroy(graph);
  }

  @Override
  public final int memPoolExportToShareableHandle(long pool) {
    return sharing.memPoolExportToShareableHandle(pool);
  }

  @Override
  public final long memPoolImportFromShareableHandle(int descriptor) {
    return sharing.memPoolImportFromShareableHandle(descriptor);
  }

  @Override
  public final byte[] memPoolExportPointer(long address) {
    return sharing.memPoolExportPointer(address);
  }

  @Override
  public final long memPoolImportPointer(long pool, byte[] handle) {
    return sharing.memPoolImportPointer(pool, handle);
  }

  @Override
  public final byte[] ipcGetMemHandle(int device, long address) {
    return sharing.ipcGetMemHandle(device, address);
  }

  @Override
  public final long ipcOpenMemHandle(int device, byte[] handle) {
    return sharing.ipcOpenMemHandle(device, handle);
  }

  @Override
  public final void ipcCloseMemHandle(int device, long address) {
    sharing.ipcCloseMemHandle(device, address);
  }

  @Override
  public final byte[] ipcGetEventHandle(int device, long event) {
    return sharing.ipcGetEventHandle(device, event);
  }

  @Override
  public final long ipcOpenEventHandle(int device, byte[] handle) {
    return sharing.ipcOpenEventHandle(device, handle);
  }
}
