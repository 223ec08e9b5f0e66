package io.cuvette.arrow;

import io.cuvette.CudaStream;
import java.util.Map;

/** The kinds of memory that Arrow knows by number, which are those of DLPack. Stateless. */
final class DeviceTypes {
  private static final Map<Integer, String> OTHERS =
      Map.ofEntries(
          Map.entry(1, "CPU"),
          Map.entry(3, "CUDA host"),
          Map.entry(4, "OpenCL"),
          Map.entry(7, "Vulkan"),
          Map.entry(8, "Metal"),
          Map.entry(9, "VPI"),
          Map.entry(10, "ROCm"),
          Map.entry(11, "ROCm host"),
          Map.entry(12, "extension device"),
          Map.entry(14, "oneAPI"),
          Map.entry(15, "WebGPU"),
          Map.entry(16, "Hexagon"));

  private DeviceTypes() {}

  /** Checks that an array is on the device of a stream. */
  static void check(ArrayStructure array, CudaStream stream) {
    int type = array.deviceType();
    if (type != ArrayStructure.CUDA && type != ArrayStructure.CUDA_MANAGED) {
      String hint = type == 1 || type == 3 ? "; org.apache.arrow.c imports memory of the host" : "";
      throw new IllegalArgumentException(
          "device_type: %d, %s (expected: 2, CUDA, or 13, CUDA managed%s)"
              .formatted(type, OTHERS.getOrDefault(type, "unknown"), hint));
    }
    if (array.deviceId() != stream.device().id()) {
      throw new IllegalArgumentException(
          "device_id: %d (expected: %d, the device of %s)"
              .formatted(array.deviceId(), stream.device().id(), stream));
    }
  }
}
