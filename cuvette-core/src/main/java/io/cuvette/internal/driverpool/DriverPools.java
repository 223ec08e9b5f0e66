package io.cuvette.internal.driverpool;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.channel.PoolHandle;
import io.cuvette.internal.lifetime.Children;
import io.cuvette.internal.lifetime.ShutdownGate;
import io.cuvette.internal.ordered.OrderedMemory;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.DriverStream;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The driver's pools that one {@code Cuda} takes memory from. One that was made here and is closed
 * while its memory is in use, or its free not done, waits to be destroyed: a driver (seen with
 * 580.159) that destroys such a pool crashes at some later synchronisation. Thread-safe.
 */
public final class DriverPools {
  private final Session session;
  private final MappingOrder mappings;
  private final ShutdownGate gate;
  private final Children children;

  /** What was taken from the pools that were current for a device at that moment. */
  private final OrderedMemory asyncMemory;

  private final ReleaseThresholds thresholds;
  private final List<DriverPool> open = new CopyOnWriteArrayList<>();
  private final ConcurrentLinkedQueue<OwnedPool> retired = new ConcurrentLinkedQueue<>();

  private volatile boolean hasAbandoned;

  /** The allocations that are short of memory at the moment. */
  private final AtomicInteger shortages = new AtomicInteger();

  public DriverPools(
      Session session,
      MappingOrder mappings,
      OrderedMemory asyncMemory,
      ReleaseThresholds thresholds) {
    this.session = session;
    this.mappings = mappings;
    this.gate = session.gate();
    this.children = session.children();
    this.asyncMemory = asyncMemory;
    this.thresholds = thresholds;
  }

  public Session session() {
    return session;
  }

  /** What keeps frees apart from mappings. */
  public MappingOrder mappings() {
    return mappings;
  }

  /** What {@code MemoryResource.async()} gave out. */
  public OrderedMemory asyncMemory() {
    return asyncMemory;
  }

  /** The release thresholds of others' pools that are raised here. */
  public ReleaseThresholds thresholds() {
    return thresholds;
  }

  /** Remembers a pool and the step that ends it together with the Cuda. */
  public void add(DriverPool pool, Runnable end) {
    try {
      children.add(end);
      open.add(pool);
    } catch (OutOfMemoryError e) {
      open.remove(pool);
      children.remove(end);
      throw e;
    }
  }

  /** Forgets a closed pool that has no memory in use; who made it waits for its frees. */
  public void remove(DriverPool pool, Runnable end) {
    Stream.concat(open.stream(), retired.stream())
        .filter(other -> isSame(other, pool))
        .forEach(other -> other.memory().freeing().addAll(pool.memory().freeing()));
    open.remove(pool);
    children.remove(end);
  }

  /**
   * Whether a pool is in use as somebody else's too: of its handle, that is. One that was imported
   * twice is not: the driver counts these.
   */
  public boolean isBorrowed(DriverPool pool) {
    return open.stream()
        .anyMatch(other ->
            !(other instanceof ImportedPool && pool instanceof ImportedPool)
                && isSame(other, pool));
  }

  /**
   * Whether a pool is one of another process too, of which the driver reports nothing, or once
   * more.
   */
  public boolean isImportedHere(DriverPool pool) {
    return Stream.concat(open.stream(), retired.stream())
        .anyMatch(other -> other instanceof ImportedPool && isSame(other, pool));
  }

  /** Whether a pool that was borrowed is one that was made here: it is not destroyed before. */
  public boolean isMadeHere(DriverPool borrowed) {
    return Stream.concat(open.stream(), retired.stream())
        .anyMatch(other -> other instanceof MadePool && isSame(other, borrowed));
  }

  /**
   * What the pool of a handle was imported from, which must be the same file; null if it was not.
   */
  public @Nullable PoolOrigin importedFrom(PoolHandle handle) {
    return Stream.concat(open.stream(), retired.stream())
        .filter(ImportedPool.class::isInstance)
        .map(pool -> ((ImportedPool) pool).origin())
        .filter(origin -> origin.isOf(handle))
        .findFirst()
        .orElse(null);
  }

  /** Whether a handle is of a pool that was not imported: one of this process. */
  public boolean isOwn(long handle) {
    return handle != 0
        && Stream.concat(open.stream(), retired.stream())
            .anyMatch(pool -> !(pool instanceof ImportedPool) && pool.handle() == handle);
  }

