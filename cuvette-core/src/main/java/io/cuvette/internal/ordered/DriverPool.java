package io.cuvette.internal.ordered;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.lifetime.Entrance;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntPredicate;
import java.util.function.LongSupplier;
import java.util.function.ToLongFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A memory pool of the driver, made here, imported, or somebody else's, and what was taken from it
 * here. One that was made or imported here is destroyed after it was closed and its last memory was
 * freed. Thread-safe.
 */
public final class DriverPool {
  private final DriverPools pools;
  private final Session session;
  private final long handle;
  private final Origin origin;

  /** Whether a device has access that was given to it and can be taken away. */
  private final IntPredicate isGuest;

  /** Which pool is now the one that was borrowed as some place's; null if it was not. */
  private final @Nullable LongSupplier current;

  private final Entrance entrance;
  private final StreamOrderedMemory memory;
  private final Runnable end = this::end;
  private final AtomicBoolean closed = new AtomicBoolean();

  /** The threads that talk to the driver about the pool: it is not destroyed under them. */
  private final AtomicInteger users = new AtomicInteger();

  /** What the pool said last; null as long as it is open. */
  private volatile @Nullable PoolNumbers last;

  /** Whether the release threshold was raised here, and not restored yet. */
  private final AtomicBoolean raised = new AtomicBoolean();

  private final Once destroyed = new Once();

  /** The mappings of imported memory that need the pool. */
  private final AtomicInteger holders = new AtomicInteger();

  /** Who made the pool. */
  private enum Origin {
    HERE,
    OTHER_PROCESS,
    BORROWED
  }

  /** What the pool was imported from, kept as long as the pool; null if it was not. */
  private final @Nullable PoolOrigin importedFrom;

  private DriverPool(
      DriverPools pools,
      long handle,
      Origin origin,
      IntPredicate isGuest,
      @Nullable LongSupplier current,
      @Nullable PoolOrigin importedFrom) {
    this.importedFrom = importedFrom;
    this.pools = pools;
    this.session = pools.session();
    this.handle = handle;
    this.origin = origin;
    this.isGuest = isGuest;
    this.current = current;
    this.entrance = session.entrance();
    this.memory = new StreamOrderedMemory(entrance, session.driver().blockListener(), this);
    pools.add(this, end);
  }

  private static DriverPool create(DriverPools pools, PoolProperties properties) {
    Session session = pools.session();
    session.checkOpen();
    return session
        .entrance()
        .make(() -> {
          pools.poll();
          IntPredicate isGuest = device -> StreamOrderedSupport.isGuest(properties, device);
          long handle = session.driver().pools().memPoolCreate(properties);
          try {
            return new DriverPool(pools, handle, Origin.HERE, isGuest, null, null);
          } catch (OutOfMemoryError e) {
            session.driver().pools().memPoolDestroy(handle);
            throw e;
          }
        });
  }

  /**
   * A new pool that gives nothing back by itself: the driver's default would empty it at each
   * synchronisation.
   */
  public static DriverPool createKeeping(DriverPools pools, PoolProperties properties) {
    DriverPool made = create(pools, properties);
    try {
      new AttributesOfPool(made).keepAll();
      return made;
    } catch (RuntimeException | OutOfMemoryError e) {
      Failures.closeAfter(e, made::close);
      throw e;
    }
  }

  /** The pool of a place, as the driver says which that is. */
  public static DriverPool borrow(DriverPools pools, LongSupplier current) {
    return borrow(pools, pools.session().ask(_ -> current.getAsLong()), current, false);
  }

  /**
   * Somebody else's pool, who keeps it as long as it is in use here.
   *
   * @param current which pool is now the one of some place; null if it was given by its handle
   * @param keeping whether it gives nothing back by itself as long as it is open here
   */
  public static DriverPool borrow(
      DriverPools pools, long handle, @Nullable LongSupplier current, boolean keeping) {
    Session session = pools.session();
    session.checkOpen();
    return session
        .entrance()
        .make(() -> {
          DriverPool pool =
              new DriverPool(pools, handle, Origin.BORROWED, _ -> false, current, null);
          if (keeping) {
            pool.keepAll();
          }
          return pool;
        });
  }

  private void keepAll() {
    if (pools.isImportedHere(this)) {
      return;
    }
    try {
      pools.thresholds().raise(session.driver(), handle);
      raised.set(true);
    } catch (RuntimeException | OutOfMemoryError e) {
      Failures.closeAfter(e, this::close);
      throw e;
    }
  }

