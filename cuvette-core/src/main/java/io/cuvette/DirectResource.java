package io.cuvette;

/** The resources that ask the driver each time. */
enum DirectResource implements MemoryResource {
  DEVICE {
    @Override
    public DeviceBuffer allocate(long bytes, CudaStream stream) {
      return DirectMemory.device(bytes, stream);
    }
  },
  MANAGED {
    @Override
    public ManagedBuffer allocate(long bytes, CudaStream stream) {
      return DirectMemory.managed(bytes, stream);
    }
  };

  @Override
  public String toString() {
    return this == DEVICE ? "MemoryResource.direct()" : "MemoryResource.managed()";
  }
}
