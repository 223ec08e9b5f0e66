package io.cuvette.ffm;

import static io.cuvette.ffm.Layouts.INT;
import static io.cuvette.ffm.Layouts.POINTER;

import java.lang.invoke.MethodHandle;

/**
 * The driver's functions about capture: name, CUDA version of the form that is meant, parameters.
 */
final class CaptureFunctions {
  static final MethodHandle BEGIN = Libcuda.function("cuStreamBeginCapture", 10010, POINTER, INT);
  static final MethodHandle END = Libcuda.function("cuStreamEndCapture", 10000, POINTER, POINTER);
  static final MethodHandle IS_CAPTURING =
      Libcuda.function("cuStreamIsCapturing", 10000, POINTER, POINTER);
  static final MethodHandle GRAPH_DESTROY = Libcuda.function("cuGraphDestroy", 10000, POINTER);

  private CaptureFunctions() {}
}
