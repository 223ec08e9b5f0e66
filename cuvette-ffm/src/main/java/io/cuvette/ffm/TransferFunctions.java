package io.cuvette.ffm;

import static io.cuvette.ffm.Layouts.INT;
import static io.cuvette.ffm.Layouts.POINTER;
import static io.cuvette.ffm.Layouts.SEGMENT;
import static io.cuvette.ffm.Layouts.SIZE;

import java.lang.invoke.MethodHandle;

/** The driver's copies and fills: name, CUDA version of the form that is meant, parameters. */
final class TransferFunctions {
  static final MethodHandle COPY =
      Libcuda.required("cuMemcpyAsync", 4000, POINTER, POINTER, SIZE, POINTER);
  static final MethodHandle COPY_TO_DEVICE =
      Libcuda.required("cuMemcpyHtoDAsync", 3020, POINTER, SEGMENT, SIZE, POINTER);
  static final MethodHandle COPY_TO_HOST =
      Libcuda.required("cuMemcpyDtoHAsync", 3020, SEGMENT, POINTER, SIZE, POINTER);
  static final MethodHandle COPY_PEER =
      Libcuda.function(
          "cuMemcpyPeerAsync", 4000, POINTER, POINTER, POINTER, POINTER, SIZE, POINTER);
  static final MethodHandle FILL_8 =
      Libcuda.required("cuMemsetD8Async", 3020, POINTER, INT, SIZE, POINTER);
  static final MethodHandle FILL_16 =
      Libcuda.required("cuMemsetD16Async", 3020, POINTER, INT, SIZE, POINTER);
  static final MethodHandle FILL_32 =
      Libcuda.required("cuMemsetD32Async", 3020, POINTER, INT, SIZE, POINTER);

  private TransferFunctions() {}
}
