package io.cuvette.instrument;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.driver.PoolProperties;
import org.jspecify.annotations.Nullable;

/**
 * The part of the sanitizer that watches the driver's pools and memory in stream order.
 * Thread-safe.
 */
final class SanitizerPools {

  private final CudaDriver driver;
  private final SanitizerCore core;

  SanitizerPools(CudaDriver driver, SanitizerCore core) {
    this.driver = driver;
    this.core = core;
  }

  private long named(long pool, boolean onDevice) {
    core.check(_ -> core.streams.named(pool, onDevice));
    return pool;
  }

  /** Whether a pool's memory is of a device, and not managed. */
  private static boolean isOnDevice(int locationType, int allocationType) {
    return locationType == MemLocationType.DEVICE && allocationType == MemAllocationType.PINNED;
  }

  private void use(String method, long pool) {
    Site site = Site.passing(method, "pool", pool);
    core.check(findings -> core.streams.pool(pool, site, findings));
  }

  public long deviceGetDefaultMemPool(int device) {
    return named(driver.pools().deviceGetDefaultMemPool(device), true);
  }

  public long deviceGetMemPool(int device) {
    return named(driver.pools().deviceGetMemPool(device), true);
  }

  public void deviceSetMemPool(int device, long pool) {
    use("deviceSetMemPool", pool);
    driver.pools().deviceSetMemPool(device, pool);
  }

  public long memGetDefaultMemPool(int locationType, int locationId, int allocationType) {
    return named(
        driver.pools().memGetDefaultMemPool(locationType, locationId, allocationType),
        isOnDevice(locationType, allocationType));
  }

  public long memGetMemPool(int locationType, int locationId, int allocationType) {
    return named(
        driver.pools().memGetMemPool(locationType, locationId, allocationType),
        isOnDevice(locationType, allocationType));
  }

  public void memSetMemPool(int locationType, int locationId, int allocationType, long pool) {
    use("memSetMemPool", pool);
    driver.pools().memSetMemPool(locationType, locationId, allocationType, pool);
  }

  public long pointerGetAttribute(int device, int attribute, long address) {
    long answer = driver.memory().pointerGetAttribute(device, attribute, address);
    return attribute == PointerAttribute.MEMPOOL_HANDLE && answer != 0
        ? named(answer, false)
        : answer;
  }

  public long memPoolCreate(PoolProperties properties) {
    Site site = Site.of("memPoolCreate", "properties", properties);
    long pool = driver.pools().memPoolCreate(properties);
    boolean onDevice = isOnDevice(properties.locationType(), properties.allocationType());
    core.check(_ -> core.streams.pools.add(pool, onDevice, site));
    return pool;
  }

  public void memPoolDestroy(long pool) {
    Site site = Site.of("memPoolDestroy", "pool", pool);
    core.destroy(core.streams.pools, pool, site, () -> driver.pools().memPoolDestroy(pool));
  }

  public void memPoolTrimTo(long pool, long bytesToKeep) {
    use("memPoolTrimTo", pool);
    driver.pools().memPoolTrimTo(pool, bytesToKeep);
  }

  public long memPoolGetAttribute(long pool, int attribute) {
    use("memPoolGetAttribute", pool);
    return driver.pools().memPoolGetAttribute(pool, attribute);
  }

  public void memPoolSetAttribute(long pool, int attribute, long value) {
    use("memPoolSetAttribute", pool);
    driver.pools().memPoolSetAttribute(pool, attribute, value);
  }

  public int memPoolGetAccess(long pool, int locationType, int locationId) {
    use("memPoolGetAccess", pool);
    return driver.pools().memPoolGetAccess(pool, locationType, locationId);
  }

  public void memPoolSetAccess(long pool, int locationType, int[] locationIds, int... access) {
    use("memPoolSetAccess", pool);
    driver.pools().memPoolSetAccess(pool, locationType, locationIds, access);
  }

  public long memAllocAsync(int device, long bytes, long stream) {
    Site site = Site.of("memAllocAsync", "device", device, "bytes", bytes, "stream", stream);
    Lane lane = lane(device, stream, site);
    return allocated(
        driver.ordered().memAllocAsync(device, bytes, stream), bytes, lane, true, site);
  }

  public long memAllocFromPoolAsync(int device, long bytes, long pool, long stream) {
    Site site =
        Site.of(
            "memAllocFromPoolAsync",
            "device",
            device,
            "bytes",
            bytes,
            "pool",
            pool,
            "stream",
            stream);
    boolean onDevice = core.locked(findings -> core.streams.pool(pool, site, findings));
    Lane lane = lane(device, stream, site);
    long address = driver.ordered().memAllocFromPoolAsync(device, bytes, pool, stream);
    return allocated(address, bytes, lane, onDevice, site);
  }

  /** The stream of a call, with all that comes before its next work. */
  private @Nullable Lane lane(int device, long stream, Site site) {
    return core.locked(findings -> {
      Lane lane = core.streams.lane(device, stream, site, findings);
      if (lane != null) {
        core.streams.order.join(lane);
      }
      return lane;
    });
  }

  private long allocated(
      long address, long bytes, @Nullable Lane lane, boolean onDevice, Site site) {
    core.check(_ -> core.memory.allocatedInOrder(address, bytes, lane, onDevice, site));
    return address;
  }

  public void memFreeAsync(int device, long address, long stream) {
    Site site = Site.of("memFreeAsync", "device", device, "address", address, "stream", stream);
    Lane lane = lane(device, stream, site);
    if (lane != null) {
      core.check(findings -> core.memory.checkFreeInOrder(address, lane, site, findings));
    }
    core.free(
        core.memory::free,
        address,
        site,
        () -> driver.ordered().memFreeAsync(device, address, stream));
  }
}
