package io.cuvette.instrument;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.PointerAttribute;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** The part of the sanitizer that watches allocations. Thread-safe. */
final class SanitizerMemory extends ForwardingMemory {
  /** CUdevice_attribute. */
  private static final int CONCURRENT_MANAGED_ACCESS = 89;

  private final CudaDriver driver;
  private final SanitizerCore core;

  SanitizerMemory(CudaDriver driver, SanitizerCore core) {
    super(driver.memory());
    this.driver = driver;
    this.core = core;
  }

  @Override
  public long memAlloc(int device, long bytes) {
    Site site = Site.of("memAlloc", "device", device, "bytes", bytes);
    long address = super.memAlloc(device, bytes);
    core.check(_ -> core.memory.allocatedOnDevice(address, bytes, site));
    return address;
  }

  @Override
  public MemorySegment memAllocManaged(int device, long bytes, int flags) {
    Site site = Site.of("memAllocManaged", "device", device, "bytes", bytes);
    // Where devices and the host take turns, the host sees nonsense while work is queued.
    boolean atOnce = driver.devices().deviceGetAttribute(CONCURRENT_MANAGED_ACCESS, device) == 1;
    MemorySegment segment = super.memAllocManaged(device, bytes, flags);
    core.check(_ -> {
      if (atOnce) {
        core.memory.allocatedOnHost(segment, "memFree", site);
      } else {
        core.memory.allocated(segment.address(), bytes, "memFree", site);
      }
    });
    return segment;
  }

  @Override
  public MemorySegment memHostAlloc(int device, long bytes, int flags) {
    Site site = Site.of("memHostAlloc", "device", device, "bytes", bytes);
    MemorySegment segment = super.memHostAlloc(device, bytes, flags);
    core.check(_ -> core.memory.allocatedOnHost(segment, "memFreeHost", site));
    return segment;
  }

  @Override
  public void memFree(int device, long address) {
    Site site = Site.of("memFree", "device", device, "address", address);
    core.check(findings -> core.memory.checkFree(address, "memFree", site, findings));
    core.free(core.memory::free, address, site, () -> super.memFree(device, address));
  }

  @Override
  public void memFreeHost(int device, long address) {
    Site site = Site.of("memFreeHost", "device", device, "address", address);
    core.check(findings -> core.memory.checkFree(address, "memFreeHost", site, findings));
    core.free(core.memory::free, address, site, () -> super.memFreeHost(device, address));
  }

  @Override
  public MemorySegment hostView(int device, long address, long bytes, Arena arena) {
    core.checkLive(Site.passing("hostView", "address", address, "bytes", bytes), address, bytes);
    MemorySegment view = super.hostView(device, address, bytes, arena);
    core.check(_ -> core.memory.viewed(view, address));
    return view;
  }

  @Override
  public void memAdvise(
      int device, long address, long bytes, int advice, int locationType, int locationId) {
    core.checkLive(Site.passing("memAdvise", "address", address, "bytes", bytes), address, bytes);
    super.memAdvise(device, address, bytes, advice, locationType, locationId);
  }

  @Override
  public int memRangeGetAttribute(int device, int attribute, long address, long bytes) {
    core.checkLive(
        Site.passing("memRangeGetAttribute", "address", address, "bytes", bytes), address, bytes);
    return super.memRangeGetAttribute(device, attribute, address, bytes);
  }

  @Override
  public void memPrefetchAsync(
      int device, long address, long bytes, int locationType, int locationId, long stream) {
    Site site =
        Site.often("memPrefetchAsync", "address", address, "bytes", bytes, "stream", stream);
    core.queue(
        new Work(site, device, stream).holds(address, bytes),
        () -> super.memPrefetchAsync(device, address, bytes, locationType, locationId, stream));
  }

  @Override
  public long pointerGetAttribute(int device, int attribute, long address) {
    long answer = super.pointerGetAttribute(device, attribute, address);
    if (attribute == PointerAttribute.MEMPOOL_HANDLE && answer != 0) {
      core.check(_ -> core.streams.named(answer, false));
    }
    return answer;
  }
}
