package io.cuvette.internal.block;

import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.OutOfPinnedMemoryException;
import io.cuvette.RecoveryStep;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.base.OutOfMemoryText;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import java.lang.foreign.MemorySegment;
import java.util.function.LongConsumer;
import java.util.function.Supplier;

/**
 * Memory straight from the driver, and buffers without memory. What follows a call that gives
 * memory is made before it: there may be no Java heap for it later. Stateless.
 */
public final class DirectMemory {
  private static final int ATTACH_GLOBAL = 1;
  private static final int PORTABLE_AND_MAPPED = 3;

  private DirectMemory() {}

  /** Memory of the stream's device (cuMemAlloc). */
  public static Face device(Faces faces, long bytes, OpenStream stream) {
    return make(
        faces,
        stream,
        bytes,
        (memory, device, free) -> {
          long address = memory.memAlloc(device, bytes);
          return PlainBlock.own(faces, address, bytes, stream, free, PlainBlock.By.DRIVER);
        });
  }

  /** Managed memory (cuMemAllocManaged). */
  public static Face managed(Faces faces, long bytes, OpenStream stream) {
    return make(
        faces,
        stream,
        bytes,
        (memory, device, free) ->
            PlainBlock.own(
                faces, memory.memAllocManaged(device, bytes, ATTACH_GLOBAL), stream, free));
  }

  /** Allocates memory that cuMemFree frees, and makes its block. */
  private interface Maker {
    Face make(MemoryCalls memory, int device, LongConsumer free);
  }

  private static Face make(Faces faces, OpenStream stream, long bytes, Maker maker) {
    check(bytes, stream);
    if (bytes == 0) {
      return empty(faces, stream);
    }
    return make(
        stream,
        () -> {
          Device device = stream.on();
          MemoryCalls memory = device.context().memory();
          LongConsumer free = address -> memory.memFree(device.id(), address);
          try {
            return maker.make(memory, device.id(), free);
          } catch (CudaException e) {
            throw explained(e, bytes, device);
          }
        });
  }

  /** Page-locked memory (cuMemHostAlloc). */
  public static Face pinned(Faces faces, long bytes, OpenStream stream) {
    check(bytes, stream);
    return bytes == 0
        ? emptyOfHost(faces, stream)
        : make(stream, () -> pinnedNow(faces, bytes, stream));
  }

  private static Face pinnedNow(Faces faces, long bytes, OpenStream stream) {
    Device device = stream.on();
    CudaDriver driver = device.context();
    LongConsumer free = address -> driver.memory().memFreeHost(device.id(), address);
    MemorySegment given;
    try {
      given = driver.memory().memHostAlloc(device.id(), bytes, PORTABLE_AND_MAPPED);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY) {
        throw e;
      }
      var out =
          new OutOfPinnedMemoryException(
              bytes, e.call(), OutOfMemoryText.ofPinned(bytes, e.call()));
      out.initCause(e);
      throw out;
    }
    return PlainBlock.own(faces, given, stream, free);
  }

  /** A buffer without memory, whose end gives nothing back. */
  public static Face empty(Faces faces, OpenStream stream) {
    return own(faces, faces.make(0, 0, stream), stream);
  }

  /** The same, which the host sees. */
  public static Face emptyOfHost(Faces faces, OpenStream stream) {
    return own(faces, faces.make(MemorySegment.NULL, stream), stream);
  }

  private static Face own(Faces faces, Face buffer, OpenStream stream) {
    BorrowedBlock block = new BorrowedBlock(buffer, stream, 0, 0, null, null);
    faces.own(buffer, block);
    block.opened();
    return buffer;
  }

  /** Checks the request, and reclaims what was forgotten. */
  public static void check(long bytes, OpenStream stream) {
    Checks.notNegative("bytes", bytes);
    Session session = stream.on().session();
    stream.checkOf(session);
    session.leaks().drain();
    stream.state.streams.relief().settleClosed();
  }

  private static <B> B make(OpenStream stream, Supplier<B> maker) {
    Session session = stream.on().session();
    try {
      return session.gate().make(maker);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY || !stream.state.session.frees().freeLeft()) {
        throw e;
      }
      return session.gate().make(maker);
    }
  }

  /** Out of memory with the numbers of the device; another failure as it is. */
  public static CudaException explained(CudaException e, long bytes, Device device) {
    if (e.status() != CudaStatus.OUT_OF_MEMORY) {
      return e;
    }
    int id = device.id();
    long free = driverFree(device);
    var details =
        new OutOfDeviceMemoryException.Details(
            id, bytes, bytes, 0, 0, 0, 0, 0, 0, 0, 0, Long.MAX_VALUE, free, RecoveryStep.DRIVER);
    var explained = new OutOfDeviceMemoryException(e.call(), details, Long.MAX_VALUE);
    explained.initCause(e);
    return explained;
  }

  /** The bytes that the driver has free, −1 if it does not report them. */
  public static long driverFree(Device device) {
    try {
      return device.memoryInfo().freeBytes();
    } catch (CudaException e) {
      return -1;
    }
  }
}
