package io.cuvette.instrument;

import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.PoolProperties;
import java.util.Objects;

/**
 * Forwards the pool calls to those of another driver; a decorator overrides what it changes.
 * Thread-safe if the other driver is.
 */
public abstract class ForwardingPools implements PoolCalls {
  private final PoolCalls delegate;

  /**
   * Forwards to the part of a driver.
   *
   * @param delegate the driver or part that calls are forwarded to
   */
  protected ForwardingPools(PoolCalls delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  @Override
  public long deviceGetDefaultMemPool(int device) {
    return delegate.deviceGetDefaultMemPool(device);
  }

  @Override
  public long deviceGetMemPool(int device) {
    return delegate.deviceGetMemPool(device);
  }

  @Override
  public void deviceSetMemPool(int device, long pool) {
    delegate.deviceSetMemPool(device, pool);
  }

  @Override
  public long memGetDefaultMemPool(int locationType, int locationId, int allocationType) {
    return delegate.memGetDefaultMemPool(locationType, locationId, allocationType);
  }

  @Override
  public long memGetMemPool(int locationType, int locationId, int allocationType) {
    return delegate.memGetMemPool(locationType, locationId, allocationType);
  }

  @Override
  public void memSetMemPool(int locationType, int locationId, int allocationType, long pool) {
    delegate.memSetMemPool(locationType, locationId, allocationType, pool);
  }

  @Override
  public long memPoolCreate(PoolProperties properties) {
    return delegate.memPoolCreate(properties);
  }

  @Override
  public void memPoolDestroy(long pool) {
    delegate.memPoolDestroy(pool);
  }

  @Override
  public void memPoolTrimTo(long pool, long bytesToKeep) {
    delegate.memPoolTrimTo(pool, bytesToKeep);
  }

  @Override
  public long memPoolGetAttribute(long pool, int attribute) {
    return delegate.memPoolGetAttribute(pool, attribute);
  }

  @Override
  public void memPoolSetAttribute(long pool, int attribute, long value) {
    delegate.memPoolSetAttribute(pool, attribute, value);
  }

  @Override
  public int memPoolGetAccess(long pool, int locationType, int locationId) {
    return delegate.memPoolGetAccess(pool, locationType, locationId);
  }

  @Override
  public void memPoolSetAccess(long pool, int locationType, int[] locationIds, int... access) {
    delegate.memPoolSetAccess(pool, locationType, locationIds, access);
  }
}
