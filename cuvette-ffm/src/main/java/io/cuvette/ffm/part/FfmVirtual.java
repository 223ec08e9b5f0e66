package io.cuvette.ffm.part;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.Contexts;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;
import java.util.stream.IntStream;

/** Calls about virtual memory, none of which needs a context. Thread-safe. */
public final class FfmVirtual extends Part implements VirtualCalls {
  public static final MethodHandle GRANULARITY =
      Libcuda.function("cuMemGetAllocationGranularity", 10020, POINTER, SEGMENT, INT);
  public static final DriverFunction RESERVE =
      optional(
          "cuMemAddressReserve(bytes=%d, alignment=%d, address=%#x)",
          10020, OUT, SIZE, SIZE, POINTER, SIZE);
  public static final DriverFunction FREE =
      optional("cuMemAddressFree(address=%#x, bytes=%d)", 10020, POINTER, SIZE);
  public static final MethodHandle CREATE =
      Libcuda.function("cuMemCreate", 10020, POINTER, SIZE, SEGMENT, SIZE);
  public static final DriverFunction MAP =
      optional(
          "cuMemMap(address=%#x, bytes=%d, offset=%d, handle=%#x)",
          10020, POINTER, SIZE, SIZE, POINTER, SIZE);
  public static final DriverFunction UNMAP =
      optional("cuMemUnmap(address=%#x, bytes=%d)", 10020, POINTER, SIZE);
  public static final MethodHandle SET_ACCESS =
      Libcuda.function("cuMemSetAccess", 10020, POINTER, SIZE, SEGMENT, SIZE);
  public static final MethodHandle GET_ACCESS =
      Libcuda.function("cuMemGetAccess", 10020, POINTER, SEGMENT, POINTER);
  public static final DriverFunction RELEASE = optional("cuMemRelease(handle=%#x)", 10020, POINTER);
  public static final DriverFunction RETAIN =
      optional("cuMemRetainAllocationHandle(address=%#x)", 11000, OUT, POINTER);
  public static final MethodHandle GET_PROPERTIES =
      Libcuda.function("cuMemGetAllocationPropertiesFromHandle", 10020, SEGMENT, POINTER);
  public static final DriverFunction EXPORT =
      optional("cuMemExportToShareableHandle(handle=%#x)", 10020, OUT, POINTER, INT, SIZE);

  /** The descriptor is the pointer. */
  public static final DriverFunction IMPORT =
      optional("cuMemImportFromShareableHandle(descriptor=%d)", 10020, OUT, POINTER, INT);

  /** The part of the driver whose calls start here. */
  public FfmVirtual(Entry entry) {
    super(entry);
  }

  @Override
  public long memGetAllocationGranularity(AllocationProperties properties, int option) {
    MemorySegment structure = structure(properties);
    return Call.of("cuMemGetAllocationGranularity(%s, option=%d)", properties, option)
        .run(frame -> (int) GRANULARITY.invokeExact(frame.out, structure, option), enter());
  }

  private MemorySegment structure(AllocationProperties properties) {
    int place = contexts().location(properties.locationType(), properties.locationId());
    return AllocationStructure.of(properties, place);
  }

  @Override
  public long memAddressReserve(long bytes, long alignment, long address) {
    return RESERVE.call(bytes, alignment, address, 0, enter());
  }

  @Override
  public void memAddressFree(long address, long bytes) {
    FREE.free(address, bytes, entry.enterToFree());
  }

  @Override
  public long memCreate(long bytes, AllocationProperties properties) {
    MemorySegment structure = structure(properties);
    return Call.of("cuMemCreate(bytes=%d, %s)", bytes, properties)
        .run(frame -> (int) CREATE.invokeExact(frame.out, bytes, structure, 0L), enter());
  }

  @Override
  public void memMap(long address, long bytes, long offset, long handle) {
    MAP.call(address, bytes, offset, handle, 0, 0, enter());
  }

  @Override
  public void memUnmap(long address, long bytes) {
    UNMAP.free(address, bytes, entry.enterToFree());
  }

  @Override
  public void memSetAccess(
      long address, long bytes, int locationType, int[] locationIds, int... access) {
    Contexts contexts = contexts();
    int[] places =
        IntStream.of(locationIds).map(id -> contexts.location(locationType, id)).toArray();
    MemorySegment accesses = PoolStructures.accesses(locationType, places, access);
    long count = places.length;
    Call.of(
            "cuMemSetAccess(address=%#x, bytes=%d, locationType=%d, locationIds=%s, access=%s)",
            address, bytes, locationType, Arrays.toString(locationIds), Arrays.toString(access))
        .run(_ -> (int) SET_ACCESS.invokeExact(address, bytes, accesses, count), enter());
  }

  @Override
  public int memGetAccess(long address, int locationType, int locationId) {
    int place = contexts().location(locationType, locationId);
    return (int)
        Call.of(
                "cuMemGetAccess(address=%#x, locationType=%d, locationId=%d)",
                address, locationType, locationId)
            .run(
                frame ->
                    (int)
                        GET_ACCESS.invokeExact(
                            frame.out, frame.location(locationType, place), address),
                enter());
  }

  @Override
  public void memRelease(long handle) {
    RELEASE.free(handle, 0, entry.enterToFree());
  }

  @Override
  public long memRetainAllocationHandle(long address) {
    return RETAIN.call(address, enter());
  }

  @Override
  public AllocationProperties memGetAllocationPropertiesFromHandle(long handle) {
    MemorySegment structure = AllocationStructure.empty();
    Call.of("cuMemGetAllocationPropertiesFromHandle(handle=%#x)", handle)
        .run(_ -> (int) GET_PROPERTIES.invokeExact(structure, handle), enter());
    return AllocationStructure.read(structure, contexts());
  }

  @Override
  public int memExportToShareableHandle(long handle) {
    return (int) EXPORT.call(handle, MemHandleType.FILE_DESCRIPTOR, 0, enter());
  }

  @Override
  public long memImportFromShareableHandle(int descriptor) {
    return IMPORT.call(descriptor, MemHandleType.FILE_DESCRIPTOR, enter());
  }
}
