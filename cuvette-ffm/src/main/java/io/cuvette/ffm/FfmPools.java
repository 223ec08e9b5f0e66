package io.cuvette.ffm;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.PoolProperties;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.stream.IntStream;

/** Calls about one pool; none of them needs a context. Thread-safe. */
interface FfmPools extends FfmCalls, PoolCalls {

  /** The CUmemPool_attribute up to which the value is an int; the others are 64-bit. */
  int LAST_INT_ATTRIBUTE = 3;

  @Override
  default long memPoolCreate(PoolProperties properties) {
    int place = contexts().location(properties.locationType(), properties.locationId());
    MemorySegment structure = PoolStructures.properties(properties, place);
    PoolEnds.HERE.beginMaking();
    try {
      return create(structure, properties);
    } finally {
      PoolEnds.HERE.endMaking();
    }
  }

  private long create(MemorySegment structure, PoolProperties properties) {
    CallFrame frame = enter();
    int status;
    try {
      status = (int) PoolFunctions.CREATE.invokeExact(frame.out, structure);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemPoolCreate(allocationType=%d, handleTypes=%d, locationType=%d, locationId=%d,"
              + " maxBytes=%d)",
          properties.allocationType(),
          properties.handleTypes(),
          properties.locationType(),
          properties.locationId(),
          properties.maxBytes());
    }
    return result;
  }

  @Override
  default void memPoolDestroy(long pool) {
    long alone = PoolEnds.HERE.beginDestroying();
    try {
      destroy(pool);
    } finally {
      PoolEnds.HERE.endDestroying(alone);
    }
  }

  private void destroy(long pool) {
    CallFrame frame = enterToFree();
    if (frame == null) {
      return;
    }
    int status;
    try {
      status = (int) PoolFunctions.DESTROY.invokeExact(pool);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuMemPoolDestroy(pool=%#x)", pool);
    }
  }

  @Override
  default void memPoolTrimTo(long pool, long bytesToKeep) {
    CallFrame frame = enter();
    int status;
    try {
      status = (int) PoolFunctions.TRIM_TO.invokeExact(pool, bytesToKeep);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuMemPoolTrimTo(pool=%#x, bytesToKeep=%d)", pool, bytesToKeep);
    }
  }

  @Override
  default long memPoolGetAttribute(long pool, int attribute) {
    CallFrame frame = enter();
    int status;
    try {
      status = (int) PoolFunctions.GET_ATTRIBUTE.invokeExact(pool, attribute, frame.out);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuMemPoolGetAttribute(pool=%#x, attribute=%d)", pool, attribute);
    }
    return result;
  }

  @Override
  default void memPoolSetAttribute(long pool, int attribute, long value) {
    if (attribute <= LAST_INT_ATTRIBUTE && value != (int) value) {
      throw setAttributeFailure(INVALID_VALUE, pool, attribute, value); // would lose its high bits
    }
    CallFrame frame = enter();
    frame.value(value);
    int status;
    try {
      status = (int) PoolFunctions.SET_ATTRIBUTE.invokeExact(pool, attribute, frame.out);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw setAttributeFailure(status, pool, attribute, value);
    }
  }

  private static CudaException setAttributeFailure(
      int status, long pool, int attribute, long value) {
    return Failure.of(
        status, "cuMemPoolSetAttribute(pool=%#x, attribute=%d, value=%d)", pool, attribute, value);
  }

  @Override
  default int memPoolGetAccess(long pool, int locationType, int locationId) {
    int place = contexts().location(locationType, locationId);
    CallFrame frame = enter();
    MemorySegment location = frame.location(locationType, place);
    int status;
    try {
      status = (int) PoolFunctions.GET_ACCESS.invokeExact(frame.out, pool, location);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemPoolGetAccess(pool=%#x, locationType=%d, locationId=%d)",
          pool,
          locationType,
          locationId);
    }
    return (int) result;
  }

  @Override
  default void memPoolSetAccess(long pool, int locationType, int[] locationIds, int... access) {
    int[] places =
        IntStream.of(locationIds).map(id -> contexts().location(locationType, id)).toArray();
    MemorySegment accesses = PoolStructures.accesses(locationType, places, access);
    long count = places.length;
    CallFrame frame = enter();
    int status;
    try {
      status = (int) PoolFunctions.SET_ACCESS.invokeExact(pool, accesses, count);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemPoolSetAccess(pool=%#x, locationType=%d, locationIds=%s, access=%s)",
          pool,
          locationType,
          Arrays.toString(locationIds),
          Arrays.toString(access));
    }
  }
}
