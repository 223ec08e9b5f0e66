package io.cuvette.instrument;

import io.cuvette.driver.MathCalls;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import java.util.Objects;

/**
 * Forwards the calls about handles of libraries to those of another driver; a decorator overrides
 * what it changes. Thread-safe if the other driver is.
 */
public abstract class ForwardingMath implements MathCalls {
  private final MathCalls delegate;

  /**
   * Forwards to the part of a driver.
   *
   * @param delegate the driver or part that calls are forwarded to
   */
  protected ForwardingMath(MathCalls delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  @Override
  public String mathLibraryVersion(MathLibrary library) {
    return delegate.mathLibraryVersion(library);
  }

  @Override
  public long mathHandleCreate(MathLibrary library, int device) {
    return delegate.mathHandleCreate(library, device);
  }

  @Override
  public void mathHandleDestroy(MathLibrary library, int device, long handle) {
    delegate.mathHandleDestroy(library, device, handle);
  }

  @Override
  public void mathHandleSetStream(MathLibrary library, int device, long handle, long stream) {
    delegate.mathHandleSetStream(library, device, handle, stream);
  }

  @Override
  public void mathHandleSetWorkspace(int device, long handle, long address, long bytes) {
    delegate.mathHandleSetWorkspace(device, handle, address, bytes);
  }

  @Override
  public void gemm(int device, long handle, MatrixProduct product, long c, long a, long b) {
    delegate.gemm(device, handle, product, c, a, b);
  }
}