  /**
   * A pool of another process, whose origin it has from here on unless this fails.
   *
   * @param home the device the memory is of, null if it is of none
   */
  public static DriverPool imported(DriverPools pools, @Nullable Device home, PoolOrigin from) {
    Session session = pools.session();
    session.checkOpen();
    return session
        .entrance()
        .make(() -> {
          pools.poll();
          IntPredicate isGuest = device -> home == null || home.id() != device;
          long handle = from.open(session.driver());
          try {
            return new DriverPool(pools, handle, Origin.OTHER_PROCESS, isGuest, null, from);
          } catch (OutOfMemoryError e) {
            session.driver().pools().memPoolDestroy(handle);
            throw e;
          }
        });
  }

  /** All that this one is among. */
  public DriverPools pools() {
    return pools;
  }

  public Session session() {
    return session;
  }

  public long handle() {
    return handle;
  }

  public boolean isOwned() {
    return origin != Origin.BORROWED && !closed.get();
  }

  public boolean isImported() {
    return origin == Origin.OTHER_PROCESS;
  }

  public boolean isMadeHere() {
    return origin == Origin.HERE;
  }

  public boolean isClosed() {
    return closed.get();
  }

  /** The buffers that were taken from the pool here. */
  public StreamOrderedMemory memory() {
    return memory;
  }

  public void checkOpen() {
    if (closed.get()) {
      throw new IllegalStateException(this + " is closed");
    }
  }

  /**
   * Keeps the pool from being destroyed, and its Cuda from ending, until {@link #leave}. What is
   * done meanwhile must not call code of the user, which could end the Cuda.
   */
  public void enter() {
    users.incrementAndGet();
    if (closed.get() || session.isClosed()) {
      leave();
      session.checkOpen();
      checkOpen();
    }
  }

  public void leave() {
    if (users.decrementAndGet() == 0 && closed.get()) {
      emptied();
    }
  }

  /** For a Cuda that is closed: waits until nobody is between {@link #enter} and leaving. */
  public void awaitUsers() {
    Await.until(() -> users.get() == 0);
  }

  /** Keeps the pool from being destroyed until {@link #release}, but for the end of its Cuda. */
  public void hold() {
    enter();
    holders.incrementAndGet();
    leave();
  }

  public void release() {
    if (holders.decrementAndGet() == 0 && closed.get()) {
      emptied();
    }
  }

  /**
   * Asks the driver about the pool, after the driver got back what is idle here and what waited for
   * streams that are done: its numbers are as if nothing was ever kept.
   */
  public long ask(ToLongFunction<CudaDriver> question) {
    enter();
    try {
      memory.settle();
      memory.giveBackIdle(_ -> true);
      return question.applyAsLong(session.driver());
    } finally {
      leave();
    }
  }

  /** What the pool had said of an attribute when it was closed; null if it is open, or unknown. */
  public @Nullable Long last(int attribute) {
    PoolNumbers numbers = last;
    return numbers == null ? null : numbers.get(attribute);
  }

  public void trimTo(long bytesToKeep) {
    ask(driver -> {
      boolean _ = memory.freesAreDone(); // so that the driver notices
      driver.pools().memPoolTrimTo(handle, bytesToKeep);
      return 0;
    });
  }

  /** Has the pool give back what it keeps on behalf of this process, and nobody uses. */
  public void trimKept() {
    if (closed.get() || !(origin == Origin.HERE || raised.get())) {
      return; // others' pools are left as they are
    }
    users.incrementAndGet();
    try {
      if (!closed.get() && !session.isClosed()) {
        long kept = raised.get() ? pools.thresholds().before(handle) : 0;
        session.driver().pools().memPoolTrimTo(handle, kept);
      }
    } finally {
      leave();
    }
  }

  /**
   * Sets what devices may do, in one call of the driver.
   *
   * @param access one for each device, or one for all
   */
  public void setAccess(List<Device> devices, int... access) {
    int[] ids = devices.stream().mapToInt(Device::id).toArray();
    ask(driver -> {
      driver.pools().memPoolSetAccess(handle, MemLocationType.DEVICE, ids, access);
      return 0;
    });
  }

  /** Lets nobody allocate any more. Memory in use stays valid. */
  public void close() {
    entrance.run(this::closeNow);
  }

  private void closeNow() {
    if (closed.get()) {
      return;
    }
    Failures failures = new Failures();
    failures.run(() -> memory.giveBackIdle(_ -> true));
    failures.run(this::rememberNumbers);
    failures.run(this::restoreThreshold);
    if (closed.compareAndSet(false, true)) {
      failures.run(() -> memory.giveBackIdle(_ -> true)); // of threads that came meanwhile
      failures.run(this::letGo);
    }
    failures.throwFirst();
  }

