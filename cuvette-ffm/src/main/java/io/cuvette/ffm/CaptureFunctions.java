package io.cuvette.ffm;

import static io.cuvette.ffm.Layouts.INT;
import static io.cuvette.ffm.Layouts.POINTER;
import static io.cuvette.ffm.Layouts.SIZE;

import java.lang.invoke.MethodHandle;

/**
 * The driver's functions about capture: name, CUDA version of the form that is meant, parameters.
 */
final class CaptureFunctions {
  static final MethodHandle BEGIN = Libcuda.function("cuStreamBeginCapture", 10010, POINTER, INT);
  static final MethodHandle END = Libcuda.function("cuStreamEndCapture", 10000, POINTER, POINTER);
  static final MethodHandle IS_CAPTURING =
      Libcuda.function("cuStreamIsCapturing", 10000, POINTER, POINTER);
  static final MethodHandle GET_INFO =
      Libcuda.function(
          "cuStreamGetCaptureInfo", 11030, POINTER, POINTER, POINTER, POINTER, POINTER, POINTER);
  static final MethodHandle USER_OBJECT_CREATE =
      Libcuda.function("cuUserObjectCreate", 11030, POINTER, POINTER, POINTER, INT, INT);
  static final MethodHandle USER_OBJECT_RELEASE =
      Libcuda.function("cuUserObjectRelease", 11030, POINTER, INT);
  static final MethodHandle GRAPH_RETAIN_USER_OBJECT =
      Libcuda.function("cuGraphRetainUserObject", 11030, POINTER, POINTER, INT, INT);
  static final MethodHandle GRAPH_INSTANTIATE =
      Libcuda.function("cuGraphInstantiateWithFlags", 11040, POINTER, POINTER, SIZE);
  static final MethodHandle GRAPH_LAUNCH =
      Libcuda.function("cuGraphLaunch", 10000, POINTER, POINTER);
  static final MethodHandle GRAPH_EXEC_DESTROY =
      Libcuda.function("cuGraphExecDestroy", 10000, POINTER);
  static final MethodHandle GRAPH_DESTROY = Libcuda.function("cuGraphDestroy", 10000, POINTER);

  static final MethodHandle EXCHANGE_MODE =
      Libcuda.requiredAtOnce("cuThreadExchangeStreamCaptureMode", 10010, POINTER);

  private CaptureFunctions() {}
}
