package io.cuvette.ffm.part;

import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.Contexts;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;
import java.util.stream.IntStream;

/** Calls about pools, none of which needs a context. Thread-safe. */
public final class FfmPools extends Part implements PoolCalls {
  public static final DriverFunction DEVICE_GET_DEFAULT =
      optional("cuDeviceGetDefaultMemPool(device=%2$d)", 11020, OUT, INT);
  public static final DriverFunction DEVICE_GET =
      optional("cuDeviceGetMemPool(device=%2$d)", 11020, OUT, INT);
  public static final DriverFunction DEVICE_SET =
      optional("cuDeviceSetMemPool(device=%3$d, pool=%2$#x)", 11020, INT, POINTER);

  /** Since CUDA 13, like the two that follow; before, only devices have pools of their own. */
  public static final MethodHandle GET_DEFAULT =
      Libcuda.function("cuMemGetDefaultMemPool", 13000, POINTER, SEGMENT, INT);

  public static final MethodHandle GET =
      Libcuda.function("cuMemGetMemPool", 13000, POINTER, SEGMENT, INT);
  public static final MethodHandle SET =
      Libcuda.function("cuMemSetMemPool", 13000, SEGMENT, INT, POINTER);

  public static final MethodHandle CREATE =
      Libcuda.function("cuMemPoolCreate", 11020, POINTER, SEGMENT);
  public static final DriverFunction DESTROY =
      optional("cuMemPoolDestroy(pool=%#x)", 11020, POINTER);
  public static final DriverFunction TRIM_TO =
      optional("cuMemPoolTrimTo(pool=%#x, bytesToKeep=%d)", 11020, POINTER, SIZE);
  public static final DriverFunction GET_ATTRIBUTE =
      optional("cuMemPoolGetAttribute(pool=%#x, attribute=%d)", 11020, POINTER, INT, OUT);
  public static final MethodHandle SET_ATTRIBUTE =
      Libcuda.function("cuMemPoolSetAttribute", 11020, POINTER, INT, POINTER);
  public static final MethodHandle GET_ACCESS =
      Libcuda.function("cuMemPoolGetAccess", 11020, POINTER, POINTER, SEGMENT);
  public static final MethodHandle SET_ACCESS =
      Libcuda.function("cuMemPoolSetAccess", 11020, POINTER, SEGMENT, SIZE);

  /** The part of the driver whose calls start here. */
  public FfmPools(Entry entry) {
    super(entry);
  }

  @Override
  public long deviceGetDefaultMemPool(int device) {
    return DEVICE_GET_DEFAULT.call(contexts().handle(device), device, enter());
  }

  @Override
  public long deviceGetMemPool(int device) {
    return DEVICE_GET.call(contexts().handle(device), device, enter());
  }

  @Override
  public void deviceSetMemPool(int device, long pool) {
    DEVICE_SET.call(contexts().handle(device), pool, device, enter());
  }

  @Override
  public long memGetDefaultMemPool(int locationType, int locationId, int allocationType) {
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
  public long memGetMemPool(int locationType, int locationId, int allocationType) {
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
  public void memSetMemPool(int locationType, int locationId, int allocationType, long pool) {
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
  public long memPoolCreate(PoolProperties properties) {
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
  public void memPoolDestroy(long pool) {
    long alone = PoolEnds.HERE.beginDestroying();
    try {
      DESTROY.free(pool, 0, entry.enterToFree());
    } finally {
      PoolEnds.HERE.endDestroying(alone);
    }
  }

  @Override
  public void memPoolTrimTo(long pool, long bytesToKeep) {
    TRIM_TO.call(pool, bytesToKeep, enter());
  }

  @Override
  public long memPoolGetAttribute(long pool, int attribute) {
    return GET_ATTRIBUTE.call(pool, attribute, enter());
  }

  @Override
  public void memPoolSetAttribute(long pool, int attribute, long value) {
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
  public int memPoolGetAccess(long pool, int locationType, int locationId) {
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
  public void memPoolSetAccess(long pool, int locationType, int[] locationIds, int... access) {
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
}
