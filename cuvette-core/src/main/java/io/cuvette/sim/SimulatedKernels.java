package io.cuvette.sim;

import io.cuvette.sim.internal.base.KernelRegistry;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The kernels that every simulated device of the process can run. A library of kernels is loaded
 * there as PTX, of which the names and the parameters are read; a launch runs the Java function
 * that is registered under the kernel's name. Thread-safe.
 */
public final class SimulatedKernels {
  private SimulatedKernels() {}

  /** A kernel that is registered until this is closed. */
  @FunctionalInterface
  public interface Registered extends AutoCloseable {
    /**
     * Removes the kernel, unless others registered the same one and have not closed theirs;
     * launches that run or are queued are not affected. Does nothing the second time.
     */
    @Override
    void close();
  }

  /**
   * Registers a kernel, for libraries that are loaded before or after.
   *
   * @param kernel the kernel
   * @return what removes it again
   * @throws IllegalStateException if another kernel of this name is registered
   */
  public static Registered register(SimulatedKernel kernel) {
    Objects.requireNonNull(kernel, "kernel");
    KernelRegistry.add(kernel.name(), kernel);
    AtomicBoolean closed = new AtomicBoolean();
    return () -> {
      if (!closed.getAndSet(true)) {
        KernelRegistry.remove(kernel.name());
      }
    };
  }

  /**
   * {@return PTX with kernels of these names and parameters and nothing in them, which a simulated
   * device can load; for programs whose code is not at hand as PTX}
   *
   * @param kernels the kernels
   */
  public static byte[] ptx(List<SimulatedKernel> kernels) {
    Objects.requireNonNull(kernels, "kernels");
    StringBuilder text = new StringBuilder(".version 8.0\n.target sm_90\n.address_size 64\n");
    for (SimulatedKernel kernel : kernels) {
      text.append(".visible .entry ").append(kernel.name()).append('(');
      for (int i = 0; i < kernel.parameters().size(); i++) {
        SimulatedParameter each = kernel.parameters().get(i);
        text.append(i == 0 ? "" : ", ")
            .append(".param .align %d .b8 p%d[%d]".formatted(each.alignment(), i, each.byteSize()));
      }
      text.append(")\n{\n  ret;\n}\n");
    }
    return text.toString().getBytes(StandardCharsets.US_ASCII);
  }
}
