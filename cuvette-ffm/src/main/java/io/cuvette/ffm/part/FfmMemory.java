package io.cuvette.ffm.part;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.DriverLibrary;
import io.cuvette.ffm.library.Libcuda;
import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Calls about device memory, page-locked and managed host memory, and pointers. Thread-safe. */
public final class FfmMemory extends Part implements MemoryCalls {
  public static final DriverFunction ALLOC =
      required("cuMemAlloc(bytes=%d, device=%d)", 3020, OUT, SIZE);
  public static final DriverFunction FREE =
      required("cuMemFree(address=%#x, device=%d)", 3020, POINTER);
  public static final DriverFunction HOST_ALLOC =
      required("cuMemHostAlloc(bytes=%d, flags=%d, device=%d)", 2020, OUT, SIZE, INT);
  public static final DriverFunction FREE_HOST =
      required("cuMemFreeHost(address=%#x, device=%d)", 2000, POINTER);
  public static final MethodHandle HOST_REGISTER =
      Libcuda.function("cuMemHostRegister", 6050, SEGMENT, SIZE, INT);
  public static final DriverFunction HOST_UNREGISTER =
      optional("cuMemHostUnregister(address=%#x, device=%d)", 4000, POINTER);
  public static final DriverFunction ALLOC_MANAGED =
      optional("cuMemAllocManaged(bytes=%d, flags=%d, device=%d)", 6000, OUT, SIZE, INT);

  /** Since CUDA 12.2 the place is a location, which can be a node of the host; before, a device. */
  private static final boolean TAKES_LOCATIONS =
      Libcuda.has("cuMemPrefetchAsync", 12020) && Libcuda.has("cuMemAdvise", 12020);

  public static final MethodHandle PREFETCH =
      Libcuda.function("cuMemPrefetchAsync", 12020, POINTER, SIZE, LOCATION, INT, POINTER);
  public static final MethodHandle PREFETCH_TO_DEVICE =
      Libcuda.function("cuMemPrefetchAsync", 8000, POINTER, SIZE, INT, POINTER);
  public static final MethodHandle ADVISE =
      Libcuda.function("cuMemAdvise", 12020, POINTER, SIZE, INT, LOCATION);
  public static final MethodHandle ADVISE_FOR_DEVICE =
      Libcuda.function("cuMemAdvise", 8000, POINTER, SIZE, INT, INT);
  public static final MethodHandle RANGE_GET_ATTRIBUTE =
      Libcuda.function("cuMemRangeGetAttribute", 8000, SEGMENT, SIZE, INT, POINTER, SIZE);
  public static final DriverFunction POINTER_GET_ATTRIBUTE =
      required(
          "cuPointerGetAttribute(attribute=%d, address=%#x, device=%d)", 4000, OUT, INT, POINTER);

  /** The part of the driver whose calls start here. */
  public FfmMemory(Entry entry) {
    super(entry);
  }

  @Override
  public long memAlloc(int device, long bytes) {
    return ALLOC.call(bytes, device, enter(device));
  }

  @Override
  public void memFree(int device, long address) {
    FREE.free(address, device, entry.enterToFree(device));
  }

  @Override
  public MemorySegment memHostAlloc(int device, long bytes, int flags) {
    long address = HOST_ALLOC.call(bytes, flags, device, enter(device));
    try {
      return NativeAccess.memory(address, bytes);
    } catch (OutOfMemoryError e) {
      memFreeHost(device, address);
      throw e;
    }
  }

  @Override
  public void memFreeHost(int device, long address) {
    FREE_HOST.free(address, device, entry.enterToFree(device));
  }

  @Override
  public void memHostRegister(int device, MemorySegment memory, int flags) {
    FfmTransfers.checkNative("memory", memory);
    long bytes = memory.byteSize();
    Call.of(
            "cuMemHostRegister(address=%#x, bytes=%d, flags=%d, device=%d)",
            memory.address(), bytes, flags, device)
        .run(_ -> (int) HOST_REGISTER.invokeExact(memory, bytes, flags), enter(device));
  }

  @Override
  public void memHostUnregister(int device, long address) {
    HOST_UNREGISTER.free(address, device, entry.enterToFree(device));
  }

  @Override
  public MemorySegment hostView(int device, long address, long bytes, Arena arena) {
    return NativeAccess.memory(address, bytes, arena);
  }

  @Override
  public MemorySegment memAllocManaged(int device, long bytes, int flags) {
    long address = ALLOC_MANAGED.call(bytes, flags, device, enter(device));
    try {
      return NativeAccess.memory(address, bytes);
    } catch (OutOfMemoryError e) {
      memFree(device, address);
      throw e;
    }
  }

  @Override
  public long pointerGetAttribute(int device, int attribute, long address) {
    return POINTER_GET_ATTRIBUTE.call(attribute, address, device, enter(device));
  }

  @Override
  public void memPrefetchAsync(
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
  public void memAdvise(
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
  public int memRangeGetAttribute(int device, int attribute, long address, long bytes) {
    Call call =
        Call.of(
            "cuMemRangeGetAttribute(attribute=%d, address=%#x, bytes=%d, device=%d)",
            attribute, address, bytes, device);
    return rangeGetAttribute(call, device, attribute, address, bytes, 1)[0];
  }

  @Override
  public int[] memRangeGetAttributeList(
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
}
