package io.cuvette.testkit.support;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.MemoryResource;
import io.cuvette.Scope;

/** The kinds of buffers. */
public enum Kind {
  POOLED {
    @Override
    Buffer make(Cuda cuda, CudaDevice device, long bytes) {
      return cuda.allocate(bytes, device.nullStream());
    }
  },
  DEVICE {
    @Override
    Buffer make(Cuda cuda, CudaDevice device, long bytes) {
      return MemoryResource.direct().allocate(bytes, device.nullStream());
    }
  },
  MANAGED {
    @Override
    Buffer make(Cuda cuda, CudaDevice device, long bytes) {
      return MemoryResource.managed().allocate(bytes, device.nullStream());
    }
  },
  PINNED {
    @Override
    Buffer make(Cuda cuda, CudaDevice device, long bytes) {
      return cuda.allocatePinned(bytes);
    }
  },
  ASYNC {
    @Override
    Buffer make(Cuda cuda, CudaDevice device, long bytes) {
      return MemoryResource.async().allocate(bytes, device.nullStream());
    }
  };

  abstract Buffer make(Cuda cuda, CudaDevice device, long bytes);

  public Buffer allocate(Cuda cuda, long bytes) {
    return allocate(cuda.device(0), bytes);
  }

  public Buffer allocate(CudaDevice device, long bytes) {
    try (Scope _ = device.use()) {
      return make(device.cuda(), device, bytes);
    }
  }
}
