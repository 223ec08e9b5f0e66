package io.cuvette.instrument;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.VirtualCalls;
import java.util.Objects;

/**
 * Forwards the calls about virtual memory to those of another driver; a decorator overrides what it
 * changes. Thread-safe if the other driver is.
 */
public abstract class ForwardingVirtual implements VirtualCalls {
  private final VirtualCalls delegate;

  /**
   * Forwards to the part of a driver.
   *
   * @param delegate the driver or part that calls are forwarded to
   */
  protected ForwardingVirtual(VirtualCalls delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  @Override
  public long memGetAllocationGranularity(AllocationProperties properties, int option) {
    return delegate.memGetAllocationGranularity(properties, option);
  }

  @Override
  public long memAddressReserve(long bytes, long alignment, long address) {
    return delegate.memAddressReserve(bytes, alignment, address);
  }

  @Override
  public void memAddressFree(long address, long bytes) {
    delegate.memAddressFree(address, bytes);
  }

  @Override
  public long memCreate(long bytes, AllocationProperties properties) {
    return delegate.memCreate(bytes, properties);
  }

  @Override
  public void memMap(long address, long bytes, long offset, long handle) {
    delegate.memMap(address, bytes, offset, handle);
  }

  @Override
  public void memUnmap(long address, long bytes) {
    delegate.memUnmap(address, bytes);
  }

  @Override
  public void memSetAccess(
      long address, long bytes, int locationType, int[] locationIds, int... access) {
    delegate.memSetAccess(address, bytes, locationType, locationIds, access);
  }

  @Override
  public int memGetAccess(long address, int locationType, int locationId) {
    return delegate.memGetAccess(address, locationType, locationId);
  }

  @Override
  public void memRelease(long handle) {
    delegate.memRelease(handle);
  }

  @Override
  public long memRetainAllocationHandle(long address) {
    return delegate.memRetainAllocationHandle(address);
  }

  @Override
  public AllocationProperties memGetAllocationPropertiesFromHandle(long handle) {
    return delegate.memGetAllocationPropertiesFromHandle(handle);
  }

  @Override
  public int memExportToShareableHandle(long handle) {
    return delegate.memExportToShareableHandle(handle);
  }

  @Override
  public long memImportFromShareableHandle(int descriptor) {
    return delegate.memImportFromShareableHandle(descriptor);
  }
}
