package io.cuvette.instrument;

import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.PotentialBlockSize;
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

  @Override
  public void launchKernel(
      int device, long stream, long kernel, LaunchShape shape, LaunchParameters parameters) {
    delegate.launchKernel(device, stream, kernel, shape, parameters);
  }

  @Override
  public int kernelGetAttribute(int attribute, long kernel, int device) {
    return delegate.kernelGetAttribute(attribute, kernel, device);
  }

  @Override
  public void kernelSetAttribute(int attribute, int value, long kernel, int device) {
    delegate.kernelSetAttribute(attribute, value, kernel, device);
  }

  @Override
  public int occupancyMaxActiveBlocksPerMultiprocessor(
      int device, long kernel, int blockThreads, long dynamicSharedBytes) {
    return delegate.occupancyMaxActiveBlocksPerMultiprocessor(
        device, kernel, blockThreads, dynamicSharedBytes);
  }

  @Override
  public PotentialBlockSize occupancyMaxPotentialBlockSize(
      int device, long kernel, long dynamicSharedBytes, int blockLimit) {
    return delegate.occupancyMaxPotentialBlockSize(device, kernel, dynamicSharedBytes, blockLimit);
  }

  @Override
  public long occupancyAvailableDynamicSMemPerBlock(
      int device, long kernel, int blocks, int blockThreads) {
    return delegate.occupancyAvailableDynamicSMemPerBlock(device, kernel, blocks, blockThreads);
  }

  @Override
  public int occupancyMaxActiveClusters(int device, long kernel, LaunchShape shape) {
    return delegate.occupancyMaxActiveClusters(device, kernel, shape);
  }

  @Override
  public int occupancyMaxPotentialClusterSize(int device, long kernel, LaunchShape shape) {
    return delegate.occupancyMaxPotentialClusterSize(device, kernel, shape);
  }
}
