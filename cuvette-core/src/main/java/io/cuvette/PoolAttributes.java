package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.driverpool.AttributesOfPool;
import io.cuvette.internal.driverpool.DriverPool;

/**
 * The attributes of a memory pool of the driver, queried and set at each call
 * (cuMemPoolGetAttribute, cuMemPoolSetAttribute). Others may use and change the same pool. The
 * bytes reserved and used require a driver of CUDA 11.3; an older one fails with
 * CALL_REQUIRES_NEWER_DRIVER. For a pool imported from another process the driver reports nothing
 * and fails with INVALID_VALUE. After the resource is closed, queries return the last values, and
 * setters throw IllegalStateException; so do queries if the pool was given by a handle that belongs
 * to no resource of the {@link Cuda}, or was no longer current where it had been: its owner may
 * have destroyed it before. Thread-safe.
 */
public final class PoolAttributes {
  private final DriverPool pool;
  private final AttributesOfPool core;

  /**
   * For a user, who may keep nothing else.
   *
   * @param owner closes the pool when it is not reachable any more
   */
  PoolAttributes(DriverPool pool, Object owner) {
    this.pool = pool;
    this.core = new AttributesOfPool(pool, owner);
  }

  /**
   * {@return whether memory freed on one stream is reused on another that waits for that free by an
   * event}
   */
  public boolean reuseFollowEventDependencies() {
    return core.get(MemPoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES) != 0;
  }

  /**
   * Sets {@link #reuseFollowEventDependencies()}.
   *
   * @param allow whether it is allowed
   */
  public void setReuseFollowEventDependencies(boolean allow) {
    core.set(MemPoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES, allow ? 1 : 0);
  }

  /** {@return whether memory whose free happens to be complete is reused on another stream} */
  public boolean reuseAllowOpportunistic() {
    return core.get(MemPoolAttribute.REUSE_ALLOW_OPPORTUNISTIC) != 0;
  }

  /**
   * Sets {@link #reuseAllowOpportunistic()}.
   *
   * @param allow whether it is allowed
   */
  public void setReuseAllowOpportunistic(boolean allow) {
    core.set(MemPoolAttribute.REUSE_ALLOW_OPPORTUNISTIC, allow ? 1 : 0);
  }

  /** {@return whether the driver may make one stream wait for another to reuse its memory} */
  public boolean reuseAllowInternalDependencies() {
    return core.get(MemPoolAttribute.REUSE_ALLOW_INTERNAL_DEPENDENCIES) != 0;
  }

  /**
   * Sets {@link #reuseAllowInternalDependencies()}.
   *
   * @param allow whether it is allowed
   */
  public void setReuseAllowInternalDependencies(boolean allow) {
    core.set(MemPoolAttribute.REUSE_ALLOW_INTERNAL_DEPENDENCIES, allow ? 1 : 0);
  }

  /**
   * {@return the bytes the pool may keep reserved across a synchronisation; {@link Long#MAX_VALUE}
   * for all} Does not limit allocation.
   */
  public long releaseThreshold() {
    long bytes = core.get(MemPoolAttribute.RELEASE_THRESHOLD);
    return bytes < 0 ? Long.MAX_VALUE : bytes;
  }

  /**
   * Sets {@link #releaseThreshold()}; {@link Long#MAX_VALUE} keeps all.
   *
   * @param bytes the size in bytes, >= 0
   */
  public void setReleaseThreshold(long bytes) {
    Checks.notNegative("release threshold", bytes);
    core.set(
        MemPoolAttribute.RELEASE_THRESHOLD,
        bytes == Long.MAX_VALUE ? MemPoolAttribute.KEEP_ALL : bytes);
  }

  /** {@return the bytes that the pool has reserved now} */
  public long reservedMemCurrent() {
    return core.get(MemPoolAttribute.RESERVED_MEM_CURRENT);
  }

  /** {@return the most bytes that the pool had reserved since the start or the last reset} */
  public long reservedMemHigh() {
    return core.get(MemPoolAttribute.RESERVED_MEM_HIGH);
  }

  /** Starts {@link #reservedMemHigh()} anew from what is held now. */
  public void resetReservedMemHigh() {
    core.set(MemPoolAttribute.RESERVED_MEM_HIGH, 0);
  }

  /** {@return the bytes of the pool in use now, by any user of it} */
  public long usedMemCurrent() {
    return core.get(MemPoolAttribute.USED_MEM_CURRENT);
  }

  /**
   * {@return the most bytes in use since the start or the last reset; memory of closed buffers that
   * waits for the next allocation of its size, 64 MiB at most, counts}
   */
  public long usedMemHigh() {
    return core.get(MemPoolAttribute.USED_MEM_HIGH);
  }

  /** Starts {@link #usedMemHigh()} anew from what is used now. */
  public void resetUsedMemHigh() {
    core.set(MemPoolAttribute.USED_MEM_HIGH, 0);
  }

  @Override
  public String toString() {
    return "PoolAttributes[%s, %s]".formatted(pool, numbers());
  }

  /** Never throws: texts are for logs and debuggers, and name what cannot be queried. */
  private String numbers() {
    try {
      return "reserved=%d (high %d), used=%d (high %d), releaseThreshold=%s"
          .formatted(
              reservedMemCurrent(),
              reservedMemHigh(),
              usedMemCurrent(),
              usedMemHigh(),
              releaseThreshold() == Long.MAX_VALUE ? "all" : releaseThreshold());
    } catch (IllegalStateException | CudaException e) {
      return "unknown: " + e.getMessage();
    }
  }
}
