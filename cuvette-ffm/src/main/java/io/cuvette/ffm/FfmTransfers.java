package io.cuvette.ffm;

import io.cuvette.driver.MemoryCalls;
import java.lang.foreign.MemorySegment;

/** Copies and fills, in stream order. Thread-safe. */
interface FfmTransfers extends FfmCalls, MemoryCalls {

  @Override
  default void memcpyAsync(int device, long target, long source, long bytes, long stream) {
    CallFrame frame = enter(device);
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
          "cuMemcpyAsync",
          "target",
          Failure.hex(target),
          "source",
          Failure.hex(source),
          "bytes",
          bytes,
          "stream",
          Failure.hex(stream),
          "device",
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
          "cuMemcpyHtoDAsync",
          "target",
          Failure.hex(target),
          "source",
          Failure.hex(source.address()),
          "bytes",
          bytes,
          "stream",
          Failure.hex(stream),
          "device",
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
          "cuMemcpyDtoHAsync",
          "target",
          Failure.hex(target.address()),
          "source",
          Failure.hex(source),
          "bytes",
          bytes,
          "stream",
          Failure.hex(stream),
          "device",
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
    CallFrame frame = enter(streamDevice);
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
          "cuMemcpyPeerAsync",
          "target",
          Failure.hex(target),
          "targetDevice",
          targetDevice,
          "source",
          Failure.hex(source),
          "sourceDevice",
          sourceDevice,
          "bytes",
          bytes,
          "stream",
          Failure.hex(stream),
          "streamDevice",
          streamDevice);
    }
  }

  @Override
  default void memsetD8Async(int device, long target, byte value, long count, long stream) {
    CallFrame frame = enter(device);
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
          "cuMemsetD8Async",
          "target",
          Failure.hex(target),
          "value",
          value,
          "count",
          count,
          "stream",
          Failure.hex(stream),
          "device",
          device);
    }
  }

  @Override
  default void memsetD16Async(int device, long target, short value, long count, long stream) {
    CallFrame frame = enter(device);
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
          "cuMemsetD16Async",
          "target",
          Failure.hex(target),
          "value",
          value,
          "count",
          count,
          "stream",
          Failure.hex(stream),
          "device",
          device);
    }
  }

  @Override
  default void memsetD32Async(int device, long target, int value, long count, long stream) {
    CallFrame frame = enter(device);
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
          "cuMemsetD32Async",
          "target",
          Failure.hex(target),
          "value",
          value,
          "count",
          count,
          "stream",
          Failure.hex(stream),
          "device",
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
