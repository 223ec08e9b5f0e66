package io.cuvette.ffm.part;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SEGMENT;
import static io.cuvette.ffm.link.Layouts.SIZE;

import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.Contexts;
import io.cuvette.ffm.library.Libcuda;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * Calls about pools, none of which needs a context, and those that allocate from them in stream
 * order, which are written out. Thread-safe.
 */
public interface FfmPools extends Part, PoolCalls, OrderedCalls {
  MethodHandle DEVICE_GET_DEFAULT =
      Libcuda.function("cuDeviceGetDefaultMemPool", 11020, POINTER, INT);
  MethodHandle DEVICE_GET = Libcuda.function("cuDeviceGetMemPool", 11020, POINTER, INT);
  MethodHandle DEVICE_SET = Libcuda.function("cuDeviceSetMemPool", 11020, INT, POINTER);

  /** Since CUDA 13, like the two that follow; before, only devices have pools of their own. */
  MethodHandle GET_DEFAULT =
      Libcuda.function("cuMemGetDefaultMemPool", 13000, POINTER, SEGMENT, INT);

  MethodHandle GET = Libcuda.function("cuMemGetMemPool", 13000, POINTER, SEGMENT, INT);
  MethodHandle SET = Libcuda.function("cuMemSetMemPool", 13000, SEGMENT, INT, POINTER);

  MethodHandle CREATE = Libcuda.function("cuMemPoolCreate", 11020, POINTER, SEGMENT);
  MethodHandle DESTROY = Libcuda.function("cuMemPoolDestroy", 11020, POINTER);
  MethodHandle TRIM_TO = Libcuda.function("cuMemPoolTrimTo", 11020, POINTER, SIZE);
  MethodHandle GET_ATTRIBUTE =
      Libcuda.function("cuMemPoolGetAttribute", 11020, POINTER, INT, POINTER);
  MethodHandle SET_ATTRIBUTE =
      Libcuda.function("cuMemPoolSetAttribute", 11020, POINTER, INT, POINTER);
  MethodHandle GET_ACCESS =
      Libcuda.function("cuMemPoolGetAccess", 11020, POINTER, POINTER, SEGMENT);
  MethodHandle SET_ACCESS = Libcuda.function("cuMemPoolSetAccess", 11020, POINTER, SEGMENT, SIZE);
  MethodHandle ALLOC = Libcuda.function("cuMemAllocAsync", 11020, POINTER, SIZE, POINTER);
  MethodHandle ALLOC_FROM =
      Libcuda.function("cuMemAllocFromPoolAsync", 11020, POINTER, SIZE, POINTER, POINTER);
  MethodHandle FREE = Libcuda.function("cuMemFreeAsync", 11020, POINTER, POINTER);

  @Override
  default long deviceGetDefaultMemPool(int device) {
    int handle = contexts().handle(device);
    return Call.of("cuDeviceGetDefaultMemPool(device=%d)", device)
        .run(frame -> (int) DEVICE_GET_DEFAULT.invokeExact(frame.out, handle), enter());
  }

  @Override
  default long deviceGetMemPool(int device) {
    int handle = contexts().handle(device);
    return Call.of("cuDeviceGetMemPool(device=%d)", device)
        .run(frame -> (int) DEVICE_GET.invokeExact(frame.out, handle), enter());
  }

  @Override
  default void deviceSetMemPool(int device, long pool) {
    int handle = contexts().handle(device);
    Call.of("cuDeviceSetMemPool(device=%d, pool=%#x)", device, pool)
        .run(_ -> (int) DEVICE_SET.invokeExact(handle, pool), enter());
  }

  @Override
  default long memGetDefaultMemPool(int locationType, int locationId, int allocationType) {
    int place = contexts().location(locationType, locationId);
    return Call.of(
            "cuMemGetDefaultMemPool(locationType=%d, locationId=%d, allocationType=%d)",
            locationType, locationId, allocationType)
        .run(
            frame ->
                (int)
                    GET_DEFAULT.invokeExact(
                        frame.out, frame.location(locationType, place), allocationType),
            enter());
  }

  @Override
  default long memGetMemPool(int locationType, int locationId, int allocationType) {
    int place = contexts().location(locationType, locationId);
    return Call.of(
            "cuMemGetMemPool(locationType=%d, locationId=%d, allocationType=%d)",
            locationType, locationId, allocationType)
        .run(
            frame ->
                (int)
                    GET.invokeExact(frame.out, frame.location(locationType, place), allocationType),
            enter());
  }

  @Override
  default void memSetMemPool(int locationType, int locationId, int allocationType, long pool) {
    int place = contexts().location(locationType, locationId);
    Call.of(
            "cuMemSetMemPool(locationType=%d, locationId=%d, allocationType=%d, pool=%#x)",
            locationType, locationId, allocationType, pool)
        .run(
            frame ->
                (int) SET.invokeExact(frame.location(locationType, place), allocationType, pool),
            enter());
  }

