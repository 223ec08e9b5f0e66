package io.cuvette;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
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
  private final StreamOrderedMemory asyncMemory;
  private final DriverPools driverPools;
  private final PeerHandles handles = new PeerHandles(Descriptors::close);
  private final Set<MemoryPoolCore> pools = ConcurrentHashMap.newKeySet();
  private final Set<PinnedPoolCore> pinnedPools = ConcurrentHashMap.newKeySet();
  private final AtomicBoolean ending = new AtomicBoolean();

  Owned(Cuda cuda) {
    this.cuda = cuda;
    this.asyncMemory = new StreamOrderedMemory(entrance, cuda.driver().blockListener(), null);
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

  /** Remembers a caching pool by the steps that end it. */
  void add(MemoryPoolCore pool, PoolLifetime lifetime) {
    pools.add(pool);
    children.addPool(lifetime.endLent, lifetime.destroy);
  }

  void remove(MemoryPoolCore pool, PoolLifetime lifetime) {
    pools.remove(pool);
    children.removePool(lifetime.endLent, lifetime.destroy);
  }

  /** Remembers a pool of page-locked memory by the steps that end it. */
  void add(PinnedPoolCore pool, PoolLifetime lifetime) {
    pinnedPools.add(pool);
    children.addPool(lifetime.endLent, lifetime.destroy);
  }

  void remove(PinnedPoolCore pool, PoolLifetime lifetime) {
    pinnedPools.remove(pool);
    children.removePool(lifetime.endLent, lifetime.destroy);
  }

  /** Whether the collector has found a pool that was not closed yet. */
  boolean hasForgottenPools() {
    return pools.stream().anyMatch(MemoryPoolCore::isForgotten)
        || pinnedPools.stream().anyMatch(PinnedPoolCore::isForgotten);
  }

  /** Takes back what waited for streams in closed pools, which nobody asks any more. */
  void settleClosed() {
    for (MemoryPoolCore pool : pools) {
      pool.settleIfClosed();
    }
    for (PinnedPoolCore pool : pinnedPools) {
      pool.settleIfClosed();
    }
  }

  /** Waits for what was freed on a device, in pools of all kinds, closed ones too. */
  void awaitFrees(CudaDevice device) {
    driverPools.awaitFrees(device);
    for (MemoryPoolCore pool : pools) {
      pool.awaitIfClosed(device);
    }
  }

  /** Waits for what was freed in pools of page-locked memory that are closed. */
  void awaitPinnedFrees() {
    for (PinnedPoolCore pool : pinnedPools) {
      pool.awaitIfClosed();
    }
  }

  /** Releases what the pools of page-locked memory hold free; the bytes. */
  long releaseCachedPinned() {
    long released = 0;
    for (PinnedPoolCore pool : pinnedPools) {
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
    for (MemoryPoolCore pool : pools) {
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
