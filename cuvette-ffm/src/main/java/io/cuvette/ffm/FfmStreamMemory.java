package io.cuvette.ffm;

import io.cuvette.driver.PoolCalls;

/** Calls that allocate and free in stream order. Thread-safe. */
interface FfmStreamMemory extends FfmCalls, PoolCalls {

  @Override
  default long memAllocAsync(int device, long bytes, long stream) {
    CallFrame frame = enterFor(device, stream);
    int status;
    do {
      try {
        status = (int) PoolFunctions.ALLOC.invokeExact(frame.out, bytes, stream);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status, "cuMemAllocAsync(bytes=%d, stream=%#x, device=%d)", bytes, stream, device);
    }
    return result;
  }

  @Override
  default long memAllocFromPoolAsync(int device, long bytes, long pool, long stream) {
    CallFrame frame = enterFor(device, stream);
    int status;
    do {
      try {
        status = (int) PoolFunctions.ALLOC_FROM.invokeExact(frame.out, bytes, pool, stream);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemAllocFromPoolAsync(bytes=%d, pool=%#x, stream=%#x, device=%d)",
          bytes,
          pool,
          stream,
          device);
    }
    return result;
  }

  @Override
  default void memFreeAsync(int device, long address, long stream) {
    CallFrame frame = enterToFree(device, stream);
    if (frame == null) {
      return;
    }
    int status;
    do {
      try {
        status = (int) PoolFunctions.FREE.invokeExact(address, stream);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status, "cuMemFreeAsync(address=%#x, stream=%#x, device=%d)", address, stream, device);
    }
  }
}
