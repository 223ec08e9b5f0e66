package io.cuvette.sim.internal.base;

/** Which threads run kernels: the driver refuses their calls. Thread-safe. */
public final class InsideKernel {
  private static final ThreadLocal<Boolean> INSIDE = new ThreadLocal<>();

  private InsideKernel() {}

  /** Notes that this thread runs kernels as long as it lives. */
  public static void enter() {
    INSIDE.set(true);
  }

  /** Checks that this thread runs none: who does, holds the driver's lock until it has ended. */
  public static void checkOutside() {
    if (isCurrentThread()) {
      throw new IllegalStateException("kernels must not call the driver");
    }
  }

  /** Whether this thread runs kernels. */
  public static boolean isCurrentThread() {
    return INSIDE.get() != null;
  }
}
