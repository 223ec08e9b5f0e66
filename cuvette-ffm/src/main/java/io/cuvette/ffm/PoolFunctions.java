package io.cuvette.ffm;

import static io.cuvette.ffm.Layouts.INT;
import static io.cuvette.ffm.Layouts.POINTER;
import static io.cuvette.ffm.Layouts.SEGMENT;
import static io.cuvette.ffm.Layouts.SIZE;

import java.lang.invoke.MethodHandle;

/**
 * The driver's functions about pools and the memory from them: name, CUDA version of the form that
 * is meant, parameters.
 */
final class PoolFunctions {
  static final MethodHandle DEVICE_GET_DEFAULT =
      Libcuda.function("cuDeviceGetDefaultMemPool", 11020, POINTER, INT);
  static final MethodHandle DEVICE_GET =
      Libcuda.function("cuDeviceGetMemPool", 11020, POINTER, INT);
  static final MethodHandle DEVICE_SET =
      Libcuda.function("cuDeviceSetMemPool", 11020, INT, POINTER);

  /** Since CUDA 13, like the two that follow; before, only devices have pools of their own. */
  static final MethodHandle GET_DEFAULT =
      Libcuda.function("cuMemGetDefaultMemPool", 13000, POINTER, SEGMENT, INT);

  static final MethodHandle GET = Libcuda.function("cuMemGetMemPool", 13000, POINTER, SEGMENT, INT);
  static final MethodHandle SET = Libcuda.function("cuMemSetMemPool", 13000, SEGMENT, INT, POINTER);

  static final MethodHandle CREATE = Libcuda.function("cuMemPoolCreate", 11020, POINTER, SEGMENT);
  static final MethodHandle DESTROY = Libcuda.function("cuMemPoolDestroy", 11020, POINTER);
  static final MethodHandle TRIM_TO = Libcuda.function("cuMemPoolTrimTo", 11020, POINTER, SIZE);
  static final MethodHandle GET_ATTRIBUTE =
      Libcuda.function("cuMemPoolGetAttribute", 11020, POINTER, INT, POINTER);
  static final MethodHandle SET_ATTRIBUTE =
      Libcuda.function("cuMemPoolSetAttribute", 11020, POINTER, INT, POINTER);
  static final MethodHandle GET_ACCESS =
      Libcuda.function("cuMemPoolGetAccess", 11020, POINTER, POINTER, SEGMENT);
  static final MethodHandle SET_ACCESS =
      Libcuda.function("cuMemPoolSetAccess", 11020, POINTER, SEGMENT, SIZE);
  static final MethodHandle ALLOC =
      Libcuda.function("cuMemAllocAsync", 11020, POINTER, SIZE, POINTER);
  static final MethodHandle ALLOC_FROM =
      Libcuda.function("cuMemAllocFromPoolAsync", 11020, POINTER, SIZE, POINTER, POINTER);
  static final MethodHandle FREE = Libcuda.function("cuMemFreeAsync", 11020, POINTER, POINTER);

  private PoolFunctions() {}
}
