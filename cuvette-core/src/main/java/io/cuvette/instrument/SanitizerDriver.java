package io.cuvette.instrument;

import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaDriver;
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
public final class SanitizerDriver extends SanitizerIpc {
  /** CUdevice_attribute. */
  private static final int CONCURRENT_MANAGED_ACCESS = 89;

  private final LentBlocks lent;

  private SanitizerDriver(CudaDriver target, SanitizerCore core) {
    super(target, core);
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
    Site site = Site.of("memAlloc", "device", device, "bytes", bytes);
    long address = super.memAlloc(device, bytes);
    core.check(_ -> core.memory.allocatedOnDevice(address, bytes, site));
    return address;
  }

  @Override
  public MemorySegment memAllocManaged(int device, long bytes, int flags) {
    Site site = Site.of("memAllocManaged", "device", device, "bytes", bytes);
    // Where devices and the host take turns, the host sees nonsense while work is queued.
    boolean atOnce = super.deviceGetAttribute(CONCURRENT_MANAGED_ACCESS, device) == 1;
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
  public long callMalloc(long function, long parameter, long bytes, int device) {
    Site site = Site.of("callMalloc", "function", function, "bytes", bytes, "device", device);
    long address = super.callMalloc(function, parameter, bytes, device);
    core.check(_ -> core.memory.allocatedNatively(address, bytes, site));
    return address;
  }

  @Override
  public void callFree(long function, long parameter, long address, int device) {
    Site site = Site.of("callFree", "function", function, "address", address, "device", device);
    core.check(findings -> core.memory.checkFreeNatively(address, site, findings));
    core.free(
        core.memory::freeNatively,
        address,
        site,
        () -> super.callFree(function, parameter, address, device));
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
  public void memcpyAsync(int device, long target, long source, long bytes, long stream) {
    Site site =
        Site.often(
            "memcpyAsync", "target", target, "source", source, "bytes", bytes, "stream", stream);
    core.queue(
        new Work(site, device, stream).reads(source, bytes).writes(target, bytes),
        () -> super.memcpyAsync(device, target, source, bytes, stream));
  }

  @Override
  public void memcpyHtoDAsync(int device, long target, MemorySegment source, long stream) {
    Site site = Site.often("memcpyHtoDAsync", "target", target, "source", source, "stream", stream);
    core.queue(
        new Work(site, device, stream).reads(source).writes(target, source.byteSize()),
        () -> super.memcpyHtoDAsync(device, target, source, stream));
  }

  @Override
  public void memcpyDtoHAsync(int device, MemorySegment target, long source, long stream) {
    Site site = Site.often("memcpyDtoHAsync", "target", target, "source", source, "stream", stream);
    core.queue(
        new Work(site, device, stream).reads(source, target.byteSize()).writes(target),
        () -> super.memcpyDtoHAsync(device, target, source, stream));
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
            super.memcpyPeerAsync(
                streamDevice, target, targetDevice, source, sourceDevice, bytes, stream));
  }

  @Override
  public void memsetD8Async(int device, long target, byte value, long count, long stream) {
    core.queue(
        fill("memsetD8Async", device, target, count, stream),
        () -> super.memsetD8Async(device, target, value, count, stream));
  }

  @Override
  public void memsetD16Async(int device, long target, short value, long count, long stream) {
    core.queue(
        fill("memsetD16Async", device, target, count * Short.BYTES, stream),
        () -> super.memsetD16Async(device, target, value, count, stream));
  }

  @Override
  public void memsetD32Async(int device, long target, int value, long count, long stream) {
    core.queue(
        fill("memsetD32Async", device, target, count * Integer.BYTES, stream),
        () -> super.memsetD32Async(device, target, value, count, stream));
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

  private static Work fill(String method, int device, long target, long bytes, long stream) {
    Site site = Site.often(method, "target", target, "bytes", bytes, "stream", stream);
    return new Work(site, device, stream).writes(target, bytes);
  }
}
