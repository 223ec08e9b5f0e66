package io.cuvette.ffm;

import io.cuvette.driver.IpcCalls;
import java.lang.foreign.MemorySegment;

/**
 * Calls that share pools and their memory with other processes; none of them needs a context.
 * Thread-safe.
 */
interface FfmPoolSharing extends FfmCalls, IpcCalls {

  /** CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR. */
  int FILE_DESCRIPTOR = 1;

  @Override
  default int memPoolExportToShareableHandle(long pool) {
    CallFrame frame = enter();
    int status;
    try {
      status = (int) IpcFunctions.POOL_EXPORT.invokeExact(frame.out, pool, FILE_DESCRIPTOR, 0L);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    int descriptor = (int) frame.leave(); // the driver writes an int
    if (status != SUCCESS) {
      throw Failure.of(status, "cuMemPoolExportToShareableHandle(pool=%#x)", pool);
    }
    return descriptor;
  }

  @Override
  default long memPoolImportFromShareableHandle(int descriptor) {
    PoolEnds.HERE.beginMaking();
    try {
      return importPool(descriptor);
    } finally {
      PoolEnds.HERE.endMaking();
    }
  }

  private long importPool(int descriptor) {
    CallFrame frame = enter();
    int status;
    try {
      status =
          (int)
              IpcFunctions.POOL_IMPORT.invokeExact(
                  frame.out, (long) descriptor, FILE_DESCRIPTOR, 0L);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long pool = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuMemPoolImportFromShareableHandle(descriptor=%d)", descriptor);
    }
    return pool;
  }

  @Override
  default byte[] memPoolExportPointer(long address) {
    MemorySegment handle = IpcHandles.room();
    CallFrame frame = enter();
    int status;
    try {
      status = (int) IpcFunctions.POINTER_EXPORT.invokeExact(handle, address);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuMemPoolExportPointer(address=%#x)", address);
    }
    return IpcHandles.bytes(handle);
  }

  @Override
  default long memPoolImportPointer(long pool, byte[] handle) {
    MemorySegment data = IpcHandles.of(handle);
    CallFrame frame = enter();
    int status;
    try {
      status = (int) IpcFunctions.POINTER_IMPORT.invokeExact(frame.out, pool, data);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long address = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuMemPoolImportPointer(pool=%#x)", pool);
    }
    return address;
  }
}
