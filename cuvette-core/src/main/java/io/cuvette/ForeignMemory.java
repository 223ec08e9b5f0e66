package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams.Allocation;
import io.cuvette.driver.MemoryType;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.block.Addresses;
import io.cuvette.internal.block.BorrowedBlock;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.PlainBlock;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Memory allocated elsewhere, as buffers that keep its owner reachable. Stateless. */
final class ForeignMemory {
  private ForeignMemory() {}

  /** On the device that the driver names. */
  static Buffer wrap(Cuda cuda, long address, long bytes, @Nullable Object owner) {
    Checks.notNegative("bytes", bytes);
    if (address == 0) {
      throw new IllegalArgumentException(
          "address: 0 has no device (expected: device.wrap, which names one)");
    }
    Device first = cuda.session().device(0);
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
      return (DeviceBuffer) DirectMemory.empty(BufferKind.DEVICE, device.nullStream().core());
    }
    Device on = device.core();
    int type = (int) ask(on, PointerAttribute.MEMORY_TYPE, address);
    boolean managed = ask(on, PointerAttribute.IS_MANAGED, address) != 0;
    checkDevice(on, address, managed || type == MemoryType.HOST);
    checkRange(on, address, bytes);
    OpenStream stream = device.nullStream().core();
    return borrowed(kind(managed, type).make(address, bytes, stream), stream, owner, null);
  }

  /** Device memory that the driver may not know yet; it is not asked. */
  static DeviceBuffer ofGraph(OpenStream stream, Allocation node, Object owner) {
    Face face = BufferKind.DEVICE.make(node.address(), node.bytes(), stream);
    return (DeviceBuffer) borrowed(face, stream, owner, node.peers());
  }

  private static Buffer borrowed(
      Face face, OpenStream stream, @Nullable Object owner, @Nullable List<Integer> peers) {
    BufferBase buffer = BufferKind.base(face);
    long bytes = buffer.byteSize();
    buffer.attach(new BorrowedBlock(face, stream, buffer.address(), bytes, owner, peers));
    return buffer.asBuffer();
  }

  /** As {@link #wrap}, and the buffer gives the memory back with {@code free}. */
  static Buffer adopt(CudaDevice device, long address, long bytes, Runnable free) {
    Objects.requireNonNull(free, "free");
    Session session = device.core().session();
    session.checkOpen();
    return session
        .gate()
        .make(() -> {
          Buffer wrapped = wrap(device, address, bytes, null);
          PlainBlock.ownAdopted(
              BufferBase.base(wrapped).memory(),
              () -> session.callUser("the end of adopted memory", free));
          return wrapped;
        });
  }

  private static BufferKind kind(boolean managed, int type) {
    if (managed) {
      return BufferKind.MANAGED;
    }
    return type == MemoryType.DEVICE ? BufferKind.DEVICE : BufferKind.PINNED;
  }

  private static long ask(Device device, int attribute, long address) {
    try {
      return Addresses.attribute(device, attribute, address);
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

  private static void checkDevice(Device device, long address, boolean anywhere) {
    int of = (int) ask(device, PointerAttribute.DEVICE_ORDINAL, address);
    if (!anywhere && of != device.id()) {
      throw new IllegalArgumentException(
          "address: 0x%x is memory of device %d (expected: %s)".formatted(address, of, device));
    }
  }

  /** Where the driver knows the allocation, the range must lie in it. */
  private static void checkRange(Device device, long address, long bytes) {
    long start;
    long size;
    try {
      start = Addresses.attribute(device, PointerAttribute.RANGE_START, address);
      size = Addresses.attribute(device, PointerAttribute.RANGE_SIZE, address);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.INVALID_VALUE && e.status() != CudaStatus.NOT_SUPPORTED) {
        throw e;
      }
      return; // not every kind of memory reports its range
    }
    long rest = start + size - address;
    if (size > 0 && bytes > rest) {
      throw new IllegalArgumentException(
          "bytes: %d at 0x%x (expected: <= %d, the rest of the allocation)"
              .formatted(bytes, address, rest));
    }
  }
}
