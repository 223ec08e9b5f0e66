package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.instrument.ForwardingMemory;
import io.cuvette.instrument.internal.memory.Work;
import io.cuvette.instrument.internal.order.Clock;
import io.cuvette.instrument.internal.report.CallTrace;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** The part of the sanitizer that watches allocations. Thread-safe. */
public final class SanitizerMemory extends ForwardingMemory {
  /** CUdevice_attribute. */
  private static final int CONCURRENT_MANAGED_ACCESS = 89;

  private final CudaDriver driver;
  private final MemoryCalls calls;
  private final SanitizerCore core;

  public SanitizerMemory(CudaDriver driver, SanitizerCore core) {
    super(driver.memory());
    this.calls = driver.memory();
    this.driver = driver;
    this.core = core;
  }

  @Override
  public long memAlloc(int device, long bytes) {
    CallTrace site = CallTrace.of("memAlloc", "device", device, "bytes", bytes);
    long address = calls.memAlloc(device, bytes);
    core.check(_ -> core.memory.allocatedOnDevice(device, address, bytes, site));
    return address;
  }

  @Override
  public MemorySegment memAllocManaged(int device, long bytes, int flags) {
    CallTrace site = CallTrace.of("memAllocManaged", "device", device, "bytes", bytes);
    // Where devices and the host take turns, the host sees nonsense while work is queued.
    boolean atOnce = driver.devices().deviceGetAttribute(CONCURRENT_MANAGED_ACCESS, device) == 1;
    MemorySegment segment = calls.memAllocManaged(device, bytes, flags);
    core.check(_ -> {
      core.memory.allocatedOnHost(segment, "memFree", site);
      if (!atOnce) {
        core.memory.shared(segment.address());
      }
    });
    return segment;
  }

  @Override
  public MemorySegment memHostAlloc(int device, long bytes, int flags) {
    CallTrace site = CallTrace.of("memHostAlloc", "device", device, "bytes", bytes);
    MemorySegment segment = calls.memHostAlloc(device, bytes, flags);
    core.check(_ -> core.memory.allocatedPinned(segment, site));
    return segment;
  }

  @Override
  public void memFree(int device, long address) {
    CallTrace site = CallTrace.of("memFree", "device", device, "address", address);
    Clock work = core.locked(_ -> core.workAwaitedByFreeing(address));
    core.free("memFree", address, site, () -> calls.memFree(device, address));
    core.finish(work);
  }

  @Override
  public void memFreeHost(int device, long address) {
    CallTrace site = CallTrace.of("memFreeHost", "device", device, "address", address);
    core.free("memFreeHost", address, site, () -> calls.memFreeHost(device, address));
  }

  @Override
  public void memHostRegister(int device, MemorySegment memory, int flags) {
    CallTrace site = CallTrace.of("memHostRegister", "device", device, "bytes", memory.byteSize());
    calls.memHostRegister(device, memory, flags);
    core.check(_ -> core.memory.registered(memory, site));
  }

  @Override
  public void memHostUnregister(int device, long address) {
    CallTrace site = CallTrace.of("memHostUnregister", "device", device, "address", address);
    core.free("memHostUnregister", address, site, () -> calls.memHostUnregister(device, address));
  }

  @Override
  public MemorySegment hostView(int device, long address, long bytes, Arena arena) {
    core.checkLive("hostView", address, bytes);
    MemorySegment view = calls.hostView(device, address, bytes, arena);
    core.check(_ -> core.memory.viewed(view, address));
    return view;
  }

  @Override
  public void memAdvise(
      int device, long address, long bytes, int advice, int locationType, int locationId) {
    core.checkLive("memAdvise", address, bytes);
    calls.memAdvise(device, address, bytes, advice, locationType, locationId);
  }

  @Override
  public int memRangeGetAttribute(int device, int attribute, long address, long bytes) {
    core.checkLive("memRangeGetAttribute", address, bytes);
    return calls.memRangeGetAttribute(device, attribute, address, bytes);
  }

  @Override
  public void memPrefetchAsync(
      int device, long address, long bytes, int locationType, int locationId, long stream) {
    CallTrace site =
        CallTrace.often("memPrefetchAsync", "address", address, "bytes", bytes, "stream", stream);
    core.queue(
        new Work(site, device, stream).holds(address, bytes),
        () -> calls.memPrefetchAsync(device, address, bytes, locationType, locationId, stream));
  }

  @Override
  public long pointerGetAttribute(int device, int attribute, long address) {
    long answer = calls.pointerGetAttribute(device, attribute, address);
    if (attribute == PointerAttribute.MEMPOOL_HANDLE && answer != 0) {
      core.check(_ -> core.streams.named(answer, false));
    }
    return answer;
  }
}
