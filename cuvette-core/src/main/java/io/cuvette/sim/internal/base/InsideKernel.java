package io.cuvette.sim.internal.base;

/** Which threads run kernels: the driver refuses their calls. Thread-safe. */
public final class InsideKernel {
  private static final ThreadLocal<Boolean> INSIDE = new ThreadLocal<>();

  private InsideKernel() {}

  /** Notes that this thread runs kernels as long as it lives. */
  public static void enter() {
    INSIDE.set(true);
  }

  /** Whether this thread runs kernels. */
  public static boolean isCurrentThread() {
    return INSIDE.get() != null;
  }
}
