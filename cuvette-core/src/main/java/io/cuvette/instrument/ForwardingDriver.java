package io.cuvette.instrument;

import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.PoolProperties;
import io.cuvette.driver.PriorityRange;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.OptionalInt;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * A driver that forwards every call to another one; a decorator overrides what it changes.
 * Thread-safe if the other driver is.
 */
public abstract class ForwardingDriver extends ForwardingCaptures {

  /** Forwards to a driver, which {@link #close} closes. */
  protected ForwardingDriver(CudaDriver delegate) {
    super(delegate);
  }

  /** The driver that calls are forwarded to. */
  public final CudaDriver delegate() {
    return delegate;
  }

  @Override
  public String name() {
    return delegate.name();
  }

  @Override
  public boolean isSimulated() {
    return delegate.isSimulated();
  }

  @Override
  public @Nullable BlockListener blockListener() {
    return delegate.blockListener();
  }

  @Override
  public void close() {
    delegate.close();
  }

  @Override
  public String toString() {
    return name();
  }

  @Override
  public int driverGetVersion() {
    return delegate.devices().driverGetVersion();
  }

  @Override
  public OptionalInt runtimeGetVersion() {
    return delegate.devices().runtimeGetVersion();
  }

  @Override
  public int deviceGetCount() {
    return delegate.devices().deviceGetCount();
  }

  @Override
  public String deviceGetName(int device) {
    return delegate.devices().deviceGetName(device);
  }

  @Override
  public UUID deviceGetUuid(int device) {
    return delegate.devices().deviceGetUuid(device);
  }

  @Override
  public long deviceTotalMem(int device) {
    return delegate.devices().deviceTotalMem(device);
  }

  @Override
  public int deviceGetAttribute(int attribute, int device) {
    return delegate.devices().deviceGetAttribute(attribute, device);
  }

  @Override
  public String deviceGetPciBusId(int device) {
    return delegate.devices().deviceGetPciBusId(device);
  }

  @Override
  public int deviceGetByPciBusId(String pciBusId) {
    return delegate.devices().deviceGetByPciBusId(pciBusId);
  }

  @Override
  public boolean deviceCanAccessPeer(int device, int peer) {
    return delegate.devices().deviceCanAccessPeer(device, peer);
  }

  @Override
  public void ctxEnablePeerAccess(int device, int peer) {
    delegate.devices().ctxEnablePeerAccess(device, peer);
  }

  @Override
  public void ctxDisablePeerAccess(int device, int peer) {
    delegate.devices().ctxDisablePeerAccess(device, peer);
  }

  @Override
  public void ctxSynchronize(int device) {
    delegate.devices().ctxSynchronize(device);
  }

  @Override
  public PriorityRange ctxGetStreamPriorityRange(int device) {
    return delegate.devices().ctxGetStreamPriorityRange(device);
  }

  @Override
  public long ctxGetLimit(int device, int limit) {
    return delegate.devices().ctxGetLimit(device, limit);
  }

  @Override
  public void ctxSetLimit(int device, int limit, long value) {
    delegate.devices().ctxSetLimit(device, limit, value);
  }

  @Override
  public MemoryInfo memGetInfo(int device) {
    return delegate.devices().memGetInfo(device);
  }

  @Override
  public long memAlloc(int device, long bytes) {
    return delegate.memory().memAlloc(device, bytes);
  }

  @Override
  public void memFree(int device, long address) {
    delegate.memory().memFree(device, address);
  }

  @Override
  public MemorySegment memAllocManaged(int device, long bytes, int flags) {
    return delegate.memory().memAllocManaged(device, bytes, flags);
  }

  @Override
  public MemorySegment memHostAlloc(int device, long bytes, int flags) {
    return delegate.memory().memHostAlloc(device, bytes, flags);
  }

  @Override
  public void memFreeHost(int device, long address) {
    delegate.memory().memFreeHost(device, address);
  }

  @Override
  public MemorySegment hostView(int device, long address, long bytes, Arena arena) {
    return delegate.memory().hostView(device, address, bytes, arena);
  }

  @Override
  public void memcpyAsync(int device, long target, long source, long bytes, long stream) {
    delegate.transfers().memcpyAsync(device, target, source, bytes, stream);
  }

