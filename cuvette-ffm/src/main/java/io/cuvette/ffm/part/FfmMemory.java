package io.cuvette.ffm.part;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.LOCATION;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SEGMENT;
import static io.cuvette.ffm.link.Layouts.SIZE;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.TransferCalls;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.library.DriverLibrary;
import io.cuvette.ffm.library.Libcuda;
import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Calls about device memory, page-locked and managed host memory and pointers; copies and fills in
 * stream order. Thread-safe.
 */
public interface FfmMemory extends Part, MemoryCalls, TransferCalls {
  MethodHandle ALLOC = Libcuda.required("cuMemAlloc", 3020, POINTER, SIZE);
  MethodHandle FREE = Libcuda.required("cuMemFree", 3020, POINTER);
  MethodHandle HOST_ALLOC = Libcuda.required("cuMemHostAlloc", 2020, POINTER, SIZE, INT);
  MethodHandle FREE_HOST = Libcuda.required("cuMemFreeHost", 2000, POINTER);
  MethodHandle ALLOC_MANAGED = Libcuda.function("cuMemAllocManaged", 6000, POINTER, SIZE, INT);
  MethodHandle COPY = Libcuda.required("cuMemcpyAsync", 4000, POINTER, POINTER, SIZE, POINTER);
  MethodHandle COPY_TO_DEVICE =
      Libcuda.required("cuMemcpyHtoDAsync", 3020, POINTER, SEGMENT, SIZE, POINTER);
  MethodHandle COPY_TO_HOST =
      Libcuda.required("cuMemcpyDtoHAsync", 3020, SEGMENT, POINTER, SIZE, POINTER);
  MethodHandle COPY_PEER =
      Libcuda.function(
          "cuMemcpyPeerAsync", 4000, POINTER, POINTER, POINTER, POINTER, SIZE, POINTER);
  MethodHandle FILL_8 = Libcuda.required("cuMemsetD8Async", 3020, POINTER, INT, SIZE, POINTER);
  MethodHandle FILL_16 = Libcuda.required("cuMemsetD16Async", 3020, POINTER, INT, SIZE, POINTER);
  MethodHandle FILL_32 = Libcuda.required("cuMemsetD32Async", 3020, POINTER, INT, SIZE, POINTER);

  /** Since CUDA 12.2 the place is a location, which can be a node of the host; before, a device. */
  boolean TAKES_LOCATIONS =
      Libcuda.has("cuMemPrefetchAsync", 12020) && Libcuda.has("cuMemAdvise", 12020);

  MethodHandle PREFETCH =
      Libcuda.function("cuMemPrefetchAsync", 12020, POINTER, SIZE, LOCATION, INT, POINTER);
  MethodHandle PREFETCH_TO_DEVICE =
      Libcuda.function("cuMemPrefetchAsync", 8000, POINTER, SIZE, INT, POINTER);
  MethodHandle ADVISE = Libcuda.function("cuMemAdvise", 12020, POINTER, SIZE, INT, LOCATION);
  MethodHandle ADVISE_FOR_DEVICE = Libcuda.function("cuMemAdvise", 8000, POINTER, SIZE, INT, INT);
  MethodHandle RANGE_GET_ATTRIBUTE =
      Libcuda.function("cuMemRangeGetAttribute", 8000, SEGMENT, SIZE, INT, POINTER, SIZE);
  MethodHandle POINTER_GET_ATTRIBUTE =
      Libcuda.required("cuPointerGetAttribute", 4000, POINTER, INT, POINTER);

  @Override
  default long memAlloc(int device, long bytes) {
    return Call.of("cuMemAlloc(bytes=%d, device=%d)", bytes, device)
        .run(frame -> (int) ALLOC.invokeExact(frame.out, bytes), enter(device));
  }

  @Override
  default void memFree(int device, long address) {
    entry().free(FREE, address, device, "cuMemFree(address=%#x, device=%d)");
  }

