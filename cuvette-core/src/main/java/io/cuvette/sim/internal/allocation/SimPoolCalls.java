package io.cuvette.sim.internal.allocation;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.machine.SimCosts;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.pool.SimPool;
import io.cuvette.sim.internal.share.PoolKind;
import java.util.Arrays;

/** The calls about memory pools, without those that allocate. Thread-safe. */
public final class SimPoolCalls implements PoolCalls {

  private final SimMachine machine;

  public SimPoolCalls(SimMachine machine) {
    this.machine = machine;
  }

  private PoolKind kindOf(int device) {
    machine.pools.require();
    return new PoolKind(
        MemLocationType.DEVICE, machine.device(device).index, MemAllocationType.PINNED);
  }

  private PoolKind kindOf(int locationType, int locationId, int allocationType) {
    machine.pools.requireLocations();
    return machine.pools.kind(locationType, locationId, allocationType);
  }

  private SimPool pool(long handle) {
    machine.pools.require();
    return machine.pools.get(handle);
  }

  @Override
  public long deviceGetDefaultMemPool(int device) {
    return machine.callLong(
        () -> machine.pools.defaultOf(kindOf(device)).handle(),
        () -> "cuDeviceGetDefaultMemPool(device=" + device + ")");
  }

  @Override
  public long deviceGetMemPool(int device) {
    return machine.callLong(
        () -> machine.pools.currentOf(kindOf(device)).handle(),
        () -> "cuDeviceGetMemPool(device=" + device + ")");
  }

  @Override
  public void deviceSetMemPool(int device, long pool) {
    machine.run(
        () -> {
          machine.pools.setCurrent(kindOf(device), pool);
        },
        () -> "cuDeviceSetMemPool(device=%d, pool=0x%x)".formatted(device, pool));
  }

  @Override
  public long memGetDefaultMemPool(int locationType, int locationId, int allocationType) {
    return machine.callLong(
        () -> machine.pools.defaultOf(kindOf(locationType, locationId, allocationType)).handle(),
        () -> call("cuMemGetDefaultMemPool", locationType, locationId, allocationType));
  }

  @Override
  public long memGetMemPool(int locationType, int locationId, int allocationType) {
    return machine.callLong(
        () -> machine.pools.currentOf(kindOf(locationType, locationId, allocationType)).handle(),
        () -> call("cuMemGetMemPool", locationType, locationId, allocationType));
  }

  @Override
  public void memSetMemPool(int locationType, int locationId, int allocationType, long pool) {
    machine.run(
        () -> {
          machine.pools.setCurrent(kindOf(locationType, locationId, allocationType), pool);
        },
        () ->
            call("cuMemSetMemPool", locationType, locationId, allocationType)
                + " with pool=0x%x".formatted(pool));
  }

  private static String call(String name, int locationType, int locationId, int allocationType) {
    return "%s(location=%d:%d, type=%d)".formatted(name, locationType, locationId, allocationType);
  }

  @Override
  public long memPoolCreate(PoolProperties properties) {
    return machine.callLong(
        () -> {
          machine.pools.require();
          if (properties.allocationType() == MemAllocationType.MANAGED
              && !machine.pools.haveLocations()) {
            throw new SimRefusal(
                CudaStatus.NOT_SUPPORTED, "pools of managed memory need CUDA 13.0");
          }
          if (properties.allocationType() == MemAllocationType.MANAGED
              && !machine.options.concurrentManaged()) {
            throw new SimRefusal(
                CudaStatus.NOT_SUPPORTED, "pools of managed memory need concurrent access");
          }
          machine.spend(SimCosts.POOL_CREATE);
          return machine.pools.create(properties).handle();
        },
        () -> "cuMemPoolCreate(" + properties + ")");
  }

  @Override
  public void memPoolDestroy(long pool) {
    machine.run(
        () -> {
          machine.pools.require();
          machine.pools.destroy(pool);
        },
        () -> "cuMemPoolDestroy(pool=0x%x)".formatted(pool));
  }

  @Override
  public void memPoolTrimTo(long pool, long bytesToKeep) {
    machine.run(
        () -> {
          pool(pool).ofThisProcess().trimTo(bytesToKeep);
        },
        () ->
            "cuMemPoolTrimTo(pool=0x%x, bytesToKeep=%s)"
                .formatted(pool, Long.toUnsignedString(bytesToKeep)));
  }

  @Override
  public long memPoolGetAttribute(long pool, int attribute) {
    return machine.callLong(
        () -> pool(pool).ofThisProcess().attribute(attribute),
        () -> "cuMemPoolGetAttribute(pool=0x%x, attribute=%d)".formatted(pool, attribute));
  }

  @Override
  public void memPoolSetAttribute(long pool, int attribute, long value) {
    machine.run(
        () -> {
          pool(pool).ofThisProcess().attribute(attribute, value);
        },
        () ->
            "cuMemPoolSetAttribute(pool=0x%x, attribute=%d, value=%s)"
                .formatted(pool, attribute, Long.toUnsignedString(value)));
  }

  @Override
  public int memPoolGetAccess(long pool, int locationType, int locationId) {
    return machine.call(
        () -> pool(pool).access.get(locationType, locationId),
        () ->
            "cuMemPoolGetAccess(pool=0x%x, location=%d:%d)"
                .formatted(pool, locationType, locationId));
  }

  @Override
  public void memPoolSetAccess(long pool, int locationType, int[] locationIds, int... access) {
    int[] ids = locationIds.clone();
    int[] flags = access.clone();
    machine.run(
        () -> {
          pool(pool).access.set(locationType, ids, flags);
        },
        () ->
            "cuMemPoolSetAccess(pool=0x%x, location type=%d, ids=%s, access=%s)"
                .formatted(pool, locationType, Arrays.toString(ids), Arrays.toString(flags)));
  }
}