  @Override
  public void memcpyHtoDAsync(int device, long target, MemorySegment source, long stream) {
    delegate.transfers().memcpyHtoDAsync(device, target, source, stream);
  }

  @Override
  public void memcpyDtoHAsync(int device, MemorySegment target, long source, long stream) {
    delegate.transfers().memcpyDtoHAsync(device, target, source, stream);
  }

  @Override
  public void memcpyPeerAsync(
      int streamDevice,
      long target,
      int targetDevice,
      long source,
      int sourceDevice,
      long bytes,
      long stream) {
    delegate
        .transfers()
        .memcpyPeerAsync(streamDevice, target, targetDevice, source, sourceDevice, bytes, stream);
  }

  @Override
  public void memsetD8Async(int device, long target, byte value, long count, long stream) {
    delegate.transfers().memsetD8Async(device, target, value, count, stream);
  }

  @Override
  public void memsetD16Async(int device, long target, short value, long count, long stream) {
    delegate.transfers().memsetD16Async(device, target, value, count, stream);
  }

  @Override
  public void memsetD32Async(int device, long target, int value, long count, long stream) {
    delegate.transfers().memsetD32Async(device, target, value, count, stream);
  }

  @Override
  public void memPrefetchAsync(
      int device, long address, long bytes, int locationType, int locationId, long stream) {
    delegate.memory().memPrefetchAsync(device, address, bytes, locationType, locationId, stream);
  }

  @Override
  public void memAdvise(
      int device, long address, long bytes, int advice, int locationType, int locationId) {
    delegate.memory().memAdvise(device, address, bytes, advice, locationType, locationId);
  }

  @Override
  public int memRangeGetAttribute(int device, int attribute, long address, long bytes) {
    return delegate.memory().memRangeGetAttribute(device, attribute, address, bytes);
  }

  @Override
  public int[] memRangeGetAttributeList(
      int device, int attribute, long address, long bytes, int count) {
    return delegate.memory().memRangeGetAttributeList(device, attribute, address, bytes, count);
  }

  @Override
  public long pointerGetAttribute(int device, int attribute, long address) {
    return delegate.memory().pointerGetAttribute(device, attribute, address);
  }

  @Override
  public long deviceGetDefaultMemPool(int device) {
    return delegate.pools().deviceGetDefaultMemPool(device);
  }

  @Override
  public long deviceGetMemPool(int device) {
    return delegate.pools().deviceGetMemPool(device);
  }

  @Override
  public void deviceSetMemPool(int device, long pool) {
    delegate.pools().deviceSetMemPool(device, pool);
  }

  @Override
  public long memGetDefaultMemPool(int locationType, int locationId, int allocationType) {
    return delegate.pools().memGetDefaultMemPool(locationType, locationId, allocationType);
  }

  @Override
  public long memGetMemPool(int locationType, int locationId, int allocationType) {
    return delegate.pools().memGetMemPool(locationType, locationId, allocationType);
  }

  @Override
  public void memSetMemPool(int locationType, int locationId, int allocationType, long pool) {
    delegate.pools().memSetMemPool(locationType, locationId, allocationType, pool);
  }

  @Override
  public long memPoolCreate(PoolProperties properties) {
    return delegate.pools().memPoolCreate(properties);
  }

  @Override
  public void memPoolDestroy(long pool) {
    delegate.pools().memPoolDestroy(pool);
  }

  @Override
  public void memPoolTrimTo(long pool, long bytesToKeep) {
    delegate.pools().memPoolTrimTo(pool, bytesToKeep);
  }

  @Override
  public long memPoolGetAttribute(long pool, int attribute) {
    return delegate.pools().memPoolGetAttribute(pool, attribute);
  }

  @Override
  public void memPoolSetAttribute(long pool, int attribute, long value) {
    delegate.pools().memPoolSetAttribute(pool, attribute, value);
  }

  @Override
  public int memPoolGetAccess(long pool, int locationType, int locationId) {
    return delegate.pools().memPoolGetAccess(pool, locationType, locationId);
  }

  @Override
  public void memPoolSetAccess(long pool, int locationType, int[] locationIds, int... access) {
    delegate.pools().memPoolSetAccess(pool, locationType, locationIds, access);
  }

  @Override
  public long memAllocAsync(int device, long bytes, long stream) {
    return delegate.ordered().memAllocAsync(device, bytes, stream);
  }

