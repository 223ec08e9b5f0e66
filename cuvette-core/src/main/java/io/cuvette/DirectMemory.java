package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.Checks;
import java.lang.foreign.MemorySegment;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;
import java.util.function.Supplier;

/**
 * Memory straight from the driver, and buffers without memory. What follows a call that gives
 * memory is made before it: there may be no Java heap for it later. Stateless.
 */
final class DirectMemory {
  private static final int ATTACH_GLOBAL = 1;
  private static final int PORTABLE_AND_MAPPED = 3;

  private DirectMemory() {}

  static DeviceBuffer device(long bytes, OpenStream stream) {
    check(bytes, stream);
    if (bytes == 0) {
      return emptyDevice(stream);
    }
    return make(stream, () -> deviceNow(bytes, stream));
  }

  private static DeviceBuffer deviceNow(long bytes, OpenStream stream) {
    Device device = stream.on();
    CudaDriver driver = device.context();
    LongFunction<DeviceBuffer> kind = address -> new DeviceBuffer(address, bytes, stream);
    LongConsumer free = address -> driver.memFree(device.id(), address);
    long given;
    try {
      given = driver.memAlloc(device.id(), bytes);
    } catch (CudaException e) {
      throw explained(e, bytes, device);
    }
    return DirectLifetime.own(given, kind, free);
  }

  static ManagedBuffer managed(long bytes, OpenStream stream) {
    check(bytes, stream);
    if (bytes == 0) {
      return empty(new ManagedBuffer(0, 0, stream));
    }
    return make(stream, () -> managedNow(bytes, stream));
  }

  private static ManagedBuffer managedNow(long bytes, OpenStream stream) {
    Device device = stream.on();
    CudaDriver driver = device.context();
    LongFunction<ManagedBuffer> kind = address -> new ManagedBuffer(address, bytes, stream);
    LongConsumer free = address -> driver.memFree(device.id(), address);
    MemorySegment given;
    try {
      given = driver.memAllocManaged(device.id(), bytes, ATTACH_GLOBAL);
    } catch (CudaException e) {
      throw explained(e, bytes, device);
    }
    return DirectLifetime.own(given.address(), kind, free);
  }

  static DeviceBuffer async(long bytes, OpenStream stream) {
    check(bytes, stream);
    if (bytes == 0) {
      return emptyDevice(stream);
    }
    stream.on().session().entrance().run(() -> stream.checkAllocatesInOrder());
    return AsyncMemory.allocate(bytes, stream);
  }

  static PinnedBuffer pinned(long bytes, OpenStream stream) {
    check(bytes, stream);
    if (bytes == 0) {
      return empty(new PinnedBuffer(MemorySegment.NULL, stream));
    }
    return make(stream, () -> pinnedNow(bytes, stream));
  }

  private static PinnedBuffer pinnedNow(long bytes, OpenStream stream) {
    Device device = stream.on();
    CudaDriver driver = device.context();
    MemorySegment[] given = new MemorySegment[1];
    LongFunction<PinnedBuffer> kind = _ -> new PinnedBuffer(given[0], stream);
    LongConsumer free = address -> driver.memFreeHost(device.id(), address);
    try {
      given[0] = driver.memHostAlloc(device.id(), bytes, PORTABLE_AND_MAPPED);
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
    return DirectLifetime.own(given[0].address(), kind, free);
  }

  static DeviceBuffer emptyDevice(OpenStream stream) {
    return empty(new DeviceBuffer(0, 0, stream));
  }

  /** A buffer whose end gives nothing back. */
  static <B extends BufferBase> B empty(B buffer) {
    buffer.own(new NoMemoryLifetime(buffer, null));
    return buffer;
  }

  private static void check(long bytes, OpenStream stream) {
    Checks.notNegative("bytes", bytes);
    Session session = stream.on().session();
    stream.checkOf(session);
    session.leaks().drain();
    stream.state.streams.relief().settleClosed();
  }

  private static <B> B make(OpenStream stream, Supplier<B> maker) {
    Session session = stream.on().session();
    try {
      return session.entrance().make(maker);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY || !stream.state.streams.callbacks().freeLeft()) {
        throw e;
      }
      return session.entrance().make(maker);
    }
  }

  /** Out of memory with the numbers of the device; another failure as it is. */
  static CudaException explained(CudaException e, long bytes, Device device) {
    if (e.status() != CudaStatus.OUT_OF_MEMORY) {
      return e;
    }
    var details =
        new OutOfDeviceMemoryException.Details(
            device.id(),
            bytes,
            bytes,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            Long.MAX_VALUE,
            driverFree(device),
            RecoveryStep.DRIVER);
    var explained = new OutOfDeviceMemoryException(e.call(), details, Long.MAX_VALUE);
    explained.initCause(e);
    return explained;
  }

  /** What the driver has free, −1 if it does not say. */
  static long driverFree(Device device) {
    try {
      return device.memoryInfo().freeBytes();
    } catch (CudaException e) {
      return -1;
    }
  }
}
