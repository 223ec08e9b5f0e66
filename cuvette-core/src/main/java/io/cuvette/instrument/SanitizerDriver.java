package io.cuvette.instrument;

import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.PoolProperties;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * A driver that watches how memory, streams and events are used and reports mistakes: see {@link
 * Misuse}. Thread-safe; reports are made by the thread that makes the mistake, with no lock held.
 *
 * <p>A call is checked before it is forwarded, so a consumer that throws keeps the mistake from the
 * driver; a consumer that returns lets it through. What is right is judged by what the program has
 * made sure of, not by what happened to be finished: work of two streams is ordered by events,
 * waits, synchronisation and the rules of the default stream alone. A query that answered "done" is
 * a synchronisation. The work of a capture is checked for live memory and handles but not for
 * order, since it does not run.
 *
 * <p>Memory of the host that a copy reads must be the same when the copy is known to be done as
 * when it was queued; a program that knows it without the driver, from what later work wrote, asks
 * first. Copies of this library on the host must not meet work that uses the same bytes.
 *
 * <p>The pools of this library report their blocks: a block is freed when its buffer is closed, and
 * its content is undefined when it is lent again. Bytes of device memory must be written before
 * they are copied to the host; {@link io.cuvette.Buffer#recordUse} says that work which is not seen
 * may write them.
 *
 * <p>Not seen: what kernels and graphs use, and what else the host does with memory it can see.
 *
 * <p>Memory that another pool gives out of a larger block looks live to the driver at all times; a
 * pool that calls {@link #blockAllocated} and {@link #blockFreed} has its blocks checked too.
 */
public final class SanitizerDriver extends ForwardingDriver {
  private final SanitizerCore core;
  private final SanitizerMemory memory;
  private final SanitizerStreams streams;
  private final SanitizerPools pools;
  private final SanitizerIpc sharing;
  private final LentBlocks lent;

  private SanitizerDriver(CudaDriver target, SanitizerCore core) {
    super(target);
    this.core = core;
    this.memory = new SanitizerMemory(target, core);
    this.streams = new SanitizerStreams(target, core);
    this.pools = new SanitizerPools(target, core);
    this.sharing = new SanitizerIpc(target, core);
    this.lent = new LentBlocks(core);
  }

  /**
   * Throws a {@link SanitizerException} for each mistake.
   *
   * @param ignored what is no mistake in this program, such as {@link Misuse#UNKNOWN_HANDLE} where
   *     streams come from another library
   */
  public static SanitizerDriver throwing(CudaDriver target, Misuse... ignored) {
    Objects.requireNonNull(target, "target");
    Objects.requireNonNull(ignored, "ignored");
    return reporting(
        target,
        report -> {
          throw new SanitizerException(report);
        },
        ignored);
  }

  /** Tells a consumer about each mistake, and goes on if it returns. */
  public static SanitizerDriver reporting(
      CudaDriver target, Consumer<? super SanitizerReport> consumer, Misuse... ignored) {
    Objects.requireNonNull(target, "target");
    Objects.requireNonNull(ignored, "ignored");
    return new SanitizerDriver(target, new SanitizerCore(consumer, ignored));
  }

  /** The memory and handles that were made and not freed until now, with where they were made. */
  public List<SanitizerReport> leaks() {
    return core.leaks();
  }

  @Override
  public BlockListener blockListener() {
    return lent;
  }

  /** {@code sanitizer(NAME)}. */
  @Override
  public String name() {
    return "sanitizer(" + delegate().name() + ")";
  }

  /** Reports leaks, and closes the other driver in any case. */
  @Override
  public void close() {
    try {
      core.close();
    } finally {
      super.close();
    }
  }

  /**
   * Says that a pool gave out a part of a block it allocated. From the first part on, the block may
   * be used through its live parts alone.
   */
  public void blockAllocated(long address, long bytes) {
    Site site = Site.of("blockAllocated", "address", address, "bytes", bytes);
    core.check(findings -> core.memory.parts.partAllocated(address, bytes, site, findings));
  }

  /**
   * Says that a pool took a part back, to be used next in order of a stream: other streams' work
   * with it must come before.
   */
  public void blockFreed(int device, long address, long stream) {
    Site site = Site.of("blockFreed", "device", device, "address", address, "stream", stream);
    core.check(findings -> {
      Lane lane = core.streams.lane(device, stream, site, findings);
      if (lane != null) {
        core.streams.order.join(lane);
        core.memory.parts.partFreed(address, lane, site, findings);
      }
    });
  }

  @Override
  public long memAlloc(int device, long bytes) {
    return memory.memAlloc(device, bytes);
  }

  @Override
  public MemorySegment memAllocManaged(int device, long bytes, int flags) {
    return memory.memAllocManaged(device, bytes, flags);
  }

  @Override
  public MemorySegment memHostAlloc(int device, long bytes, int flags) {
    return memory.memHostAlloc(device, bytes, flags);
  }

  @Override
  public void memFree(int device, long address) {
    memory.memFree(device, address);
  }

  @Override
  public void memFreeHost(int device, long address) {
    memory.memFreeHost(device, address);
  }

  @Override
  public long callMalloc(long function, long parameter, long bytes, int device) {
    return memory.callMalloc(function, parameter, bytes, device);
  }

  @Override
  public void callFree(long function, long parameter, long address, int device) {
    memory.callFree(function, parameter, address, device);
  }

  @Override
  public MemorySegment hostView(int device, long address, long bytes, Arena arena) {
    return memory.hostView(device, address, bytes, arena);
  }

  @Override
  public void memAdvise(
      int device, long address, long bytes, int advice, int locationType, int locationId) {
    memory.memAdvise(device, address, bytes, advice, locationType, locationId);
  }

  @Override
  public int memRangeGetAttribute(int device, int attribute, long address, long bytes) {
    return memory.memRangeGetAttribute(device, attribute, address, bytes);
  }

  @Override
  public void memcpyAsync(int device, long target, long source, long bytes, long stream) {
    memory.memcpyAsync(device, target, source, bytes, stream);
  }

  @Override
  public void memcpyHtoDAsync(int device, long target, MemorySegment source, long stream) {
    memory.memcpyHtoDAsync(device, target, source, stream);
  }

  @Override
  public void memcpyDtoHAsync(int device, MemorySegment target, long source, long stream) {
    memory.memcpyDtoHAsync(device, target, source, stream);
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
    memory.memcpyPeerAsync(streamDevice, target, targetDevice, source, sourceDevice, bytes, stream);
  }

  @Override
  public void memsetD8Async(int device, long target, byte value, long count, long stream) {
    memory.memsetD8Async(device, target, value, count, stream);
  }

  @Override
  public void memsetD16Async(int device, long target, short value, long count, long stream) {
    memory.memsetD16Async(device, target, value, count, stream);
  }

  @Override
  public void memsetD32Async(int device, long target, int value, long count, long stream) {
    memory.memsetD32Async(device, target, value, count, stream);
  }

  @Override
  public void memPrefetchAsync(
      int device, long address, long bytes, int locationType, int locationId, long stream) {
    memory.memPrefetchAsync(device, address, bytes, locationType, locationId, stream);
  }

  @Override
  public long streamCreateWithPriority(int device, int flags, int priority) {
    return streams.streamCreateWithPriority(device, flags, priority);
  }

  @Override
  public void streamDestroy(int device, long stream) {
    streams.streamDestroy(device, stream);
  }

  @Override
  public int streamGetPriority(int device, long stream) {
    return streams.streamGetPriority(device, stream);
  }

  @Override
  public int streamGetFlags(int device, long stream) {
    return streams.streamGetFlags(device, stream);
  }

  @Override
  public long streamGetId(int device, long stream) {
    return streams.streamGetId(device, stream);
  }

  @Override
  public int streamGetDevice(int device, long stream) {
    return streams.streamGetDevice(device, stream);
  }

  @Override
  public boolean streamQuery(int device, long stream) {
    return streams.streamQuery(device, stream);
  }

  @Override
  public void streamSynchronize(int device, long stream) {
    streams.streamSynchronize(device, stream);
  }

  @Override
  public void streamWaitEvent(int device, long stream, long event) {
    streams.streamWaitEvent(device, stream, event);
  }

  @Override
  public void ctxSynchronize(int device) {
    streams.ctxSynchronize(device);
  }

  @Override
  public void launchHostFunc(int device, long stream, Runnable function) {
    streams.launchHostFunc(device, stream, function);
  }

  @Override
  public void streamWaitValue32(int device, long stream, long address, int value, int flags) {
    streams.streamWaitValue32(device, stream, address, value, flags);
  }

  @Override
  public long eventCreate(int device, int flags) {
    return streams.eventCreate(device, flags);
  }

  @Override
  public void eventDestroy(int device, long event) {
    streams.eventDestroy(device, event);
  }

  @Override
  public void eventRecord(int device, long event, long stream) {
    streams.eventRecord(device, event, stream);
  }

  @Override
  public boolean eventQuery(int device, long event) {
    return streams.eventQuery(device, event);
  }

  @Override
  public void eventSynchronize(int device, long event) {
    streams.eventSynchronize(device, event);
  }

  @Override
  public float eventElapsedTime(int device, long start, long end) {
    return streams.eventElapsedTime(device, start, end);
  }

  @Override
  public void streamBeginCapture(int device, long stream, int mode) {
    streams.streamBeginCapture(device, stream, mode);
  }

  @Override
  public long streamEndCapture(int device, long stream) {
    return streams.streamEndCapture(device, stream);
  }

  @Override
  public int streamIsCapturing(int device, long stream) {
    return streams.streamIsCapturing(device, stream);
  }

  @Override
  public void graphLaunch(int device, long executable, long stream) {
    streams.graphLaunch(device, executable, stream);
  }

  @Override
  public void graphDestroy(long graph) {
    streams.graphDestroy(graph);
  }

  @Override
  public long deviceGetDefaultMemPool(int device) {
    return pools.deviceGetDefaultMemPool(device);
  }

  @Override
  public long deviceGetMemPool(int device) {
    return pools.deviceGetMemPool(device);
  }

  @Override
  public void deviceSetMemPool(int device, long pool) {
    pools.deviceSetMemPool(device, pool);
  }

  @Override
  public long memGetDefaultMemPool(int locationType, int locationId, int allocationType) {
    return pools.memGetDefaultMemPool(locationType, locationId, allocationType);
  }

  @Override
  public long memGetMemPool(int locationType, int locationId, int allocationType) {
    return pools.memGetMemPool(locationType, locationId, allocationType);
  }

  @Override
  public void memSetMemPool(int locationType, int locationId, int allocationType, long pool) {
    pools.memSetMemPool(locationType, locationId, allocationType, pool);
  }

  @Override
  public long pointerGetAttribute(int device, int attribute, long address) {
    return pools.pointerGetAttribute(device, attribute, address);
  }

  @Override
  public long memPoolCreate(PoolProperties properties) {
    return pools.memPoolCreate(properties);
  }

  @Override
  public void memPoolDestroy(long pool) {
    pools.memPoolDestroy(pool);
  }

  @Override
  public void memPoolTrimTo(long pool, long bytesToKeep) {
    pools.memPoolTrimTo(pool, bytesToKeep);
  }

  @Override
  public long memPoolGetAttribute(long pool, int attribute) {
    return pools.memPoolGetAttribute(pool, attribute);
  }

  @Override
  public void memPoolSetAttribute(long pool, int attribute, long value) {
    pools.memPoolSetAttribute(pool, attribute, value);
  }

  @Override
  public int memPoolGetAccess(long pool, int locationType, int locationId) {
    return pools.memPoolGetAccess(pool, locationType, locationId);
  }

  @Override
  public void memPoolSetAccess(long pool, int locationType, int[] locationIds, int... access) {
    pools.memPoolSetAccess(pool, locationType, locationIds, access);
  }

  @Override
  public long memAllocAsync(int device, long bytes, long stream) {
    return pools.memAllocAsync(device, bytes, stream);
  }

  @Override
  public long memAllocFromPoolAsync(int device, long bytes, long pool, long stream) {
    return pools.memAllocFromPoolAsync(device, bytes, pool, stream);
  }

  @Override
  public void memFreeAsync(int device, long address, long stream) {
    pools.memFreeAsync(device, address, stream);
  }

  @Override
  public int memPoolExportToShareableHandle(long pool) {
    return sharing.memPoolExportToShareableHandle(pool);
  }

  @Override
  public long memPoolImportFromShareableHandle(int descriptor) {
    return sharing.memPoolImportFromShareableHandle(descriptor);
  }

  @Override
  public byte[] memPoolExportPointer(long address) {
    return sharing.memPoolExportPointer(address);
  }

  @Override
  public long memPoolImportPointer(long pool, byte[] handle) {
    return sharing.memPoolImportPointer(pool, handle);
  }

  @Override
  public byte[] ipcGetMemHandle(int device, long address) {
    return sharing.ipcGetMemHandle(device, address);
  }

  @Override
  public long ipcOpenMemHandle(int device, byte[] handle) {
    return sharing.ipcOpenMemHandle(device, handle);
  }

  @Override
  public void ipcCloseMemHandle(int device, long address) {
    sharing.ipcCloseMemHandle(device, address);
  }

  @Override
  public byte[] ipcGetEventHandle(int device, long event) {
    return sharing.ipcGetEventHandle(device, event);
  }

  @Override
  public long ipcOpenEventHandle(int device, byte[] handle) {
    return sharing.ipcOpenEventHandle(device, handle);
  }
}
