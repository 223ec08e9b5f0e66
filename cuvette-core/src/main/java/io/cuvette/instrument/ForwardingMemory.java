package io.cuvette.instrument;

import io.cuvette.driver.MemoryCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * Forwards the memory calls to those of another driver; a decorator overrides what it changes.
 * Thread-safe if the other driver is.
 */
public abstract class ForwardingMemory implements MemoryCalls {
  private final MemoryCalls delegate;

  /**
   * Forwards to the part of a driver.
   *
   * @param delegate the driver or part that calls are forwarded to
   */
  protected ForwardingMemory(MemoryCalls delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  @Override
  public long memAlloc(int device, long bytes) {
    return delegate.memAlloc(device, bytes);
  }

  @Override
  public void memFree(int device, long address) {
    delegate.memFree(device, address);
  }

  @Override
  public MemorySegment memAllocManaged(int device, long bytes, int flags) {
    return delegate.memAllocManaged(device, bytes, flags);
  }

  @Override
  public MemorySegment memHostAlloc(int device, long bytes, int flags) {
    return delegate.memHostAlloc(device, bytes, flags);
  }

  @Override
  public void memFreeHost(int device, long address) {
    delegate.memFreeHost(device, address);
  }

  @Override
  public void memHostRegister(int device, MemorySegment memory, int flags) {
    delegate.memHostRegister(device, memory, flags);
  }

  @Override
  public void memHostUnregister(int device, long address) {
    delegate.memHostUnregister(device, address);
  }

  @Override
  public MemorySegment hostView(int device, long address, long bytes, Arena arena) {
    return delegate.hostView(device, address, bytes, arena);
  }

  @Override
  public void memPrefetchAsync(
      int device, long address, long bytes, int locationType, int locationId, long stream) {
    delegate.memPrefetchAsync(device, address, bytes, locationType, locationId, stream);
  }

  @Override
  public void memAdvise(
      int device, long address, long bytes, int advice, int locationType, int locationId) {
    delegate.memAdvise(device, address, bytes, advice, locationType, locationId);
  }

  @Override
  public int memRangeGetAttribute(int device, int attribute, long address, long bytes) {
    return delegate.memRangeGetAttribute(device, attribute, address, bytes);
  }

  @Override
  public int[] memRangeGetAttributeList(
      int device, int attribute, long address, long bytes, int count) {
    return delegate.memRangeGetAttributeList(device, attribute, address, bytes, count);
  }

  @Override
  public long pointerGetAttribute(int device, int attribute, long address) {
    return delegate.pointerGetAttribute(device, attribute, address);
  }
}
