package io.cuvette.ffm;

import static io.cuvette.ffm.Layouts.INT;
import static io.cuvette.ffm.Layouts.POINTER;

import java.lang.invoke.MethodHandle;

/**
 * The driver's functions about events: name, CUDA version of the form that is meant, parameters.
 */
final class EventFunctions {
  static final MethodHandle CREATE = Libcuda.required("cuEventCreate", 2000, POINTER, INT);
  static final MethodHandle DESTROY = Libcuda.required("cuEventDestroy", 4000, POINTER);
  static final MethodHandle RECORD = Libcuda.required("cuEventRecord", 2000, POINTER, POINTER);
  static final MethodHandle QUERY = Libcuda.required("cuEventQuery", 2000, POINTER);
  static final MethodHandle SYNCHRONIZE = Libcuda.required("cuEventSynchronize", 2000, POINTER);

  /** Newer drivers have another form with the same parameters, which is what cuda.h means. */
  static final MethodHandle ELAPSED_TIME =
      Libcuda.required(
          "cuEventElapsedTime",
          Libcuda.has("cuEventElapsedTime", 12080) ? 12080 : 2000,
          POINTER,
          POINTER,
          POINTER);

  private EventFunctions() {}
}
