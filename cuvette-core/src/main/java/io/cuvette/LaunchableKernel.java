package io.cuvette;

import io.cuvette.internal.kernel.OpenKernel;

/**
 * A kernel as streams launch it: a {@link CudaKernel}. Apart from that class, so that streams do
 * not depend on all that is asked about kernels. Thread-safe.
 */
public abstract class LaunchableKernel {
  private final OpenKernel core;

  LaunchableKernel(OpenKernel core) {
    this.core = core;
  }

  /** The kernel as the engine knows it. */
  final OpenKernel core() {
    return core;
  }

  /** {@return the name in the code} */
  public final String name() {
    return core.name();
  }

  @Override
  public final String toString() {
    return core.toString();
  }
}
