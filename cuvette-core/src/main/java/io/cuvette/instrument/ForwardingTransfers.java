package io.cuvette.instrument;

import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.TransferCalls;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * Forwards the transfer calls to those of another driver; a decorator overrides what it changes.
 * Thread-safe if the other driver is.
 */
public abstract class ForwardingTransfers implements TransferCalls {
  private final TransferCalls delegate;

  /**
   * Forwards to the part of a driver.
   *
   * @param delegate the driver or part that calls are forwarded to
   */
  protected ForwardingTransfers(TransferCalls delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  @Override
  public void memcpyAsync(int device, long target, long source, long bytes, long stream) {
    delegate.memcpyAsync(device, target, source, bytes, stream);
  }

  @Override
  public void memcpyHtoDAsync(int device, long target, MemorySegment source, long stream) {
    delegate.memcpyHtoDAsync(device, target, source, stream);
  }

  @Override
  public void memcpyDtoHAsync(int device, MemorySegment target, long source, long stream) {
    delegate.memcpyDtoHAsync(device, target, source, stream);
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
    delegate.memcpyPeerAsync(
        streamDevice, target, targetDevice, source, sourceDevice, bytes, stream);
  }

  @Override
  public void memcpy3DAsync(int device, BoxCopy copy, long stream) {
    delegate.memcpy3DAsync(device, copy, stream);
  }

  @Override
  public void memcpyBatchAsync(
      int device, long[] targets, long[] sources, long[] bytes, long stream) {
    delegate.memcpyBatchAsync(device, targets, sources, bytes, stream);
  }

  @Override
  public void memsetD8Async(int device, long target, byte value, long count, long stream) {
    delegate.memsetD8Async(device, target, value, count, stream);
  }

  @Override
  public void memsetD16Async(int device, long target, short value, long count, long stream) {
    delegate.memsetD16Async(device, target, value, count, stream);
  }

  @Override
  public void memsetD32Async(int device, long target, int value, long count, long stream) {
    delegate.memsetD32Async(device, target, value, count, stream);
  }
}
