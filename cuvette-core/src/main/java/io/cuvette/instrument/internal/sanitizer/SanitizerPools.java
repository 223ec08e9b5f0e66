package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.instrument.internal.report.CallTrace;

/** The part of the sanitizer that watches the driver's pools. Thread-safe. */
public final class SanitizerPools implements PoolCalls {
  private final PoolCalls calls;
  private final SanitizerCore core;

  public SanitizerPools(CudaDriver driver, SanitizerCore core) {
    this.calls = driver.pools();
    this.core = core;
  }

  @Override
  public long deviceGetDefaultMemPool(int device) {
    return named(calls.deviceGetDefaultMemPool(device), true);
  }

  @Override
  public long deviceGetMemPool(int device) {
    return named(calls.deviceGetMemPool(device), true);
  }

  @Override
  public void deviceSetMemPool(int device, long pool) {
    use("deviceSetMemPool", pool);
    calls.deviceSetMemPool(device, pool);
  }

  @Override
  public long memGetDefaultMemPool(int locationType, int locationId, int allocationType) {
    return named(
        calls.memGetDefaultMemPool(locationType, locationId, allocationType),
        isOnDevice(locationType, allocationType));
  }

  @Override
  public long memGetMemPool(int locationType, int locationId, int allocationType) {
    return named(
        calls.memGetMemPool(locationType, locationId, allocationType),
        isOnDevice(locationType, allocationType));
  }

  @Override
  public void memSetMemPool(int locationType, int locationId, int allocationType, long pool) {
    use("memSetMemPool", pool);
    calls.memSetMemPool(locationType, locationId, allocationType, pool);
  }

  @Override
  public long memPoolCreate(PoolProperties properties) {
    CallTrace site = CallTrace.of("memPoolCreate", "properties", properties);
    long pool = calls.memPoolCreate(properties);
    boolean onDevice = isOnDevice(properties.locationType(), properties.allocationType());
    core.check(_ -> core.streams.pools.add(pool, onDevice, site));
    return pool;
  }

  @Override
  public void memPoolDestroy(long pool) {
    CallTrace site = CallTrace.of("memPoolDestroy", "pool", pool);
    core.destroy(core.streams.pools, pool, site, () -> calls.memPoolDestroy(pool));
  }

  @Override
  public void memPoolTrimTo(long pool, long bytesToKeep) {
    use("memPoolTrimTo", pool);
    calls.memPoolTrimTo(pool, bytesToKeep);
  }

  @Override
  public long memPoolGetAttribute(long pool, int attribute) {
    use("memPoolGetAttribute", pool);
    return calls.memPoolGetAttribute(pool, attribute);
  }

  @Override
  public void memPoolSetAttribute(long pool, int attribute, long value) {
    use("memPoolSetAttribute", pool);
    calls.memPoolSetAttribute(pool, attribute, value);
  }

  @Override
  public int memPoolGetAccess(long pool, int locationType, int locationId) {
    use("memPoolGetAccess", pool);
    return calls.memPoolGetAccess(pool, locationType, locationId);
  }

  @Override
  public void memPoolSetAccess(long pool, int locationType, int[] locationIds, int... access) {
    use("memPoolSetAccess", pool);
    calls.memPoolSetAccess(pool, locationType, locationIds, access);
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
    CallTrace site = CallTrace.passing(method, "pool", pool);
    core.check(findings -> core.streams.pool(pool, site, findings));
  }
}
