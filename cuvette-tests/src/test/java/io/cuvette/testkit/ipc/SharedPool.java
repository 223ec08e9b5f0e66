package io.cuvette.testkit.ipc;

import io.cuvette.AllocationHandle;
import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.DriverPoolResource;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import java.util.UUID;

/** The kinds of pools whose memory processes can share. */
enum SharedPool {
  DEVICE {
    @Override
    DeviceMemoryResource create(Cuda cuda) {
      return new DeviceMemoryResource(
          cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true));
    }

    @Override
    DeviceMemoryResource importFrom(Cuda cuda, AllocationHandle handle) {
      return DeviceMemoryResource.fromAllocationHandle(cuda.device(0), handle);
    }

    @Override
    DeviceMemoryResource importFrom(Cuda cuda, int descriptor) {
      return DeviceMemoryResource.fromAllocationHandle(cuda.device(0), descriptor);
    }

    @Override
    DeviceMemoryResource fromRegistry(Cuda cuda, UUID uuid) {
      return DeviceMemoryResource.fromRegistry(cuda.device(0), uuid);
    }
  },
  HOST {
    @Override
    PinnedMemoryResource create(Cuda cuda) {
      return new PinnedMemoryResource(
          cuda, PinnedMemoryResourceOptions.DEFAULTS.withIpcEnabled(true));
    }

    @Override
    PinnedMemoryResource importFrom(Cuda cuda, AllocationHandle handle) {
      return PinnedMemoryResource.fromAllocationHandle(cuda, handle);
    }

    @Override
    PinnedMemoryResource importFrom(Cuda cuda, int descriptor) {
      return PinnedMemoryResource.fromAllocationHandle(cuda, descriptor);
    }

    @Override
    PinnedMemoryResource fromRegistry(Cuda cuda, UUID uuid) {
      return PinnedMemoryResource.fromRegistry(cuda, uuid);
    }
  };

  /** A new pool that can be shared; host memory on the node next to the device. */
  abstract DriverPoolResource create(Cuda cuda);

  abstract DriverPoolResource importFrom(Cuda cuda, AllocationHandle handle);

  abstract DriverPoolResource importFrom(Cuda cuda, int descriptor);

  abstract DriverPoolResource fromRegistry(Cuda cuda, UUID uuid);

  SharedPool other() {
    return this == DEVICE ? HOST : DEVICE;
  }

  static DriverPoolResource register(DriverPoolResource pool, UUID uuid) {
    return switch (pool) {
      case DeviceMemoryResource device -> device.register(uuid);
      case PinnedMemoryResource pinned -> pinned.register(uuid);
      default -> throw new AssertionError(pool);
    };
  }

  static Buffer importBuffer(DriverPoolResource pool, BufferDescriptor descriptor) {
    return switch (pool) {
      case DeviceMemoryResource device -> device.importBuffer(descriptor);
      case PinnedMemoryResource pinned -> pinned.importBuffer(descriptor);
      default -> throw new AssertionError(pool);
    };
  }

  static Buffer importBuffer(
      DriverPoolResource pool, BufferDescriptor descriptor, CudaStream stream) {
    return switch (pool) {
      case DeviceMemoryResource device -> device.importBuffer(descriptor, stream);
      case PinnedMemoryResource pinned -> pinned.importBuffer(descriptor, stream);
      default -> throw new AssertionError(pool);
    };
  }
}