  @Override
  default MemorySegment memHostAlloc(int device, long bytes, int flags) {
    long address =
        Call.of("cuMemHostAlloc(bytes=%d, flags=%d, device=%d)", bytes, flags, device)
            .run(frame -> (int) HOST_ALLOC.invokeExact(frame.out, bytes, flags), enter(device));
    try {
      return NativeAccess.memory(address, bytes);
    } catch (OutOfMemoryError e) {
      memFreeHost(device, address);
      throw e;
    }
  }

  @Override
  default void memFreeHost(int device, long address) {
    entry().free(FREE_HOST, address, device, "cuMemFreeHost(address=%#x, device=%d)");
  }

  @Override
  default MemorySegment hostView(int device, long address, long bytes, Arena arena) {
    return NativeAccess.memory(address, bytes, arena);
  }

  @Override
  default MemorySegment memAllocManaged(int device, long bytes, int flags) {
    long address =
        Call.of("cuMemAllocManaged(bytes=%d, flags=%d, device=%d)", bytes, flags, device)
            .run(frame -> (int) ALLOC_MANAGED.invokeExact(frame.out, bytes, flags), enter(device));
    try {
      return NativeAccess.memory(address, bytes);
    } catch (OutOfMemoryError e) {
      memFree(device, address);
      throw e;
    }
  }

  @Override
  default long pointerGetAttribute(int device, int attribute, long address) {
    return Call.of(
            "cuPointerGetAttribute(attribute=%d, address=%#x, device=%d)",
            attribute, address, device)
        .run(
            frame -> (int) POINTER_GET_ATTRIBUTE.invokeExact(frame.out, attribute, address),
            enter(device));
  }

  @Override
  default void memPrefetchAsync(
      int device, long address, long bytes, int locationType, int locationId, long stream) {
    Call call =
        Call.of(
            "cuMemPrefetchAsync(address=%#x, bytes=%d, locationType=%d, locationId=%d, stream=%#x,"
                + " device=%d)",
            address, bytes, locationType, locationId, stream, device);
    int place = place(locationType, locationId, "cuMemPrefetchAsync");
    call.run(
        TAKES_LOCATIONS
            ? frame ->
                (int)
                    PREFETCH.invokeExact(
                        address, bytes, frame.location(locationType, place), 0, stream)
            : _ -> (int) PREFETCH_TO_DEVICE.invokeExact(address, bytes, place, stream),
        enter(device));
  }

  @Override
  default void memAdvise(
      int device, long address, long bytes, int advice, int locationType, int locationId) {
    Call call =
        Call.of(
            "cuMemAdvise(address=%#x, bytes=%d, advice=%d, locationType=%d, locationId=%d,"
                + " device=%d)",
            address, bytes, advice, locationType, locationId, device);
    int place = place(locationType, locationId, "cuMemAdvise");
    call.run(
        TAKES_LOCATIONS
            ? frame ->
                (int)
                    ADVISE.invokeExact(address, bytes, advice, frame.location(locationType, place))
            : _ -> (int) ADVISE_FOR_DEVICE.invokeExact(address, bytes, advice, place),
        enter(device));
  }

  /**
   * A place as the driver takes it; one without locations knows devices and the host as a whole.
   */
  private int place(int type, int id, String function) {
    if (TAKES_LOCATIONS || type == MemLocationType.DEVICE) {
      return contexts().location(type, id);
    }
    if (type == MemLocationType.HOST) {
      return MemLocationType.HOST_AS_DEVICE;
    }
    throw DriverLibrary.withoutFunction(CudaStatus.CALL_REQUIRES_NEWER_DRIVER, function, 12020);
  }

  @Override
  default int memRangeGetAttribute(int device, int attribute, long address, long bytes) {
    Call call =
        Call.of(
            "cuMemRangeGetAttribute(attribute=%d, address=%#x, bytes=%d, device=%d)",
            attribute, address, bytes, device);
    return rangeGetAttribute(call, device, attribute, address, bytes, 1)[0];
  }

