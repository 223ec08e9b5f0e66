package io.cuvette.ffm;

import io.cuvette.driver.MemoryCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Calls about device memory, page-locked host memory and pointers. Thread-safe. */
interface FfmMemory extends FfmCalls, MemoryCalls {

  @Override
  default long memAlloc(int device, long bytes) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) MemoryFunctions.ALLOC.invokeExact(frame.out, bytes);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuMemAlloc(bytes=%d, device=%d)", bytes, device);
    }
    return result;
  }

  @Override
  default void memFree(int device, long address) {
    CallFrame frame = enterToFree(device);
    if (frame == null) {
      return;
    }
    int status;
    try {
      status = (int) MemoryFunctions.FREE.invokeExact(address);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuMemFree(address=%#x, device=%d)", address, device);
    }
  }

  @Override
  default MemorySegment memHostAlloc(int device, long bytes, int flags) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) MemoryFunctions.HOST_ALLOC.invokeExact(frame.out, bytes, flags);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status, "cuMemHostAlloc(bytes=%d, flags=%d, device=%d)", bytes, flags, device);
    }
    try {
      return NativeAccess.memory(result, bytes);
    } catch (OutOfMemoryError e) {
      memFreeHost(device, result);
      throw e;
    }
  }

  @Override
  default void memFreeHost(int device, long address) {
    CallFrame frame = enterToFree(device);
    if (frame == null) {
      return;
    }
    int status;
    try {
      status = (int) MemoryFunctions.FREE_HOST.invokeExact(address);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuMemFreeHost(address=%#x, device=%d)", address, device);
    }
  }

  @Override
  default MemorySegment hostView(int device, long address, long bytes, Arena arena) {
    return NativeAccess.memory(address, bytes, arena);
  }

  @Override
  default long pointerGetAttribute(int device, int attribute, long address) {
    CallFrame frame = enter(device);
    int status;
    try {
      status =
          (int) MemoryFunctions.POINTER_GET_ATTRIBUTE.invokeExact(frame.out, attribute, address);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuPointerGetAttribute(attribute=%d, address=%#x, device=%d)",
          attribute,
          address,
          device);
    }
    return result;
  }
}
