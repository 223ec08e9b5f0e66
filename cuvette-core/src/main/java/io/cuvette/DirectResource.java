package io.cuvette;

/** The resources that ask the driver each time. */
enum DirectResource implements MemoryResource {
  DEVICE {
    @Override
    public DeviceBuffer allocate(long bytes, CudaStream stream) {
      return DirectMemory.device(bytes, CudaStream.coreOf(stream));
    }
  },
  MANAGED {
    @Override
    public ManagedBuffer allocate(long bytes, CudaStream stream) {
      return DirectMemory.managed(bytes, CudaStream.coreOf(stream));
    }
  },
  ASYNC {
    @Override
    public DeviceBuffer allocate(long bytes, CudaStream stream) {
      return DirectMemory.async(bytes, CudaStream.coreOf(stream));
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
