package io.cuvette.ffm.part;

import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.TransferCalls;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/** Calls that copy and fill memory in stream order. Thread-safe. */
public final class FfmTransfers extends Part implements TransferCalls {
  public static final MethodHandle COPY =
      Libcuda.required("cuMemcpyAsync", 4000, POINTER, POINTER, SIZE, POINTER);
  public static final MethodHandle COPY_TO_DEVICE =
      Libcuda.required("cuMemcpyHtoDAsync", 3020, POINTER, SEGMENT, SIZE, POINTER);
  public static final MethodHandle COPY_TO_HOST =
      Libcuda.required("cuMemcpyDtoHAsync", 3020, SEGMENT, POINTER, SIZE, POINTER);
  public static final MethodHandle COPY_PEER =
      Libcuda.function(
          "cuMemcpyPeerAsync", 4000, POINTER, POINTER, POINTER, POINTER, SIZE, POINTER);
  public static final MethodHandle COPY_BOX =
      Libcuda.function("cuMemcpy3DAsync", 3020, SEGMENT, POINTER);

  /** Since CUDA 13; the form of CUDA 12.8 has one parameter more, where it puts what failed. */
  public static final MethodHandle COPY_BATCH =
      Libcuda.function(
          "cuMemcpyBatchAsync",
          13000,
          SEGMENT,
          SEGMENT,
          SEGMENT,
          SIZE,
          SEGMENT,
          SEGMENT,
          SIZE,
          POINTER);

  public static final MethodHandle COPY_BATCH_NOTING =
      Libcuda.function(
          "cuMemcpyBatchAsync",
          12080,
          SEGMENT,
          SEGMENT,
          SEGMENT,
          SIZE,
          SEGMENT,
          SEGMENT,
          SIZE,
          SEGMENT,
          POINTER);

  private static final boolean HAS_BATCH = Libcuda.has("cuMemcpyBatchAsync", 13000);
  private static final boolean HAS_NOTING_BATCH = Libcuda.has("cuMemcpyBatchAsync", 12080);

  public static final MethodHandle FILL_8 =
      Libcuda.required("cuMemsetD8Async", 3020, POINTER, INT, SIZE, POINTER);
  public static final MethodHandle FILL_16 =
      Libcuda.required("cuMemsetD16Async", 3020, POINTER, INT, SIZE, POINTER);
  public static final DriverFunction FILL_32 =
      required(
          "cuMemsetD32Async(target=%#x, value=%d, count=%d, stream=%#x, device=%d)",
          3020, POINTER, INT, SIZE, POINTER);

  /** CUmemcpyAttributes: an int, two CUmemLocation, flags. */
  private static final long COPY_ATTRIBUTES = 24;

  /** CU_MEMCPY_SRC_ACCESS_ORDER_STREAM. */
  private static final int IN_ORDER_OF_THE_STREAM = 1;

  /** The part of the driver whose calls start here. */
  public FfmTransfers(Entry entry) {
    super(entry);
  }

  @Override
  public void memcpyAsync(int device, long target, long source, long bytes, long stream) {
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
  public void memcpyHtoDAsync(int device, long target, MemorySegment source, long stream) {
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
  public void memcpyDtoHAsync(int device, MemorySegment target, long source, long stream) {
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

  static void checkNative(String name, MemorySegment segment) {
    if (!segment.isNative()) {
      throw new IllegalArgumentException(
          name + ": heap segment (expected: native memory; copy it into a PinnedBuffer first)");
    }
  }

  @Override
  public void memcpyPeerAsync(
      int streamDevice,
      long target,
      int targetDevice,
      long source,
      int sourceDevice,
      long bytes,
      long stream) {
    long to = entry.context(targetDevice);
    long from = entry.context(sourceDevice);
    Call.of(
            "cuMemcpyPeerAsync(target=%#x, targetDevice=%d, source=%#x, sourceDevice=%d, bytes=%d,"
                + " stream=%#x, streamDevice=%d)",
            target, targetDevice, source, sourceDevice, bytes, stream, streamDevice)
        .run(
            _ -> (int) COPY_PEER.invokeExact(target, to, source, from, bytes, stream),
            enterAsIs(streamDevice));
  }

  @Override
  public void memcpy3DAsync(int device, BoxCopy copy, long stream) {
    MemorySegment made = NodeStructures.copy(copy);
    Call.of("cuMemcpy3DAsync(%s, stream=%#x, device=%d)", copy, stream, device)
        .run(_ -> (int) COPY_BOX.invokeExact(made, stream), enterAsIs(device));
  }

  @Override
  public void memcpyBatchAsync(
      int device, long[] targets, long[] sources, long[] bytes, long stream) {
    if (!HAS_BATCH && !HAS_NOTING_BATCH) {
      copyEach(device, targets, sources, bytes, stream);
      return;
    }
    Arena arena = Arena.ofAuto();
    MemorySegment to = arena.allocateFrom(ValueLayout.JAVA_LONG, targets);
    MemorySegment from = arena.allocateFrom(ValueLayout.JAVA_LONG, sources);
    MemorySegment sizes = arena.allocateFrom(ValueLayout.JAVA_LONG, bytes);
    MemorySegment attributes = arena.allocate(COPY_ATTRIBUTES, Integer.BYTES);
    attributes.set(ValueLayout.JAVA_INT, 0, IN_ORDER_OF_THE_STREAM);
    MemorySegment first = arena.allocate(ValueLayout.JAVA_LONG); // that they are for: 0
    long count = targets.length;
    Call call =
        Call.of("cuMemcpyBatchAsync(count=%d, stream=%#x, device=%d)", count, stream, device);
    if (HAS_BATCH) {
      call.run(
          _ -> (int) COPY_BATCH.invokeExact(to, from, sizes, count, attributes, first, 1L, stream),
          enter(device));
      return;
    }
    MemorySegment failed = arena.allocateFrom(ValueLayout.JAVA_LONG, -1L);
    try {
      call.run(
          _ ->
              (int)
                  COPY_BATCH_NOTING.invokeExact(
                      to, from, sizes, count, attributes, first, 1L, failed, stream),
          enter(device));
    } catch (CudaException e) {
      long index = failed.get(ValueLayout.JAVA_LONG, 0);
      throw index < 0 ? e : e.explained("copy %d of the batch failed".formatted(index));
    }
  }

  private void copyEach(int device, long[] targets, long[] sources, long[] bytes, long stream) {
    for (int i = 0; i < targets.length; i++) {
      try {
        memcpyAsync(device, targets[i], sources[i], bytes[i], stream);
      } catch (CudaException e) {
        throw e.explained(
            "the first %d of a batch of %d copies are queued".formatted(i, targets.length));
      }
    }
  }

  @Override
  public void memsetD8Async(int device, long target, byte value, long count, long stream) {
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
  public void memsetD16Async(int device, long target, short value, long count, long stream) {
    int pattern = Short.toUnsignedInt(value);
    Call.of(
            "cuMemsetD16Async(target=%#x, value=%d, count=%d, stream=%#x, device=%d)",
            target, value, count, stream, device)
        .run(_ -> (int) FILL_16.invokeExact(target, pattern, count, stream), enterAsIs(device));
  }

  @Override
  public void memsetD32Async(int device, long target, int value, long count, long stream) {
    FILL_32.call(target, value, count, stream, device, 0, enterAsIs(device));
  }
}
