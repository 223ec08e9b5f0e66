package io.cuvette.array;

import java.util.Map;

/** The kinds of memory that DLPack knows by number (DLDeviceType). Stateless. */
final class DlpackDevice {
  static final int CPU = 1;
  static final int CUDA = 2;
  static final int CUDA_HOST = 3;
  static final int CUDA_MANAGED = 13;

  private static final Map<Integer, String> OTHERS =
      Map.ofEntries(
          Map.entry(4, "OpenCL"),
          Map.entry(7, "Vulkan"),
          Map.entry(8, "Metal"),
          Map.entry(9, "VPI"),
          Map.entry(10, "ROCm"),
          Map.entry(11, "ROCm host"),
          Map.entry(12, "extension device"),
          Map.entry(14, "oneAPI"),
          Map.entry(15, "WebGPU"),
          Map.entry(16, "Hexagon"),
          Map.entry(17, "MAIA"),
          Map.entry(18, "Trainium"));

  private DlpackDevice() {}

  static boolean isOfHost(int type) {
    return type == CPU || type == CUDA_HOST;
  }

  /** Checks that arrays can be in such memory. */
  static void check(int type) {
    if (type != CPU && type != CUDA && type != CUDA_HOST && type != CUDA_MANAGED) {
      throw new IllegalArgumentException(
          "device: %d, %s (expected: CPU, CUDA, CUDA host or CUDA managed memory)"
              .formatted(type, OTHERS.getOrDefault(type, "unknown")));
    }
  }
}
