package io.cuvette.ffm.part;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.PotentialBlockSize;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.ref.Reference;

/** Calls about libraries of kernels, which need no context. Thread-safe. */
public final class FfmKernels extends Part implements KernelCalls {
  /** Options of the compiler and of the library: names, values, how many. */
  private static final MemoryLayout[] LOADING = {
    POINTER, SEGMENT, POINTER, POINTER, INT, POINTER, POINTER, INT
  };

  public static final MethodHandle LOAD_DATA =
      Libcuda.function("cuLibraryLoadData", 12000, LOADING);
  public static final DriverFunction UNLOAD =
      optional("cuLibraryUnload(library=%#x)", 12000, POINTER);
  public static final MethodHandle GET_KERNEL =
      Libcuda.function("cuLibraryGetKernel", 12000, POINTER, POINTER, SEGMENT);
  public static final DriverFunction GET_KERNEL_COUNT =
      optional("cuLibraryGetKernelCount(library=%#x)", 12040, OUT, POINTER);
  public static final MethodHandle ENUMERATE_KERNELS =
      Libcuda.function("cuLibraryEnumerateKernels", 12040, SEGMENT, INT, POINTER);
  public static final MethodHandle GET_NAME =
      Libcuda.function("cuKernelGetName", 12030, POINTER, POINTER);
  public static final MethodHandle GET_PARAM_INFO =
      Libcuda.function("cuKernelGetParamInfo", 12040, POINTER, SIZE, SEGMENT, SEGMENT);

  /** A kernel of a library stands where the driver expects a function of a context. */
  public static final MethodHandle LAUNCH =
      Libcuda.function("cuLaunchKernelEx", 11060, POINTER, POINTER, POINTER, POINTER);

  public static final DriverFunction GET_ATTRIBUTE =
      optional(
          "cuKernelGetAttribute(attribute=%d, kernel=%#x, device=%d)",
          12000, OUT, INT, POINTER, INT);
  public static final DriverFunction SET_ATTRIBUTE =
      optional(
          "cuKernelSetAttribute(attribute=%d, value=%d, kernel=%#x, device=%d)",
          12000, INT, INT, POINTER, INT);
  public static final DriverFunction MAX_ACTIVE_BLOCKS =
      optional(
          "cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel=%#x, block=%d, shared=%d, device=%d)",
          6050, OUT, POINTER, INT, SIZE);
  public static final MethodHandle MAX_POTENTIAL_BLOCK =
      Libcuda.function(
          "cuOccupancyMaxPotentialBlockSize", 6050, POINTER, POINTER, POINTER, POINTER, SIZE, INT);
  public static final DriverFunction AVAILABLE_SHARED =
      optional(
          "cuOccupancyAvailableDynamicSMemPerBlock(kernel=%#x, blocks=%d, block=%d, device=%d)",
          10020, OUT, POINTER, INT, INT);
  public static final DriverFunction MAX_ACTIVE_CLUSTERS =
      optional(
          "cuOccupancyMaxActiveClusters(kernel=%#x, config=%#x, device=%d)",
          11070, OUT, POINTER, POINTER);
  public static final DriverFunction MAX_POTENTIAL_CLUSTER =
      optional(
          "cuOccupancyMaxPotentialClusterSize(kernel=%#x, config=%#x, device=%d)",
          11070, OUT, POINTER, POINTER);

  /** The part of the driver whose calls start here. */
  public FfmKernels(Entry entry) {
    super(entry);
  }

  /** PTX ends with a 0, which does no harm behind other code. */
  @Override
  public long libraryLoadData(byte[] image) {
    MemorySegment code = Arena.ofAuto().allocate(image.length + 1L, Long.BYTES);
    MemorySegment.copy(image, 0, code, ValueLayout.JAVA_BYTE, 0, image.length);
    return Call.of("cuLibraryLoadData(bytes=%d)", image.length)
        .run(frame -> (int) LOAD_DATA.invokeExact(frame.out, code, 0L, 0L, 0, 0L, 0L, 0), enter());
  }

  @Override
  public void libraryUnload(long library) {
    UNLOAD.free(library, 0, entry.enterToFree());
  }

  @Override
  public long libraryGetKernel(long library, String name) {
    MemorySegment text = Arena.ofAuto().allocateFrom(name);
    return Call.of("cuLibraryGetKernel(library=%#x, name=%s)", library, name)
        .run(frame -> (int) GET_KERNEL.invokeExact(frame.out, library, text), enter());
  }

  @Override
  public int libraryGetKernelCount(long library) {
    return (int) GET_KERNEL_COUNT.call(library, enter());
  }

