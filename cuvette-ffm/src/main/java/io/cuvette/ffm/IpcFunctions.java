package io.cuvette.ffm;

import static io.cuvette.ffm.Layouts.INT;
import static io.cuvette.ffm.Layouts.POINTER;
import static io.cuvette.ffm.Layouts.SEGMENT;
import static io.cuvette.ffm.Layouts.SIZE;

import java.lang.invoke.MethodHandle;

/**
 * The driver's functions about memory and events of other processes: name, CUDA version of the form
 * that is meant, parameters.
 */
final class IpcFunctions {
  static final MethodHandle POOL_EXPORT =
      Libcuda.function("cuMemPoolExportToShareableHandle", 11020, POINTER, POINTER, INT, SIZE);

  /** The descriptor is the pointer. */
  static final MethodHandle POOL_IMPORT =
      Libcuda.function("cuMemPoolImportFromShareableHandle", 11020, POINTER, POINTER, INT, SIZE);

  static final MethodHandle POINTER_EXPORT =
      Libcuda.function("cuMemPoolExportPointer", 11020, SEGMENT, POINTER);
  static final MethodHandle POINTER_IMPORT =
      Libcuda.function("cuMemPoolImportPointer", 11020, POINTER, POINTER, SEGMENT);
  static final MethodHandle GET_MEMORY =
      Libcuda.function("cuIpcGetMemHandle", 4010, SEGMENT, POINTER);
  static final MethodHandle OPEN_MEMORY =
      Libcuda.function("cuIpcOpenMemHandle", 11000, POINTER, Layouts.IPC_HANDLE, INT);
  static final MethodHandle CLOSE_MEMORY = Libcuda.function("cuIpcCloseMemHandle", 4010, POINTER);
  static final MethodHandle GET_EVENT =
      Libcuda.function("cuIpcGetEventHandle", 4010, SEGMENT, POINTER);
  static final MethodHandle OPEN_EVENT =
      Libcuda.function("cuIpcOpenEventHandle", 4010, POINTER, Layouts.IPC_HANDLE);

  private IpcFunctions() {}
}
