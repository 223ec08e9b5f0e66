package io.cuvette.sim.internal.base;

import io.cuvette.sim.SimulatedKernel;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.jspecify.annotations.Nullable;

/** The kernels that simulated devices of the process can run, by name. Thread-safe. */
public final class KernelRegistry {
  private static final ConcurrentMap<String, Entry> KERNELS = new ConcurrentHashMap<>();

  /** A kernel, and how many registered it. */
  private record Entry(SimulatedKernel kernel, int count) {}

  private KernelRegistry() {}

  public static void add(String name, SimulatedKernel kernel) {
    Entry _ =
        KERNELS.compute(
            name,
            (_, known) -> {
              if (known != null && !known.kernel.equals(kernel)) {
                throw new IllegalStateException(
                    "kernel %s%s is registered already".formatted(name, known.kernel.parameters()));
              }
              return new Entry(kernel, known == null ? 1 : known.count + 1);
            });
  }

  /** Takes one registration back; with the last one the kernel goes. */
  public static void remove(String name) {
    Entry _ =
        KERNELS.computeIfPresent(
            name, (_, known) -> known.count == 1 ? null : new Entry(known.kernel, known.count - 1));
  }

  public static @Nullable SimulatedKernel find(String name) {
    Entry known = KERNELS.get(name);
    return known == null ? null : known.kernel;
  }
}
