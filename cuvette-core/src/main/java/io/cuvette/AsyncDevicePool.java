package io.cuvette;

import io.cuvette.driver.CudaDriver;

/** An {@link AsyncMemoryPool} on one device. Thread-safe. */
final class AsyncDevicePool {
  final DriverPool pool;
  private final CudaDevice device;
  private final StreamOrderedMemory memory = new StreamOrderedMemory();
  private final StreamOrderedAllocator allocator;
  private volatile MemoryLimit limit;
  private volatile long limitBytes;

  AsyncDevicePool(CudaDevice device, AsyncPoolChoice choice, MemoryLimit limit) {
    this.device = device;
    this.pool = open(device, choice);
    this.allocator = new StreamOrderedAllocator(pool, memory, DeviceBuffer::new);
    this.limit = limit;
    this.limitBytes = limit.bytesOf(device.totalBytes());
  }

  private static DriverPool open(CudaDevice device, AsyncPoolChoice choice) {
    Cuda cuda = device.cuda();
    CudaDriver driver = device.context();
    return switch (choice) {
      case AsyncPoolChoice.Borrowed.DEFAULT ->
          DriverPool.borrow(cuda, driver.deviceGetDefaultMemPool(device.id()));
      case AsyncPoolChoice.Borrowed.CURRENT ->
          DriverPool.borrow(cuda, driver.deviceGetMemPool(device.id()));
      case AsyncPoolChoice.Handle given -> DriverPool.borrow(cuda, given.handle());
      case AsyncPoolChoice.New made ->
          DriverPool.createKeeping(
              cuda,
              DriverPool.at(MemoryLocation.device(device), DriverPool.PINNED, made.maxBytes()));
    };
  }

  BufferBase allocate(long bytes, long rounded, CudaStream stream) {
    if (rounded > limitBytes - memory.liveBytes() && bytes > 0) {
      makeRoom(stream);
      if (rounded > limitBytes - memory.liveBytes()) {
        throw allocator.outOfMemory(bytes, rounded, stream, limitBytes);
      }
    }
    return allocator.allocate(bytes, rounded, stream);
  }

  private void makeRoom(CudaStream stream) {
    Cuda cuda = device.cuda();
    cuda.checkOwn(stream);
    cuda.leaks().drain();
    memory.await();
    Reclaim.collect(cuda.leaks());
  }

  MemoryLimit limit() {
    return limit;
  }

  void setLimit(MemoryLimit next) {
    limitBytes = next.bytesOf(device.totalBytes());
    limit = next;
  }

  long liveBytes() {
    memory.settle();
    return memory.liveBytes();
  }

  long freeAllBlocks(CudaStream stream) {
    device.cuda().leaks().drain();
    memory.settle();
    PoolAttributes attributes = new PoolAttributes(pool);
    long before = attributes.reservedMemCurrent();
    stream.synchronize();
    pool.driver().memPoolTrimTo(pool.handle(), 0);
    return Math.max(0, before - attributes.reservedMemCurrent());
  }

  /** Frees what is alive and destroys a pool of its own. */
  void destroy() {
    Failures failures = new Failures();
    failures.run(memory::destroy);
    failures.run(pool::close);
    failures.throwFirst();
  }
}