  private void rememberNumbers() {
    users.incrementAndGet();
    try {
      if (!closed.get() && canBeAsked()) {
        last = PoolNumbers.of(session.driver(), handle);
      }
    } finally {
      leave();
    }
  }

  private void restoreThreshold() {
    if (!raised.getAndSet(false)) {
      return;
    }
    users.incrementAndGet();
    try {
      restoreOrForget();
    } catch (CudaException e) {
      Failures.closeAfter(e, this::restoreAtLast);
      throw e;
    } finally {
      leave();
    }
  }

  private void restoreAtLast() {
    try {
      restoreOrForget();
    } catch (CudaException e) {
      pools.thresholds().forget(handle);
      throw e;
    }
  }

  private void restoreOrForget() {
    if (current == null || canBeAsked()) {
      pools.thresholds().restore(session.driver(), handle);
    } else {
      pools.thresholds().forget(handle);
    }
  }

  /**
   * Whether the driver surely still has the pool, with nothing of it in use here, and tells about
   * it. A handle of a pool that its owner has destroyed must not reach a driver.
   */
  private boolean canBeAsked() {
    return switch (origin) {
      case HERE -> true;
      case OTHER_PROCESS -> false;
      case BORROWED -> pools.isMadeHere(this) || (current != null && current.getAsLong() == handle);
    };
  }

  private void letGo() {
    forgetIfEmpty();
    if (origin == Origin.BORROWED) {
      pools.poll(); // the owner here may have waited for this
    } else {
      pools.retire(this);
    }
  }

  /** The last memory of a closed pool was freed, or its last user left. */
  public void emptied() {
    forgetIfEmpty();
    pools.poll();
  }

  /** A thread that is still allocating from a closed pool may yet have memory for Cuda to end. */
  private void forgetIfEmpty() {
    if (isUnneeded()) {
      pools.remove(this, end);
    }
  }

  /** Whether a closed pool can be destroyed; frees what waited for streams that are done. */
  public boolean isUnused() {
    memory.settle();
    // Who borrowed it tells of its frees before it goes.
    return isUnneeded() && !pools.isBorrowed(this) && memory.freesAreDone();
  }

  private boolean isUnneeded() {
    return users.get() == 0 && holders.get() == 0 && memory.isEmpty();
  }

  /** The driver gives a recycled handle the access its predecessor had, so that is taken first. */
  public void destroy() {
    int[] guests = destroyed.isDone() ? new int[0] : accessors(isGuest).toArray();
    if (guests.length > 0) {
      try {
        revoke(guests);
      } catch (CudaException e) {
        revokeWhatCanBe(guests);
      }
    }
    destroyWithItsAccess();
  }

  /** For a Cuda that ends, and a driver that does not let access be taken. */
  public void destroyWithItsAccess() {
    destroyed.free(
        () -> pools.mappings().freeing(() -> session.driver().pools().memPoolDestroy(handle)));
    PoolOrigin.close(importedFrom);
  }

  /** What tells an imported pool from others, whatever it claims to be; null if it was not. */
  public @Nullable PoolOrigin importedFrom() {
    return importedFrom;
  }

  private void revoke(int... guests) {
    session
        .driver()
        .pools()
        .memPoolSetAccess(handle, MemLocationType.DEVICE, guests, MemAccessFlags.NONE);
  }

  /** A pool that was imported as another device's has an owner that cannot lose its access. */
  private void revokeWhatCanBe(int[] guests) {
    for (int guest : guests) {
      try {
        revoke(guest);
      } catch (CudaException e) {
        if (e.status() != CudaStatus.INVALID_VALUE && e.status() != CudaStatus.INVALID_DEVICE) {
          throw e;
        }
      }
    }
  }

  /** The numbers of the devices that can access the memory. */
  public List<Integer> accessors() {
    return entrance.make(() -> accessors(_ -> true).boxed().toList());
  }

  private IntStream accessors(IntPredicate among) {
    return session.devices().stream()
        .mapToInt(Device::id)
        .filter(among)
        .filter(id ->
            session.driver().pools().memPoolGetAccess(handle, MemLocationType.DEVICE, id)
                != MemAccessFlags.NONE);
  }

  /** Cuda is closed: all memory is freed, whoever has it. */
  private void end() {
    Failures failures = new Failures();
    failures.run(memory::destroy);
    failures.run(this::close);
    failures.throwFirst();
  }

  @Override
  public String toString() {
    return "pool 0x" + Long.toHexString(handle);
  }
}
