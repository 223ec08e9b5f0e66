package io.cuvette.internal.ordered;

import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.lifetime.Entrance;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.OpenStream;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Stream-ordered memory from the pool that is current for a device at that moment. Stateless. */
public final class AsyncMemory {
  private AsyncMemory() {}

  public static Face allocate(DriverPools pools, Faces faces, long bytes, OpenStream stream) {
    DirectMemory.check(bytes, stream);
    if (bytes == 0) {
      return DirectMemory.empty(faces, stream);
    }
    Device device = stream.on();
    Entrance entrance = device.session().entrance();
    entrance.run(stream::checkAllocatesInOrder);
    StreamOrderedMemory memory = pools.asyncMemory();
    memory.settle();
    Refusals refusals = new Refusals();
    Supplier<@Nullable Face> once = () -> tryOnce(faces, bytes, stream, memory, refusals);
    try {
      Face found = entrance.make(once);
      return found != null
          ? found
          : StreamOrderedRecovery.run(
              pools,
              stream,
              memory,
              () -> entrance.run(() -> trim(device)),
              refusals,
              () -> entrance.make(once),
              () -> entrance.make(() -> outOfMemory(bytes, stream)));
    } catch (CudaException e) {
      throw StreamOrderedSupport.explained(e, device);
    }
  }

  private static @Nullable Face tryOnce(
      Faces faces, long bytes, OpenStream stream, StreamOrderedMemory memory, Refusals refusals) {
    CudaDriver driver = stream.hold();
    try {
      long address = driver.ordered().memAllocAsync(stream.on().id(), bytes, stream.state.handle);
      return memory.own(faces, address, bytes, bytes, stream);
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
    return StreamOrderedSupport.outOfMemory(
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
