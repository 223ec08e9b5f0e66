package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.kernel.PackedArguments;
import java.lang.ref.Reference;
import java.util.Objects;

/**
 * The arguments of a kernel, checked and packed once and launched often: a launch allocates nothing
 * on the Java heap. They keep their buffers reachable, not open: a launch after one was closed is
 * refused. Thread-safe.
 */
public final class KernelArguments {
  private final CudaKernel kernel;
  private final PackedArguments core;

  KernelArguments(CudaKernel kernel, Object[] arguments) {
    Objects.requireNonNull(arguments, "arguments");
    this.kernel = kernel;
    this.core = new PackedArguments(kernel.core(), arguments, BufferBase::argument);
  }

  /** {@return the kernel} */
  public CudaKernel kernel() {
    return kernel;
  }

  /**
   * Queues the kernel with these arguments (cuLaunchKernelEx).
   *
   * @param stream the stream
   * @param config the configuration; the same one as in the launch before costs no check
   * @throws IllegalArgumentException if the stream's device cannot run it, or has no access to a
   *     buffer
   * @throws IllegalStateException if the module, a buffer or the stream is closed
   * @throws CudaException if the driver reports an error
   */
  public void launch(CudaStream stream, LaunchConfig config) {
    Objects.requireNonNull(config, "config");
    try {
      core.launch(CudaStream.coreOf(stream), config);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  @Override
  public String toString() {
    return "arguments of " + kernel;
  }
}