  private static boolean isSame(DriverPool other, DriverPool pool) {
    return other != pool && other.handle() == pool.handle();
  }

  /**
   * Frees what is kept idle on some streams, before somebody waits for them: a pool releases memory
   * then, and this is what it may release. What waited for streams that are done goes along.
   */
  public void giveBackIdle(Predicate<? super DriverStream> of) {
    asyncMemory.settle();
    for (DriverPool pool : open) {
      pool.memory().settle();
      pool.memory().giveBackIdle(of);
    }
  }

  /**
   * {@link #giveBackIdle} of all, and waits until the driver has also what other threads are giving
   * back.
   */
  public void giveBackAll() {
    giveBackIdle(_ -> true);
    for (DriverPool pool : open) {
      pool.memory().awaitGivenBack();
    }
  }

  /**
   * Waits until what was freed on a device is free, also in pools that were closed, which are then
   * destroyed.
   */
  public void awaitFrees(Device device) {
    asyncMemory.awaitFrees(device);
    open.forEach(pool -> pool.memory().awaitFrees(device));
    retired.forEach(pool -> pool.memory().awaitFrees(device));
    poll();
  }

  /** For a Cuda that is closed: waits for the threads that talk to the driver about a pool. */
  public void awaitUsers() {
    open.forEach(DriverPool::awaitUsers);
  }

  /** Trims the pools of a device of what they keep for this process without use. */
  public void trim() {
    for (DriverPool pool : open) {
      pool.trimKept();
    }
  }

  /**
   * Runs an allocation that is short of memory. Meanwhile no pool keeps anything idle: what other
   * threads close would be missing although nobody uses it.
   */
  public <T> T whileShort(Supplier<T> allocation) {
    shortages.incrementAndGet();
    try {
      return allocation.get();
    } finally {
      shortages.decrementAndGet();
    }
  }

  public boolean isShort() {
    return shortages.get() > 0;
  }

  /**
   * Destroys a closed pool as soon as it can be.
   *
   * @throws CudaException if the driver refuses now; it will be tried again
   */
  public void retire(OwnedPool pool) {
    if (!retired.contains(pool)) {
      retired.add(pool); // first: there may be no heap for it
    }
    pool.forgetIfEmpty();
    destroyIfUnused(pool);
  }

  /** Some that are open have no owner. */
  void abandoned() {
    hasAbandoned = true;
  }

  /** Destroys those that can be by now; one that the driver refuses stays. */
  public void poll() {
    if (hasAbandoned) {
      hasAbandoned = false;
      open.forEach(DriverPool::closeIfAbandoned);
    }
    if (!retired.isEmpty()) {
      gate.run(this::pollNow);
    }
  }

  private void pollNow() {
    for (OwnedPool pool : List.copyOf(retired)) { // one that is refused is added again
      try {
        destroyIfUnused(pool);
      } catch (CudaException e) {
        // It stays, and destroyRetired() reports it again, unless another thread destroyed it
        // meanwhile.
      }
    }
  }

  public boolean hasRetired() {
    return !retired.isEmpty();
  }

  /** Destroys all that wait, once all work is done and all memory freed. */
  public void destroyRetired() {
    Failures failures = new Failures();
    for (OwnedPool pool = retired.poll(); pool != null; pool = retired.poll()) {
      OwnedPool last = pool;
      failures.run(() -> destroyAtLast(last));
    }
    failures.throwFirst();
  }

  private static void destroyAtLast(OwnedPool pool) {
    try {
      pool.destroy();
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, pool::destroyWithItsAccess);
      Failures.runAfter(e, pool::closeOrigin);
      throw e;
    }
  }

  private void destroyIfUnused(OwnedPool pool) {
    if (pool.isUnused() && retired.remove(pool)) {
      try {
        if (pool instanceof ImportedPool && isImportedHere(pool)) {
          giveBackImport(pool);
        } else {
          pool.destroy();
        }
      } catch (RuntimeException | Error e) { // also no heap or stack for it
        retired.add(pool);
        throw e;
      }
    }
  }

  /**
   * Gives one of two imports back, with nothing that the other needs. The driver refuses that for
   * host memory while some of it is mapped; then it goes with the other.
   */
  private void giveBackImport(OwnedPool pool) {
    pool.closeOrigin();
    try {
      pool.destroyWithItsAccess();
    } catch (CudaException e) {
      retired.add(pool);
    }
  }
}