  @Override
  public long[] libraryEnumerateKernels(long library, int count) {
    Call call = Call.of("cuLibraryEnumerateKernels(library=%#x, count=%d)", library, count);
    if (count < 1) {
      throw call.failed(CudaStatus.INVALID_VALUE.code());
    }
    MemorySegment kernels = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG, count);
    call.run(_ -> (int) ENUMERATE_KERNELS.invokeExact(kernels, count, library), enter());
    return kernels.toArray(ValueLayout.JAVA_LONG);
  }

  @Override
  public String kernelGetName(long kernel) {
    CallFrame frame = enter();
    int status;
    String name;
    try {
      status = (int) GET_NAME.invokeExact(frame.out, kernel);
      name = status == SUCCESS ? frame.text() : "";
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Call.of("cuKernelGetName(kernel=%#x)", kernel).failed(status);
    }
    return name;
  }

  /** Driver 580 wants a context here; any will do. */
  @Override
  public KernelParameter kernelGetParamInfo(long kernel, int index) {
    Call call = Call.of("cuKernelGetParamInfo(kernel=%#x, index=%d)", kernel, index);
    long place = index;
    MemorySegment offset = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG);
    MemorySegment size = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG);
    call.run(_ -> (int) GET_PARAM_INFO.invokeExact(kernel, place, offset, size), entry.enterAny());
    return new KernelParameter(
        offset.get(ValueLayout.JAVA_LONG, 0), size.get(ValueLayout.JAVA_LONG, 0));
  }

  /** A kernel belongs to no context: the stream names it, unless it is a default one. */
  @Override
  public void launchKernel(
      int device, long stream, long kernel, LaunchShape shape, LaunchParameters parameters) {
    long table = parameters.table().address();
    CallFrame frame = entry.enterForAsIs(device, stream);
    int status;
    do {
      try {
        status = (int) LAUNCH.invokeExact(frame.launchConfig(shape, stream), kernel, table, 0L);
      } catch (Throwable e) {
        throw frame.broken(e);
      } finally {
        Reference.reachabilityFence(parameters);
      }
    } while (frame.lacksContext(status));
    frame.leave();
    if (status != SUCCESS) {
      throw Call.of(
              "cuLaunchKernelEx(kernel=%#x, shape=%s, parameters=%d, stream=%#x, device=%d)",
              kernel, shape, parameters.places().size(), stream, device)
          .failed(status);
    }
  }

  @Override
  public int kernelGetAttribute(int attribute, long kernel, int device) {
    return (int) GET_ATTRIBUTE.call(attribute, kernel, contexts().handle(device), enter());
  }

  @Override
  public void kernelSetAttribute(int attribute, int value, long kernel, int device) {
    SET_ATTRIBUTE.call(attribute, value, kernel, contexts().handle(device), enter());
  }

  @Override
  public int occupancyMaxActiveBlocksPerMultiprocessor(
      int device, long kernel, int blockThreads, long dynamicSharedBytes) {
    return (int)
        MAX_ACTIVE_BLOCKS.call(kernel, blockThreads, dynamicSharedBytes, device, enter(device));
  }

  @Override
  public PotentialBlockSize occupancyMaxPotentialBlockSize(
      int device, long kernel, long dynamicSharedBytes, int blockLimit) {
    CallFrame frame = enter(device);
    int status;
    try {
      status =
          (int)
              MAX_POTENTIAL_BLOCK.invokeExact(
                  frame.out, frame.out + Long.BYTES, kernel, 0L, dynamicSharedBytes, blockLimit);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    int threads = (int) frame.second();
    int blocks = (int) frame.leave();
    if (status != SUCCESS) {
      throw Call.of(
              "cuOccupancyMaxPotentialBlockSize(kernel=%#x, dynamicSharedBytes=%d, blockLimit=%d,"
                  + " device=%d)",
              kernel, dynamicSharedBytes, blockLimit, device)
          .failed(status);
    }
    return new PotentialBlockSize(blocks, threads);
  }

  @Override
  public long occupancyAvailableDynamicSMemPerBlock(
      int device, long kernel, int blocks, int blockThreads) {
    return AVAILABLE_SHARED.call(kernel, blocks, blockThreads, device, enter(device));
  }

  @Override
  public int occupancyMaxActiveClusters(int device, long kernel, LaunchShape shape) {
    return clusters(MAX_ACTIVE_CLUSTERS, device, kernel, shape);
  }

  @Override
  public int occupancyMaxPotentialClusterSize(int device, long kernel, LaunchShape shape) {
    return clusters(MAX_POTENTIAL_CLUSTER, device, kernel, shape);
  }

  private int clusters(DriverFunction function, int device, long kernel, LaunchShape shape) {
    CallFrame frame = enter(device);
    return (int) function.call(kernel, frame.launchConfig(shape, 0), device, frame);
  }
}
