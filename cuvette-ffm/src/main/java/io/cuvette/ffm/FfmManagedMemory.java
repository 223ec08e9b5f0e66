package io.cuvette.ffm;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.MemoryCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;

/** Calls about managed memory, which both host and device address. Thread-safe. */
interface FfmManagedMemory extends FfmCalls, MemoryCalls {

  /** The CUDA version that brought locations other than a device. */
  int LOCATIONS_SINCE = 12020;

  @Override
  default MemorySegment memAllocManaged(int device, long bytes, int flags) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) MemoryFunctions.ALLOC_MANAGED.invokeExact(frame.out, bytes, flags);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status, "cuMemAllocManaged(bytes=%d, flags=%d, device=%d)", bytes, flags, device);
    }
    try {
      return NativeAccess.memory(result, bytes);
    } catch (OutOfMemoryError e) {
      memFree(device, result);
      throw e;
    }
  }

  @Override
  default void memPrefetchAsync(
      int device, long address, long bytes, int locationType, int locationId, long stream) {
    if (MemoryFunctions.TAKES_LOCATIONS) {
      prefetchToLocation(device, address, bytes, locationType, locationId, stream);
    } else {
      prefetchToDevice(device, address, bytes, locationType, locationId, stream);
    }
  }

  private void prefetchToLocation(
      int device, long address, long bytes, int locationType, int locationId, long stream) {
    int place = contexts().location(locationType, locationId);
    CallFrame frame = enter(device);
    MemorySegment location = frame.location(locationType, place);
    int status;
    try {
      status = (int) MemoryFunctions.PREFETCH.invokeExact(address, bytes, location, 0, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemPrefetchAsync(address=%#x, bytes=%d, locationType=%d, locationId=%d, stream=%#x,"
              + " device=%d)",
          address,
          bytes,
          locationType,
          locationId,
          stream,
          device);
    }
  }

  private void prefetchToDevice(
      int device, long address, long bytes, int locationType, int locationId, long stream) {
    int place = deviceOf(locationType, locationId, "cuMemPrefetchAsync");
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) MemoryFunctions.PREFETCH_TO_DEVICE.invokeExact(address, bytes, place, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemPrefetchAsync(address=%#x, bytes=%d, locationType=%d, locationId=%d, stream=%#x,"
              + " device=%d)",
          address,
          bytes,
          locationType,
          locationId,
          stream,
          device);
    }
  }

  @Override
  default void memAdvise(
      int device, long address, long bytes, int advice, int locationType, int locationId) {
    if (MemoryFunctions.TAKES_LOCATIONS) {
      adviseForLocation(device, address, bytes, advice, locationType, locationId);
    } else {
      adviseForDevice(device, address, bytes, advice, locationType, locationId);
    }
  }

  private void adviseForLocation(
      int device, long address, long bytes, int advice, int locationType, int locationId) {
    int place = contexts().location(locationType, locationId);
    CallFrame frame = enter(device);
    MemorySegment location = frame.location(locationType, place);
    int status;
    try {
      status = (int) MemoryFunctions.ADVISE.invokeExact(address, bytes, advice, location);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemAdvise(address=%#x, bytes=%d, advice=%d, locationType=%d, locationId=%d,"
              + " device=%d)",
          address,
          bytes,
          advice,
          locationType,
          locationId,
          device);
    }
  }

  private void adviseForDevice(
      int device, long address, long bytes, int advice, int locationType, int locationId) {
    int place = deviceOf(locationType, locationId, "cuMemAdvise");
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) MemoryFunctions.ADVISE_FOR_DEVICE.invokeExact(address, bytes, advice, place);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemAdvise(address=%#x, bytes=%d, advice=%d, locationType=%d, locationId=%d,"
              + " device=%d)",
          address,
          bytes,
          advice,
          locationType,
          locationId,
          device);
    }
  }

  @Override
  default int memRangeGetAttribute(int device, int attribute, long address, long bytes) {
    CallFrame frame = enter(device);
    int status;
    try {
      status =
          (int)
              MemoryFunctions.RANGE_GET_ATTRIBUTE.invokeExact(
                  frame.out, (long) Integer.BYTES, attribute, address, bytes);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemRangeGetAttribute(attribute=%d, address=%#x, bytes=%d, device=%d)",
          attribute,
          address,
          bytes,
          device);
    }
    return (int) result;
  }

  @Override
  default int[] memRangeGetAttributeList(
      int device, int attribute, long address, long bytes, int count) {
    if (count < 1) {
      throw listFailure(INVALID_VALUE, device, attribute, address, bytes, count);
    }
    MemorySegment list = Arena.ofAuto().allocate(Layouts.INT, count);
    CallFrame frame = enter(device);
    int status;
    try {
      status =
          (int)
              MemoryFunctions.RANGE_GET_ATTRIBUTE.invokeExact(
                  list.address(), list.byteSize(), attribute, address, bytes);
    } catch (Throwable e) {
      throw frame.broken(e);
    } finally {
      Reference.reachabilityFence(list);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw listFailure(status, device, attribute, address, bytes, count);
    }
    return list.toArray(Layouts.INT);
  }

  private static CudaException listFailure(
      int status, int device, int attribute, long address, long bytes, int count) {
    return Failure.of(
        status,
        "cuMemRangeGetAttribute(attribute=%d, address=%#x, bytes=%d, count=%d, device=%d)",
        attribute,
        address,
        bytes,
        count,
        device);
  }

  /** What a driver without locations takes for one: a device, or the host as a whole. */
  private int deviceOf(int type, int id, String function) {
    return switch (type) {
      case MemLocationType.DEVICE -> contexts().handle(id);
      case MemLocationType.HOST -> MemLocationType.HOST_AS_DEVICE;
      default -> throw Missing.exception(function, LOCATIONS_SINCE);
    };
  }
}
