package io.cuvette.instrument;

import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.KernelParameter;
import java.util.Objects;

/**
 * Forwards the calls about kernels to those of another driver; a decorator overrides what it
 * changes. Thread-safe if the other driver is.
 */
public abstract class ForwardingKernels implements KernelCalls {
  private final KernelCalls delegate;

  /**
   * Forwards to the part of a driver.
   *
   * @param delegate the driver or part that calls are forwarded to
   */
  protected ForwardingKernels(KernelCalls delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  @Override
  public long libraryLoadData(byte[] image) {
    return delegate.libraryLoadData(image);
  }

  @Override
  public void libraryUnload(long library) {
    delegate.libraryUnload(library);
  }

  @Override
  public long libraryGetKernel(long library, String name) {
    return delegate.libraryGetKernel(library, name);
  }

  @Override
  public int libraryGetKernelCount(long library) {
    return delegate.libraryGetKernelCount(library);
  }

  @Override
  public long[] libraryEnumerateKernels(long library, int count) {
    return delegate.libraryEnumerateKernels(library, count);
  }

  @Override
  public String kernelGetName(long kernel) {
    return delegate.kernelGetName(kernel);
  }

  @Override
  public KernelParameter kernelGetParamInfo(long kernel, int index) {
    return delegate.kernelGetParamInfo(kernel, index);
  }
}
