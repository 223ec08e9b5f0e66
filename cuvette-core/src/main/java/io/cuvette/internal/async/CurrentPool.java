package io.cuvette.internal.async;

import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.driverpool.DriverPools;
import io.cuvette.internal.lifetime.ShutdownGate;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.ordered.OrderedMemory;
import io.cuvette.internal.session.Device;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Stream-ordered memory from the pool that is current for a device at that moment. Stateless. */
public final class CurrentPool {
  private CurrentPool() {}

  public static Face allocate(DriverPools pools, Faces faces, long bytes, OpenStream stream) {
    DirectMemory.check(bytes, stream);
    if (bytes == 0) {
      return DirectMemory.empty(faces, stream);
    }
    Device device = stream.on();
    ShutdownGate gate = device.session().gate();
    OrderedMemory memory = pools.asyncMemory();
    memory.settle();
    Refusals refusals = new Refusals();
    Supplier<@Nullable Face> once = () -> tryOnce(faces, bytes, stream, memory, refusals);
    try {
      Face found = gate.make(once);
      return found != null
          ? found
          : new OrderedShortage(
                  pools,
                  stream,
                  memory,
                  () -> gate.run(() -> trim(device)),
                  refusals,
                  () -> gate.make(once),
                  () -> gate.make(() -> outOfMemory(bytes, stream)))
              .run();
    } catch (CudaException e) {
      throw OrderedFailures.explained(e, device);
    }
  }

  private static @Nullable Face tryOnce(
      Faces faces, long bytes, OpenStream stream, OrderedMemory memory, Refusals refusals) {
    CudaDriver driver = stream.hold();
    try {
      int device = stream.on().id();
      return new OrderedRequest(stream, in -> driver.ordered().memAllocAsync(device, bytes, in))
          .make(memory, faces, bytes, bytes);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY) {
        throw e;
      }
      refusals.add(e);
      return null;
    } finally {
      stream.unhold();
    }
  }

  private static void trim(Device device) {
    CudaDriver driver = device.context();
    driver.pools().memPoolTrimTo(driver.pools().deviceGetMemPool(device.id()), 0);
  }

  private static OutOfDeviceMemoryException outOfMemory(long bytes, OpenStream stream) {
    Device device = stream.on();
    CudaDriver driver = device.context();
    long pool = driver.pools().deviceGetMemPool(device.id());
    return OrderedFailures.outOfMemory(
        "cuMemAllocAsync(bytes=%d, stream=%s) from pool 0x%x".formatted(bytes, stream, pool),
        device,
        bytes,
        bytes,
        () -> driver.pools().memPoolGetAttribute(pool, MemPoolAttribute.RESERVED_MEM_CURRENT),
        () -> driver.pools().memPoolGetAttribute(pool, MemPoolAttribute.USED_MEM_CURRENT),
        Long.MAX_VALUE,
        0);
  }
}
