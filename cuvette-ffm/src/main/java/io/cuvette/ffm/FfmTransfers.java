package io.cuvette.ffm;

import io.cuvette.driver.MemoryCalls;
import java.lang.foreign.MemorySegment;

/** Copies and fills, in stream order. Thread-safe. */
interface FfmTransfers extends FfmCalls, MemoryCalls {

  @Override
  default void memcpyAsync(int device, long target, long source, long bytes, long stream) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status = (int) TransferFunctions.COPY.invokeExact(target, source, bytes, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemcpyAsync(target=%#x, source=%#x, bytes=%d, stream=%#x, device=%d)",
          target,
          source,
          bytes,
          stream,
          device);
    }
  }

  @Override
  default void memcpyHtoDAsync(int device, long target, MemorySegment source, long stream) {
    checkNative("source", source);
    long bytes = source.byteSize();
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) TransferFunctions.COPY_TO_DEVICE.invokeExact(target, source, bytes, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemcpyHtoDAsync(target=%#x, source=%#x, bytes=%d, stream=%#x, device=%d)",
          target,
          source.address(),
          bytes,
          stream,
          device);
    }
  }

  @Override
  default void memcpyDtoHAsync(int device, MemorySegment target, long source, long stream) {
    checkNative("target", target);
    long bytes = target.byteSize();
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) TransferFunctions.COPY_TO_HOST.invokeExact(target, source, bytes, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemcpyDtoHAsync(target=%#x, source=%#x, bytes=%d, stream=%#x, device=%d)",
          target.address(),
          source,
          bytes,
          stream,
          device);
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
    long to = context(targetDevice);
    long from = context(sourceDevice);
    CallFrame frame = enterAsIs(streamDevice);
    int status;
    try {
      status =
          (int) TransferFunctions.COPY_PEER.invokeExact(target, to, source, from, bytes, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemcpyPeerAsync(target=%#x, targetDevice=%d, source=%#x, sourceDevice=%d, bytes=%d,"
              + " stream=%#x, streamDevice=%d)",
          target,
          targetDevice,
          source,
          sourceDevice,
          bytes,
          stream,
          streamDevice);
    }
  }

  @Override
  default void memsetD8Async(int device, long target, byte value, long count, long stream) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status =
          (int)
              TransferFunctions.FILL_8.invokeExact(
                  target, Byte.toUnsignedInt(value), count, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemsetD8Async(target=%#x, value=%d, count=%d, stream=%#x, device=%d)",
          target,
          value,
          count,
          stream,
          device);
    }
  }

  @Override
  default void memsetD16Async(int device, long target, short value, long count, long stream) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status =
          (int)
              TransferFunctions.FILL_16.invokeExact(
                  target, Short.toUnsignedInt(value), count, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemsetD16Async(target=%#x, value=%d, count=%d, stream=%#x, device=%d)",
          target,
          value,
          count,
          stream,
          device);
    }
  }

  @Override
  default void memsetD32Async(int device, long target, int value, long count, long stream) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status = (int) TransferFunctions.FILL_32.invokeExact(target, value, count, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuMemsetD32Async(target=%#x, value=%d, count=%d, stream=%#x, device=%d)",
          target,
          value,
          count,
          stream,
          device);
    }
  }

  private static void checkNative(String name, MemorySegment segment) {
    if (!segment.isNative()) {
      throw new IllegalArgumentException(
          name + ": heap segment (expected: native memory; copy it into a PinnedBuffer first)");
    }
  }
}
