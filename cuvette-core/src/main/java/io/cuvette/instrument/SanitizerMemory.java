package io.cuvette.instrument;

import io.cuvette.driver.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** The part of the sanitizer that watches memory, and the work that uses it. Thread-safe. */
final class SanitizerMemory {
  /** CUdevice_attribute. */
  private static final int CONCURRENT_MANAGED_ACCESS = 89;

  private final CudaDriver driver;
  private final SanitizerCore core;

  SanitizerMemory(CudaDriver driver, SanitizerCore core) {
    this.driver = driver;
    this.core = core;
  }

  public long memAlloc(int device, long bytes) {
    Site site = Site.of("memAlloc", "device", device, "bytes", bytes);
    long address = driver.memory().memAlloc(device, bytes);
    core.check(_ -> core.memory.allocatedOnDevice(address, bytes, site));
    return address;
  }

  public MemorySegment memAllocManaged(int device, long bytes, int flags) {
    Site site = Site.of("memAllocManaged", "device", device, "bytes", bytes);
    // Where devices and the host take turns, the host sees nonsense while work is queued.
    boolean atOnce = driver.devices().deviceGetAttribute(CONCURRENT_MANAGED_ACCESS, device) == 1;
    MemorySegment segment = driver.memory().memAllocManaged(device, bytes, flags);
    core.check(_ -> {
      if (atOnce) {
        core.memory.allocatedOnHost(segment, "memFree", site);
      } else {
        core.memory.allocated(segment.address(), bytes, "memFree", site);
      }
    });
    return segment;
  }

  public MemorySegment memHostAlloc(int device, long bytes, int flags) {
    Site site = Site.of("memHostAlloc", "device", device, "bytes", bytes);
    MemorySegment segment = driver.memory().memHostAlloc(device, bytes, flags);
    core.check(_ -> core.memory.allocatedOnHost(segment, "memFreeHost", site));
    return segment;
  }

  public void memFree(int device, long address) {
    Site site = Site.of("memFree", "device", device, "address", address);
    core.check(findings -> core.memory.checkFree(address, "memFree", site, findings));
    core.free(core.memory::free, address, site, () -> driver.memory().memFree(device, address));
  }

  public void memFreeHost(int device, long address) {
    Site site = Site.of("memFreeHost", "device", device, "address", address);
    core.check(findings -> core.memory.checkFree(address, "memFreeHost", site, findings));
    core.free(core.memory::free, address, site, () -> driver.memory().memFreeHost(device, address));
  }

  public long callMalloc(long function, long parameter, long bytes, int device) {
    Site site = Site.of("callMalloc", "function", function, "bytes", bytes, "device", device);
    long address = driver.natives().callMalloc(function, parameter, bytes, device);
    core.check(_ -> core.memory.allocatedNatively(address, bytes, site));
    return address;
  }

  public void callFree(long function, long parameter, long address, int device) {
    Site site = Site.of("callFree", "function", function, "address", address, "device", device);
    core.check(findings -> core.memory.checkFreeNatively(address, site, findings));
    core.free(
        core.memory::freeNatively,
        address,
        site,
        () -> driver.natives().callFree(function, parameter, address, device));
  }

  public MemorySegment hostView(int device, long address, long bytes, Arena arena) {
    core.checkLive(Site.passing("hostView", "address", address, "bytes", bytes), address, bytes);
    MemorySegment view = driver.memory().hostView(device, address, bytes, arena);
    core.check(_ -> core.memory.viewed(view, address));
    return view;
  }

  public void memAdvise(
      int device, long address, long bytes, int advice, int locationType, int locationId) {
    core.checkLive(Site.passing("memAdvise", "address", address, "bytes", bytes), address, bytes);
    driver.memory().memAdvise(device, address, bytes, advice, locationType, locationId);
  }

  public int memRangeGetAttribute(int device, int attribute, long address, long bytes) {
    core.checkLive(
        Site.passing("memRangeGetAttribute", "address", address, "bytes", bytes), address, bytes);
    return driver.memory().memRangeGetAttribute(device, attribute, address, bytes);
  }

  public void memcpyAsync(int device, long target, long source, long bytes, long stream) {
    Site site =
        Site.often(
            "memcpyAsync", "target", target, "source", source, "bytes", bytes, "stream", stream);
    core.queue(
        new Work(site, device, stream).reads(source, bytes).writes(target, bytes),
        () -> driver.transfers().memcpyAsync(device, target, source, bytes, stream));
  }

  public void memcpyHtoDAsync(int device, long target, MemorySegment source, long stream) {
    Site site = Site.often("memcpyHtoDAsync", "target", target, "source", source, "stream", stream);
    core.queue(
        new Work(site, device, stream).reads(source).writes(target, source.byteSize()),
        () -> driver.transfers().memcpyHtoDAsync(device, target, source, stream));
  }

  public void memcpyDtoHAsync(int device, MemorySegment target, long source, long stream) {
    Site site = Site.often("memcpyDtoHAsync", "target", target, "source", source, "stream", stream);
    core.queue(
        new Work(site, device, stream).reads(source, target.byteSize()).writes(target),
        () -> driver.transfers().memcpyDtoHAsync(device, target, source, stream));
  }

  public void memcpyPeerAsync(
      int streamDevice,
      long target,
      int targetDevice,
      long source,
      int sourceDevice,
      long bytes,
      long stream) {
    Site site =
        Site.often(
            "memcpyPeerAsync",
            "target",
            target,
            "source",
            source,
            "bytes",
            bytes,
            "stream",
            stream);
    core.queue(
        new Work(site, streamDevice, stream).reads(source, bytes).writes(target, bytes),
        () ->
            driver
                .transfers()
                .memcpyPeerAsync(
                    streamDevice, target, targetDevice, source, sourceDevice, bytes, stream));
  }

  public void memsetD8Async(int device, long target, byte value, long count, long stream) {
    core.queue(
        fill("memsetD8Async", device, target, count, stream),
        () -> driver.transfers().memsetD8Async(device, target, value, count, stream));
  }

  public void memsetD16Async(int device, long target, short value, long count, long stream) {
    core.queue(
        fill("memsetD16Async", device, target, count * Short.BYTES, stream),
        () -> driver.transfers().memsetD16Async(device, target, value, count, stream));
  }

  public void memsetD32Async(int device, long target, int value, long count, long stream) {
    core.queue(
        fill("memsetD32Async", device, target, count * Integer.BYTES, stream),
        () -> driver.transfers().memsetD32Async(device, target, value, count, stream));
  }

  public void memPrefetchAsync(
      int device, long address, long bytes, int locationType, int locationId, long stream) {
    Site site =
        Site.often("memPrefetchAsync", "address", address, "bytes", bytes, "stream", stream);
    core.queue(
        new Work(site, device, stream).holds(address, bytes),
        () ->
            driver
                .memory()
                .memPrefetchAsync(device, address, bytes, locationType, locationId, stream));
  }

  private static Work fill(String method, int device, long target, long bytes, long stream) {
    Site site = Site.often(method, "target", target, "bytes", bytes, "stream", stream);
    return new Work(site, device, stream).writes(target, bytes);
  }
}
