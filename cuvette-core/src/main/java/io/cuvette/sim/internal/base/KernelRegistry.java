package io.cuvette.sim.internal.base;

import io.cuvette.sim.SimulatedKernel;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.jspecify.annotations.Nullable;

/** The kernels that simulated devices of the process can run, by name. Thread-safe. */
public final class KernelRegistry {
  private static final ConcurrentMap<String, SimulatedKernel> KERNELS = new ConcurrentHashMap<>();

  private KernelRegistry() {}

  public static void add(String name, SimulatedKernel kernel) {
    SimulatedKernel known = KERNELS.putIfAbsent(name, kernel);
    if (known != null && !known.equals(kernel)) {
      throw new IllegalStateException(
          "kernel %s%s is registered already".formatted(name, known.parameters()));
    }
  }

  public static void remove(String name, SimulatedKernel kernel) {
    boolean _ = KERNELS.remove(name, kernel);
  }

  public static @Nullable SimulatedKernel find(String name) {
    return KERNELS.get(name);
  }

  /** The names, in order. */
  public static SortedSet<String> names() {
    return new TreeSet<>(KERNELS.keySet());
  }
}
