package io.cuvette.ffm;

import static io.cuvette.ffm.Layouts.INT;
import static io.cuvette.ffm.Layouts.POINTER;
import static io.cuvette.ffm.Layouts.SEGMENT;

import java.lang.invoke.MethodHandle;

/**
 * The driver's functions about devices: name, CUDA version of the form that is meant, parameters.
 */
final class DeviceFunctions {
  static final MethodHandle INIT = Libcuda.required("cuInit", 2000, INT);
  static final MethodHandle DRIVER_GET_VERSION =
      Libcuda.required("cuDriverGetVersion", 2020, POINTER);
  static final MethodHandle GET = Libcuda.required("cuDeviceGet", 2000, POINTER, INT);
  static final MethodHandle GET_COUNT = Libcuda.required("cuDeviceGetCount", 2000, POINTER);
  static final MethodHandle GET_NAME = Libcuda.required("cuDeviceGetName", 2000, SEGMENT, INT, INT);
  static final MethodHandle GET_UUID = Libcuda.required("cuDeviceGetUuid", 11040, POINTER, INT);
  static final MethodHandle TOTAL_MEM = Libcuda.required("cuDeviceTotalMem", 3020, POINTER, INT);
  static final MethodHandle GET_ATTRIBUTE =
      Libcuda.required("cuDeviceGetAttribute", 2000, POINTER, INT, INT);
  static final MethodHandle GET_PCI_BUS_ID =
      Libcuda.function("cuDeviceGetPCIBusId", 4010, SEGMENT, INT, INT);
  static final MethodHandle GET_BY_PCI_BUS_ID =
      Libcuda.function("cuDeviceGetByPCIBusId", 4010, POINTER, SEGMENT);
  static final MethodHandle CAN_ACCESS_PEER =
      Libcuda.function("cuDeviceCanAccessPeer", 4000, POINTER, INT, INT);

  private DeviceFunctions() {}
}