  @Override
  default int[] memRangeGetAttributeList(
      int device, int attribute, long address, long bytes, int count) {
    Call call =
        Call.of(
            "cuMemRangeGetAttribute(attribute=%d, address=%#x, bytes=%d, count=%d, device=%d)",
            attribute, address, bytes, count, device);
    if (count < 1) {
      throw call.failed(Call.INVALID_VALUE);
    }
    return rangeGetAttribute(call, device, attribute, address, bytes, count);
  }

  private int[] rangeGetAttribute(
      Call call, int device, int attribute, long address, long bytes, int count) {
    MemorySegment values = Arena.ofAuto().allocate(INT, count);
    long size = values.byteSize();
    call.run(
        _ -> (int) RANGE_GET_ATTRIBUTE.invokeExact(values, size, attribute, address, bytes),
        enter(device));
    return values.toArray(INT);
  }

  @Override
  default void memcpyAsync(int device, long target, long source, long bytes, long stream) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status = (int) COPY.invokeExact(target, source, bytes, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Call.of(
              "cuMemcpyAsync(target=%#x, source=%#x, bytes=%d, stream=%#x, device=%d)",
              target, source, bytes, stream, device)
          .failed(status);
    }
  }

  @Override
  default void memcpyHtoDAsync(int device, long target, MemorySegment source, long stream) {
    checkNative("source", source);
    long bytes = source.byteSize();
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) COPY_TO_DEVICE.invokeExact(target, source, bytes, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Call.of(
              "cuMemcpyHtoDAsync(target=%#x, source=%#x, bytes=%d, stream=%#x, device=%d)",
              target, source.address(), bytes, stream, device)
          .failed(status);
    }
  }

  @Override
  default void memcpyDtoHAsync(int device, MemorySegment target, long source, long stream) {
    checkNative("target", target);
    long bytes = target.byteSize();
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) COPY_TO_HOST.invokeExact(target, source, bytes, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Call.of(
              "cuMemcpyDtoHAsync(target=%#x, source=%#x, bytes=%d, stream=%#x, device=%d)",
              target.address(), source, bytes, stream, device)
          .failed(status);
    }
  }

  private static void checkNative(String name, MemorySegment segment) {
    if (!segment.isNative()) {
      throw new IllegalArgumentException(
          name + ": heap segment (expected: native memory; copy it into a PinnedBuffer first)");
    }
  }

  @Override
  default void memcpyPeerAsync(
      int streamDevice,
      long target,
      int targetDevice,
      long source,
      int sourceDevice,
      long bytes,
      long stream) {
    long to = entry().context(targetDevice);
    long from = entry().context(sourceDevice);
    Call.of(
            "cuMemcpyPeerAsync(target=%#x, targetDevice=%d, source=%#x, sourceDevice=%d, bytes=%d,"
                + " stream=%#x, streamDevice=%d)",
            target, targetDevice, source, sourceDevice, bytes, stream, streamDevice)
        .run(
            _ -> (int) COPY_PEER.invokeExact(target, to, source, from, bytes, stream),
            enterAsIs(streamDevice));
  }

  @Override
  default void memsetD8Async(int device, long target, byte value, long count, long stream) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status = (int) FILL_8.invokeExact(target, Byte.toUnsignedInt(value), count, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Call.of(
              "cuMemsetD8Async(target=%#x, value=%d, count=%d, stream=%#x, device=%d)",
              target, value, count, stream, device)
          .failed(status);
    }
  }

  @Override
  default void memsetD16Async(int device, long target, short value, long count, long stream) {
    int pattern = Short.toUnsignedInt(value);
    Call.of(
            "cuMemsetD16Async(target=%#x, value=%d, count=%d, stream=%#x, device=%d)",
            target, value, count, stream, device)
        .run(_ -> (int) FILL_16.invokeExact(target, pattern, count, stream), enterAsIs(device));
  }

  @Override
  default void memsetD32Async(int device, long target, int value, long count, long stream) {
    Call.of(
            "cuMemsetD32Async(target=%#x, value=%d, count=%d, stream=%#x, device=%d)",
            target, value, count, stream, device)
        .run(_ -> (int) FILL_32.invokeExact(target, value, count, stream), enterAsIs(device));
  }
}
