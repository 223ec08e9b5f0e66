package io.cuvette.ffm;

import static io.cuvette.ffm.Layouts.INT;
import static io.cuvette.ffm.Layouts.POINTER;
import static io.cuvette.ffm.Layouts.SIZE;

import java.lang.invoke.MethodHandle;

/**
 * The driver's functions about contexts: name, CUDA version of the form that is meant, parameters.
 */
final class ContextFunctions {
  static final MethodHandle RETAIN =
      Libcuda.required("cuDevicePrimaryCtxRetain", 7000, POINTER, INT);
  static final MethodHandle RELEASE = Libcuda.required("cuDevicePrimaryCtxRelease", 11000, INT);
  static final MethodHandle GET_CURRENT = Libcuda.requiredAtOnce("cuCtxGetCurrent", 4000, POINTER);
  static final MethodHandle SET_CURRENT = Libcuda.required("cuCtxSetCurrent", 4000, POINTER);
  static final MethodHandle GET_DEVICE = Libcuda.required("cuCtxGetDevice", 2000, POINTER);

  /** Since CUDA 13 a context can be waited for without being current. */
  static final boolean SYNCHRONIZES_ANY = Libcuda.has("cuCtxSynchronize", 13000);

  static final MethodHandle SYNCHRONIZE_ANY = Libcuda.function("cuCtxSynchronize", 13000, POINTER);
  static final MethodHandle SYNCHRONIZE = Libcuda.required("cuCtxSynchronize", 2000);
  static final MethodHandle GET_STREAM_PRIORITY_RANGE =
      Libcuda.required("cuCtxGetStreamPriorityRange", 5050, POINTER, POINTER);
  static final MethodHandle GET_LIMIT = Libcuda.function("cuCtxGetLimit", 3010, POINTER, INT);
  static final MethodHandle SET_LIMIT = Libcuda.function("cuCtxSetLimit", 3010, INT, SIZE);
  static final MethodHandle ENABLE_PEER_ACCESS =
      Libcuda.function("cuCtxEnablePeerAccess", 4000, POINTER, INT);
  static final MethodHandle DISABLE_PEER_ACCESS =
      Libcuda.function("cuCtxDisablePeerAccess", 4000, POINTER);

  private ContextFunctions() {}
}
