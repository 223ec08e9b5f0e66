package io.cuvette;

import io.cuvette.internal.async.CurrentPool;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.driverpool.DriverPools;
import io.cuvette.internal.order.OpenStream;

/** The resources that call the driver each time. */
enum DirectResource implements MemoryResource {
  DEVICE {
    @Override
    public DeviceBuffer allocate(long bytes, CudaStream stream) {
      return (DeviceBuffer)
          DirectMemory.device(BufferKind.DEVICE, bytes, CudaStream.coreOf(stream));
    }
  },
  MANAGED {
    @Override
    public ManagedBuffer allocate(long bytes, CudaStream stream) {
      return (ManagedBuffer)
          DirectMemory.managed(BufferKind.MANAGED, bytes, CudaStream.coreOf(stream));
    }
  },
  ASYNC {
    @Override
    public DeviceBuffer allocate(long bytes, CudaStream stream) {
      OpenStream order = CudaStream.coreOf(stream);
      DriverPools pools = stream.device().cuda().engine().driverPools();
      return (DeviceBuffer) CurrentPool.allocate(pools, BufferKind.DEVICE, bytes, order);
    }
  };

  @Override
  public String toString() {
    return switch (this) {
      case DEVICE -> "MemoryResource.direct()";
      case MANAGED -> "MemoryResource.managed()";
      case ASYNC -> "MemoryResource.async()";
    };
  }
}