  @Override
  default long memPoolCreate(PoolProperties properties) {
    int place = contexts().location(properties.locationType(), properties.locationId());
    MemorySegment structure = PoolStructures.properties(properties, place);
    Call call =
        Call.of(
            "cuMemPoolCreate(allocationType=%d, handleTypes=%d, locationType=%d, locationId=%d,"
                + " maxBytes=%d)",
            properties.allocationType(),
            properties.handleTypes(),
            properties.locationType(),
            properties.locationId(),
            properties.maxBytes());
    PoolEnds.HERE.beginMaking();
    try {
      return call.run(frame -> (int) CREATE.invokeExact(frame.out, structure), enter());
    } finally {
      PoolEnds.HERE.endMaking();
    }
  }

  @Override
  default void memPoolDestroy(long pool) {
    long alone = PoolEnds.HERE.beginDestroying();
    try {
      entry().free(DESTROY, pool, "cuMemPoolDestroy(pool=%#x)");
    } finally {
      PoolEnds.HERE.endDestroying(alone);
    }
  }

  @Override
  default void memPoolTrimTo(long pool, long bytesToKeep) {
    Call.of("cuMemPoolTrimTo(pool=%#x, bytesToKeep=%d)", pool, bytesToKeep)
        .run(_ -> (int) TRIM_TO.invokeExact(pool, bytesToKeep), enter());
  }

  @Override
  default long memPoolGetAttribute(long pool, int attribute) {
    return Call.of("cuMemPoolGetAttribute(pool=%#x, attribute=%d)", pool, attribute)
        .run(frame -> (int) GET_ATTRIBUTE.invokeExact(pool, attribute, frame.out), enter());
  }

  @Override
  default void memPoolSetAttribute(long pool, int attribute, long value) {
    Call call =
        Call.of("cuMemPoolSetAttribute(pool=%#x, attribute=%d, value=%d)", pool, attribute, value);
    boolean isInt = attribute <= MemPoolAttribute.REUSE_ALLOW_INTERNAL_DEPENDENCIES;
    if (isInt && value != (int) value) {
      throw call.failed(Call.INVALID_VALUE); // would lose its high bits
    }
    call.run(
        frame -> (int) SET_ATTRIBUTE.invokeExact(pool, attribute, frame.value(value)), enter());
  }

  @Override
  default int memPoolGetAccess(long pool, int locationType, int locationId) {
    int place = contexts().location(locationType, locationId);
    return (int)
        Call.of(
                "cuMemPoolGetAccess(pool=%#x, locationType=%d, locationId=%d)",
                pool, locationType, locationId)
            .run(
                frame ->
                    (int)
                        GET_ACCESS.invokeExact(
                            frame.out, pool, frame.location(locationType, place)),
                enter());
  }

  @Override
  default void memPoolSetAccess(long pool, int locationType, int[] locationIds, int... access) {
    Contexts contexts = contexts();
    int[] places =
        IntStream.of(locationIds).map(id -> contexts.location(locationType, id)).toArray();
    MemorySegment accesses = PoolStructures.accesses(locationType, places, access);
    long count = places.length;
    Call.of(
            "cuMemPoolSetAccess(pool=%#x, locationType=%d, locationIds=%s, access=%s)",
            pool, locationType, Arrays.toString(locationIds), Arrays.toString(access))
        .run(_ -> (int) SET_ACCESS.invokeExact(pool, accesses, count), enter());
  }

  @Override
  default long memAllocAsync(int device, long bytes, long stream) {
    CallFrame frame = enterFor(device, stream);
    int status;
    do {
      try {
        status = (int) ALLOC.invokeExact(frame.out, bytes, stream);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Call.of("cuMemAllocAsync(bytes=%d, stream=%#x, device=%d)", bytes, stream, device)
          .failed(status);
    }
    return result;
  }

  @Override
  default long memAllocFromPoolAsync(int device, long bytes, long pool, long stream) {
    CallFrame frame = enterFor(device, stream);
    int status;
    do {
      try {
        status = (int) ALLOC_FROM.invokeExact(frame.out, bytes, pool, stream);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Call.of(
              "cuMemAllocFromPoolAsync(bytes=%d, pool=%#x, stream=%#x, device=%d)",
              bytes, pool, stream, device)
          .failed(status);
    }
    return result;
  }

  @Override
  default void memFreeAsync(int device, long address, long stream) {
    CallFrame frame = entry().enterToFree(device, stream);
    if (frame == null) {
      return;
    }
    int status;
    do {
      try {
        status = (int) FREE.invokeExact(address, stream);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    frame.leave();
    if (status != SUCCESS) {
      throw Call.of("cuMemFreeAsync(address=%#x, stream=%#x, device=%d)", address, stream, device)
          .failed(status);
    }
  }
}
