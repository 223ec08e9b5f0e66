package io.cuvette.ffm;

import static io.cuvette.ffm.Layouts.INT;
import static io.cuvette.ffm.Layouts.POINTER;

import java.lang.invoke.MethodHandle;

/**
 * The driver's functions about streams: name, CUDA version of the form that is meant, parameters.
 */
final class StreamFunctions {
  static final MethodHandle CREATE_WITH_PRIORITY =
      Libcuda.required("cuStreamCreateWithPriority", 5050, POINTER, INT, INT);
  static final MethodHandle DESTROY = Libcuda.required("cuStreamDestroy", 4000, POINTER);
  static final MethodHandle GET_PRIORITY =
      Libcuda.required("cuStreamGetPriority", 5050, POINTER, POINTER);
  static final MethodHandle GET_FLAGS =
      Libcuda.required("cuStreamGetFlags", 5050, POINTER, POINTER);
  static final MethodHandle GET_ID = Libcuda.required("cuStreamGetId", 12000, POINTER, POINTER);
  static final MethodHandle QUERY = Libcuda.required("cuStreamQuery", 2000, POINTER);
  static final MethodHandle SYNCHRONIZE = Libcuda.required("cuStreamSynchronize", 2000, POINTER);
  static final MethodHandle WAIT_EVENT =
      Libcuda.required("cuStreamWaitEvent", 3020, POINTER, POINTER, INT);
  static final MethodHandle LAUNCH_HOST_FUNC =
      Libcuda.function("cuLaunchHostFunc", 10000, POINTER, POINTER, POINTER);

  /** The second form, which every device supports. */
  static final MethodHandle WAIT_VALUE_32 =
      Libcuda.function("cuStreamWaitValue32", 11070, POINTER, POINTER, INT, INT);

  /** The form with two parameters: the one of CUDA 12.5 also gives a green context. */
  static final MethodHandle GET_CTX = Libcuda.function("cuStreamGetCtx", 9020, POINTER, POINTER);

  private StreamFunctions() {}
}
