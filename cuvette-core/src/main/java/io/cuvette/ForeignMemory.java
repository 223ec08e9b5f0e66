package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.MemoryType;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.internal.Checks;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** Memory that somebody else allocated, as buffers that keep its owner reachable. Stateless. */
final class ForeignMemory {
  private ForeignMemory() {}

  /** On the device that the driver names. */
  static Buffer wrap(Cuda cuda, long address, long bytes, @Nullable Object owner) {
    Checks.notNegative("bytes", bytes);
    if (address == 0) {
      throw new IllegalArgumentException(
          "address: 0 has no device (expected: device.wrap, which names one)");
    }
    CudaDevice first = cuda.device(0);
    int device = (int) ask(first, PointerAttribute.DEVICE_ORDINAL, address);
    return wrap(device < 0 ? cuda.currentDevice() : cuda.device(device), address, bytes, owner);
  }

  static Buffer wrap(CudaDevice device, long address, long bytes, @Nullable Object owner) {
    Checks.notNegative("bytes", bytes);
    if (address == 0) {
      if (bytes != 0) {
        throw new IllegalArgumentException(
            "address: 0 with %d bytes (expected: 0 bytes)".formatted(bytes));
      }
      return DirectMemory.emptyDevice(device.nullStream());
    }
    int type = (int) ask(device, PointerAttribute.MEMORY_TYPE, address);
    boolean managed = ask(device, PointerAttribute.IS_MANAGED, address) != 0;
    checkDevice(device, address, managed || type == MemoryType.HOST);
    checkRange(device, address, bytes);
    BufferBase buffer = make(device, address, bytes, managed, type);
    buffer.own(new NoMemoryLifetime(buffer, owner));
    return buffer.asBuffer();
  }

  /** As {@link #wrap}, and the buffer gives the memory back with {@code free}. */
  static Buffer adopt(CudaDevice device, long address, long bytes, Runnable free) {
    Objects.requireNonNull(free, "free");
    device.cuda().checkOpen();
    return device
        .cuda()
        .owned()
        .entrance()
        .make(() -> {
          Buffer wrapped = wrap(device, address, bytes, null);
          DirectLifetime.ownAdopted(BufferBase.base(wrapped), calledOnce(device.cuda(), free));
          return wrapped;
        });
  }

  /** Not again if it throws: nobody here knows how far it came. */
  private static Runnable calledOnce(Cuda cuda, Runnable free) {
    AtomicBoolean called = new AtomicBoolean();
    return () -> {
      if (called.compareAndSet(false, true)) {
        cuda.callUser("the end of adopted memory", free);
      }
    };
  }

  /**
   * Whether memory of unknown origin is of a pool that a device other than its own cannot access.
   */
  static boolean keepsOut(CudaDevice owner, long address, CudaDevice other) {
    long pool = poolOf(owner, address);
    return pool != 0 && keepsOut(other, pool);
  }

  /**
   * Whether a device has no access to a pool; memory of it that is in use keeps the pool from being
   * destroyed meanwhile.
   */
  static boolean keepsOut(CudaDevice other, long pool) {
    return other.cuda().driver().memPoolGetAccess(pool, MemLocationType.DEVICE, other.id())
        != MemAccessFlags.READ_WRITE;
  }

  /** The handle of the pool that memory of a device is from; 0 if it is from none. */
  static long poolOf(CudaDevice owner, long address) {
    try {
      return attribute(owner, PointerAttribute.MEMPOOL_HANDLE, address);
    } catch (CudaException e) {
      return 0; // what is wrong with the memory, the copy will tell
    }
  }

  private static BufferBase make(
      CudaDevice device, long address, long bytes, boolean managed, int type) {
    CudaStream stream = device.nullStream();
    if (!managed && type == MemoryType.DEVICE) {
      return new DeviceBuffer(address, bytes, stream);
    }
    return managed
        ? new ManagedBuffer(address, bytes, stream)
        : new PinnedBuffer(address, bytes, null, stream);
  }

  private static long ask(CudaDevice device, int attribute, long address) {
    try {
      return attribute(device, attribute, address);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.INVALID_VALUE) {
        throw e;
      }
      throw new IllegalArgumentException(
          "address: 0x%x is not known to CUDA (expected: device, managed or page-locked memory)"
              .formatted(address),
          e);
    }
  }

  private static void checkDevice(CudaDevice device, long address, boolean anywhere) {
    int of = (int) ask(device, PointerAttribute.DEVICE_ORDINAL, address);
    if (!anywhere && of != device.id()) {
      throw new IllegalArgumentException(
          "address: 0x%x is memory of device %d (expected: %s)".formatted(address, of, device));
    }
  }

  private static long attribute(CudaDevice device, int attribute, long address) {
    return device.ask(driver -> driver.pointerGetAttribute(device.id(), attribute, address));
  }

  /** Where the driver knows the allocation, the range must lie in it. */
  private static void checkRange(CudaDevice device, long address, long bytes) {
    long start;
    long size;
    try {
      start = attribute(device, PointerAttribute.RANGE_START, address);
      size = attribute(device, PointerAttribute.RANGE_SIZE, address);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.INVALID_VALUE && e.status() != CudaStatus.NOT_SUPPORTED) {
        throw e;
      }
      return; // not every kind of memory tells its range
    }
    long rest = start + size - address;
    if (size > 0 && bytes > rest) {
      throw new IllegalArgumentException(
          "bytes: %d at 0x%x (expected: <= %d, the rest of the allocation)"
              .formatted(bytes, address, rest));
    }
  }
}
