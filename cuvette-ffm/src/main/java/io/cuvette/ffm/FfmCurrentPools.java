package io.cuvette.ffm;

import io.cuvette.driver.PoolCalls;
import java.lang.foreign.MemorySegment;

/** Calls about the default and the current pools; none of them needs a context. Thread-safe. */
interface FfmCurrentPools extends FfmCalls, PoolCalls {

  @Override
  default long deviceGetDefaultMemPool(int device) {
    int handle = contexts().handle(device);
    CallFrame frame = enter();
    int status;
    try {
      status = (int) PoolFunctions.DEVICE_GET_DEFAULT.invokeExact(frame.out, handle);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuDeviceGetDefaultMemPool(device=%d)", device);
    }
    return result;
  }

  @Override
  default long deviceGetMemPool(int device) {
    int handle = contexts().handle(device);
    CallFrame frame = enter();
    int status;
    try {
      status = (int) PoolFunctions.DEVICE_GET.invokeExact(frame.out, handle);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuDeviceGetMemPool(device=%d)", device);
    }
    return result;
  }

  @Override
  default void deviceSetMemPool(int device, long pool) {
    int handle = contexts().handle(device);
    CallFrame frame = enter();
    int status;
    try {
      status = (int) PoolFunctions.DEVICE_SET.invokeExact(handle, pool);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuDeviceSetMemPool(device=%d, pool=%#x)", device, pool);
    }
  }

  @Override
  default long memGetDefaultMemPool(int locationType, int locationId, int allocationType) {
    int place = contexts().location(locationType, locationId);
    CallFrame frame = enter();
    MemorySegment location = frame.location(locationType, place);
    int status;
    try {
      status = (int) PoolFunctions.GET_DEFAULT.invokeExact(frame.out, location, allocationType);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemGetDefaultMemPool(locationType=%d, locationId=%d, allocationType=%d)",
          locationType,
          locationId,
          allocationType);
    }
    return result;
  }

  @Override
  default long memGetMemPool(int locationType, int locationId, int allocationType) {
    int place = contexts().location(locationType, locationId);
    CallFrame frame = enter();
    MemorySegment location = frame.location(locationType, place);
    int status;
    try {
      status = (int) PoolFunctions.GET.invokeExact(frame.out, location, allocationType);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemGetMemPool(locationType=%d, locationId=%d, allocationType=%d)",
          locationType,
          locationId,
          allocationType);
    }
    return result;
  }

  @Override
  default void memSetMemPool(int locationType, int locationId, int allocationType, long pool) {
    int place = contexts().location(locationType, locationId);
    CallFrame frame = enter();
    MemorySegment location = frame.location(locationType, place);
    int status;
    try {
      status = (int) PoolFunctions.SET.invokeExact(location, allocationType, pool);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemSetMemPool(locationType=%d, locationId=%d, allocationType=%d, pool=%#x)",
          locationType,
          locationId,
          allocationType,
          pool);
    }
  }
}
