package io.cuvette.ffm.call;

import static io.cuvette.ffm.call.DriverFunction.OUT;
import static io.cuvette.ffm.call.DriverFunction.required;
import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;

import io.cuvette.ffm.library.Libcuda;
import java.lang.invoke.MethodHandle;

/**
 * The driver's functions that start it, and those that are part of every call: name, CUDA version
 * of the form that is meant, parameters. The others are bound where they are called.
 */
public final class CallFunctions {
  static final MethodHandle INIT = Libcuda.required("cuInit", 2000, INT);
  static final MethodHandle DRIVER_VERSION = Libcuda.required("cuDriverGetVersion", 2020, POINTER);
  static final DriverFunction DEVICE = required("cuDeviceGet(ordinal=%d)", 2000, OUT, INT);
  static final DriverFunction DEVICE_COUNT = required("cuDeviceGetCount()", 2000, OUT);
  static final DriverFunction CONTEXT_RETAIN =
      required("cuDevicePrimaryCtxRetain(device=%2$d)", 7000, OUT, INT);
  static final DriverFunction CONTEXT_RELEASE =
      required("cuDevicePrimaryCtxRelease(device=%2$d)", 11000, INT);
  public static final MethodHandle GET_CURRENT =
      Libcuda.requiredAtOnce("cuCtxGetCurrent", 4000, POINTER);
  static final MethodHandle SET_CURRENT = Libcuda.required("cuCtxSetCurrent", 4000, POINTER);
  static final MethodHandle EXCHANGE_MODE =
      Libcuda.requiredAtOnce("cuThreadExchangeStreamCaptureMode", 10010, POINTER);

  private CallFunctions() {}
}