  @Override
  public long memAllocFromPoolAsync(int device, long bytes, long pool, long stream) {
    return delegate.ordered().memAllocFromPoolAsync(device, bytes, pool, stream);
  }

  @Override
  public void memFreeAsync(int device, long address, long stream) {
    delegate.ordered().memFreeAsync(device, address, stream);
  }

  @Override
  public long streamCreateWithPriority(int device, int flags, int priority) {
    return delegate.streams().streamCreateWithPriority(device, flags, priority);
  }

  @Override
  public void streamDestroy(int device, long stream) {
    delegate.streams().streamDestroy(device, stream);
  }

  @Override
  public int streamGetPriority(int device, long stream) {
    return delegate.streams().streamGetPriority(device, stream);
  }

  @Override
  public int streamGetFlags(int device, long stream) {
    return delegate.streams().streamGetFlags(device, stream);
  }

  @Override
  public long streamGetId(int device, long stream) {
    return delegate.streams().streamGetId(device, stream);
  }

  @Override
  public int streamGetDevice(int device, long stream) {
    return delegate.streams().streamGetDevice(device, stream);
  }

  @Override
  public boolean streamQuery(int device, long stream) {
    return delegate.streams().streamQuery(device, stream);
  }

  @Override
  public void streamSynchronize(int device, long stream) {
    delegate.streams().streamSynchronize(device, stream);
  }

  @Override
  public void streamWaitEvent(int device, long stream, long event) {
    delegate.streams().streamWaitEvent(device, stream, event);
  }

  @Override
  public void launchHostFunc(int device, long stream, Runnable function) {
    delegate.streams().launchHostFunc(device, stream, function);
  }

  @Override
  public void streamWaitValue32(int device, long stream, long address, int value, int flags) {
    delegate.streams().streamWaitValue32(device, stream, address, value, flags);
  }

  @Override
  public long eventCreate(int device, int flags) {
    return delegate.events().eventCreate(device, flags);
  }

  @Override
  public void eventDestroy(int device, long event) {
    delegate.events().eventDestroy(device, event);
  }

  @Override
  public void eventRecord(int device, long event, long stream) {
    delegate.events().eventRecord(device, event, stream);
  }

  @Override
  public boolean eventQuery(int device, long event) {
    return delegate.events().eventQuery(device, event);
  }

  @Override
  public void eventSynchronize(int device, long event) {
    delegate.events().eventSynchronize(device, event);
  }

  @Override
  public float eventElapsedTime(int device, long start, long end) {
    return delegate.events().eventElapsedTime(device, start, end);
  }

  @Override
  public int memPoolExportToShareableHandle(long pool) {
    return delegate.sharing().memPoolExportToShareableHandle(pool);
  }

  @Override
  public long memPoolImportFromShareableHandle(int descriptor) {
    return delegate.sharing().memPoolImportFromShareableHandle(descriptor);
  }

  @Override
  public byte[] memPoolExportPointer(long address) {
    return delegate.sharing().memPoolExportPointer(address);
  }

  @Override
  public long memPoolImportPointer(long pool, byte[] handle) {
    return delegate.sharing().memPoolImportPointer(pool, handle);
  }

  @Override
  public byte[] ipcGetMemHandle(int device, long address) {
    return delegate.sharing().ipcGetMemHandle(device, address);
  }

  @Override
  public long ipcOpenMemHandle(int device, byte[] handle) {
    return delegate.sharing().ipcOpenMemHandle(device, handle);
  }

  @Override
  public void ipcCloseMemHandle(int device, long address) {
    delegate.sharing().ipcCloseMemHandle(device, address);
  }

  @Override
  public byte[] ipcGetEventHandle(int device, long event) {
    return delegate.sharing().ipcGetEventHandle(device, event);
  }

  @Override
  public long ipcOpenEventHandle(int device, byte[] handle) {
    return delegate.sharing().ipcOpenEventHandle(device, handle);
  }

  @Override
  public long callMalloc(long function, long parameter, long bytes, int device) {
    return delegate.natives().callMalloc(function, parameter, bytes, device);
  }

  @Override
  public void callFree(long function, long parameter, long address, int device) {
    delegate.natives().callFree(function, parameter, address, device);
  }
}
