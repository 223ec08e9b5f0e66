package io.cuvette.cli.replay;

/** Sees to it that a simulated device is large enough for a trace. Stateless. */
final class SimulatedMemory {
  private static final long GIB = 1L << 30;
  private static final long USUAL_GIB = 140;
  private static final long MOST_GIB = 8192;

  private SimulatedMemory() {}

  /**
   * The specification, with a memory of four times what the trace needs at most if that is more
   * than a simulated device has anyway and no size is given.
   */
  static String enough(String device, Trace trace) {
    long gib = Math.min(MOST_GIB, Math.ceilDiv(trace.peakLiveBytes(), GIB / 4));
    boolean mayChoose = device.strip().matches("sim(:(?!.*memory).*)?");
    if (!mayChoose || gib <= USUAL_GIB) {
      return device;
    }
    return device.strip()
        + (device.contains("=") ? "," : device.contains(":") ? "" : ":")
        + "memory="
        + gib
        + "GiB";
  }
}
