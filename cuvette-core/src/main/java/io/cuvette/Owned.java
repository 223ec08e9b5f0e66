package io.cuvette;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/**
 * What one {@link Cuda} has made and not taken back yet, and how it takes all of it back.
 * Thread-safe.
 */
final class Owned {
  private final Cuda cuda;
  private final Entrance entrance = new Entrance();
  private final Children children = new Children();
  private final StreamOrderedMemory asyncMemory = new StreamOrderedMemory(entrance, null);
  private final DriverPools driverPools;
  private final PeerHandles handles = new PeerHandles();
  private final List<MemoryPool> pools = new CopyOnWriteArrayList<>();
  private final List<PinnedMemoryPool> pinnedPools = new CopyOnWriteArrayList<>();
  private final AtomicBoolean ending = new AtomicBoolean();

  Owned(Cuda cuda) {
    this.cuda = cuda;
    ReleaseThresholds thresholds = ReleaseThresholds.of(cuda.isSimulated());
    this.driverPools = new DriverPools(entrance, children, asyncMemory, thresholds);
    children.add(() -> cuda.imports().endOf(cuda));
    children.add(asyncMemory::destroy);
  }

  /** The way in for threads that make or give back something. */
  Entrance entrance() {
    return entrance;
  }

  /** The steps that take back what is left at the end. */
  Children children() {
    return children;
  }

  /** The driver's pools. */
  DriverPools driverPools() {
    return driverPools;
  }

  /** What of other processes the driver can be asked about. */
  PeerHandles handles() {
    return handles;
  }

  /** What {@link MemoryResource#async()} gave out. */
  StreamOrderedMemory asyncMemory() {
    return asyncMemory;
  }

  /** Remembers a caching pool by the step that ends it. */
  void add(MemoryPool pool, Runnable end) {
    pools.add(pool);
    children.addPool(end);
  }

  void remove(MemoryPool pool, Runnable end) {
    pools.remove(pool);
    children.remove(end);
  }

  /** Remembers a pool of page-locked memory by the step that ends it. */
  void add(PinnedMemoryPool pool, Runnable end) {
    pinnedPools.add(pool);
    children.addPool(end);
  }

  void remove(PinnedMemoryPool pool, Runnable end) {
    pinnedPools.remove(pool);
    children.remove(end);
  }

  /** Takes back what waited for streams in closed pools, which nobody asks any more. */
  void settleClosed() {
    for (MemoryPool pool : pools) {
      pool.settleIfClosed();
    }
    for (PinnedMemoryPool pool : pinnedPools) {
      pool.settleIfClosed();
    }
  }

  /** Waits for what was freed on a device, in pools of all kinds, closed ones too. */
  void awaitFrees(CudaDevice device) {
    driverPools.awaitFrees(device);
    for (MemoryPool pool : pools) {
      pool.awaitIfClosed(device);
    }
  }

  /** Waits for what was freed in pools of page-locked memory that are closed. */
  void awaitPinnedFrees() {
    for (PinnedMemoryPool pool : pinnedPools) {
      pool.awaitIfClosed();
    }
  }

  /** Releases what the pools of page-locked memory hold free; the bytes. */
  long releaseCachedPinned() {
    long released = 0;
    for (PinnedMemoryPool pool : pinnedPools) {
      released += pool.release();
    }
    return released;
  }

  /**
   * Releases what the caching pools hold free on a device, and what driver's pools keep.
   *
   * @return the bytes of the caching pools
   */
  long releaseCached(CudaDevice device) {
    long released = 0;
    for (MemoryPool pool : pools) {
      released += pool.release(device);
    }
    driverPools.giveBackIdle(stream -> stream.device == device);
    driverPools.trim();
    return released;
  }

  /**
   * Releases what a pool caches on its device and, if only the driver is short, what the other
   * pools cache there.
   *
   * @return the bytes of the caching pools
   */
  long releaseCached(DevicePool first, boolean others) {
    long released = first.freeAllBlocks(null);
    return others ? released + releaseCached(first.device) : released;
  }

  /**
   * Takes everything back, once. What other threads are about at this moment is waited for, so that
   * each thing is given back by one thread alone, and none calls the driver after its end.
   *
   * @param closed told that it is, when the devices are done, so that nobody begins anything; and
   *     that it is not, if a segment is in use
   * @throws IllegalStateException if the segment of a buffer is in use: nothing is closed then but
   *     other segments
   */
  void close(Consumer<Boolean> closed) {
    if (!ending.compareAndSet(false, true)) {
      return;
    }
    Failures failures = new Failures();
    cuda.callbacks().shut();
    cuda.streams().endCaptures(failures);
    failures.run(() -> driverPools.giveBackIdle(_ -> true));
    synchronizeAll(failures);
    closed.accept(true);
    try {
      cuda.views().closeAll();
    } catch (IllegalStateException e) {
      closed.accept(false);
      cuda.callbacks().reopen();
      ending.set(false);
      throw e;
    }
    failures.run(cuda.callbacks()::close);
    failures.run(cuda.leaks()::drain);
    entrance.shut();
    driverPools.awaitUsers();
    failures.run(children::close);
    if (driverPools.hasRetired()) {
      synchronizeAll(failures);
      failures.run(driverPools::destroyRetired);
    }
    cuda.streams().shut();
    entrance.close();
    failures.run(cuda.driver()::close);
    failures.throwFirst();
  }

  private void synchronizeAll(Failures failures) {
    for (CudaDevice device : cuda.devices()) {
      if (device.wasUsed()) {
        failures.run(device::awaitAll);
      }
    }
  }
}
