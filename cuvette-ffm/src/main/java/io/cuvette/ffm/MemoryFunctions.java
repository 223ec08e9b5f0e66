package io.cuvette.ffm;

import static io.cuvette.ffm.Layouts.INT;
import static io.cuvette.ffm.Layouts.LOCATION;
import static io.cuvette.ffm.Layouts.POINTER;
import static io.cuvette.ffm.Layouts.SIZE;

import java.lang.invoke.MethodHandle;

/**
 * The driver's functions about memory: name, CUDA version of the form that is meant, parameters.
 */
final class MemoryFunctions {
  static final MethodHandle ALLOC = Libcuda.required("cuMemAlloc", 3020, POINTER, SIZE);
  static final MethodHandle FREE = Libcuda.required("cuMemFree", 3020, POINTER);
  static final MethodHandle HOST_ALLOC =
      Libcuda.required("cuMemHostAlloc", 2020, POINTER, SIZE, INT);
  static final MethodHandle FREE_HOST = Libcuda.required("cuMemFreeHost", 2000, POINTER);
  static final MethodHandle GET_INFO = Libcuda.required("cuMemGetInfo", 3020, POINTER, POINTER);
  static final MethodHandle POINTER_GET_ATTRIBUTE =
      Libcuda.required("cuPointerGetAttribute", 4000, POINTER, INT, POINTER);

  static final MethodHandle ALLOC_MANAGED =
      Libcuda.function("cuMemAllocManaged", 6000, POINTER, SIZE, INT);
  static final MethodHandle RANGE_GET_ATTRIBUTE =
      Libcuda.function("cuMemRangeGetAttribute", 8000, POINTER, SIZE, INT, POINTER, SIZE);

  /** Since CUDA 12.2 the place is a location, which can be a node of the host; before, a device. */
  static final boolean TAKES_LOCATIONS =
      Libcuda.has("cuMemPrefetchAsync", 12020) && Libcuda.has("cuMemAdvise", 12020);

  static final MethodHandle PREFETCH =
      Libcuda.function("cuMemPrefetchAsync", 12020, POINTER, SIZE, LOCATION, INT, POINTER);
  static final MethodHandle PREFETCH_TO_DEVICE =
      Libcuda.function("cuMemPrefetchAsync", 8000, POINTER, SIZE, INT, POINTER);
  static final MethodHandle ADVISE =
      Libcuda.function("cuMemAdvise", 12020, POINTER, SIZE, INT, LOCATION);
  static final MethodHandle ADVISE_FOR_DEVICE =
      Libcuda.function("cuMemAdvise", 8000, POINTER, SIZE, INT, INT);

  private MemoryFunctions() {}
}
