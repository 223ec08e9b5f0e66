package io.cuvette.internal.driverpool;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemLocationType;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.lifetime.ShutdownGate;
import io.cuvette.internal.ordered.OrderedMemory;
import io.cuvette.internal.ordered.OrderedSource;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.IntPredicate;
import java.util.function.LongSupplier;
import java.util.function.ToLongFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A memory pool of the driver, and what was taken from it here. One that was made or imported here
 * is destroyed after it was closed and its last memory was freed. Thread-safe.
 */
public abstract sealed class DriverPool implements OrderedSource permits OwnedPool, BorrowedPool {
  private final DriverPools pools;
  private final Session session;
  private final long handle;
  private final ShutdownGate gate;
  private final OrderedMemory memory;
  private final Runnable end = this::end;
  private final AtomicBoolean closed = new AtomicBoolean();

  /** Whether it was closed and could not be let go, for want of Java heap. */
  private final AtomicBoolean left = new AtomicBoolean();

  /** Whether what was to own it could not be made. */
  private volatile boolean abandoned;

  /** The threads that talk to the driver about the pool: it is not destroyed under them. */
  private final AtomicInteger users = new AtomicInteger();

  /** The last values of the attributes; null as long as it is open. */
  private volatile @Nullable PoolNumbers last;

  /** The mappings of imported memory that need the pool. */
  private final AtomicInteger holders = new AtomicInteger();

  DriverPool(DriverPools pools, long handle) {
    this.pools = pools;
    this.session = pools.session();
    this.handle = handle;
    this.gate = session.gate();
    this.memory = new OrderedMemory(gate, session.driver().blockListener(), this);
  }

  /** Takes its place among the pools, complete as it is. */
  final void register() {
    pools.add(this, end);
  }

  /** All that this one is among. */
  public final DriverPools pools() {
    return pools;
  }

  @Override
  public final Session session() {
    return session;
  }

  @Override
  public final long handle() {
    return handle;
  }

  /** Whether closing it is what ends it. */
  public boolean isOwned() {
    return false;
  }

  @Override
  public final boolean isClosed() {
    return closed.get();
  }

  /** The buffers that were taken from the pool here. */
  public final OrderedMemory memory() {
    return memory;
  }

  public final void checkOpen() {
    if (closed.get()) {
      throw new IllegalStateException(this + " is closed");
    }
  }

  /**
   * Keeps the pool from being destroyed, and its Cuda from ending, until {@link #leave}. What is
   * done meanwhile must not call code of the user, which could end the Cuda.
   */
  public final void enter() {
    users.incrementAndGet();
    if (closed.get() || session.isClosed()) {
      leave();
      session.checkOpen();
      checkOpen();
    }
  }

  public final void leave() {
    if (users.decrementAndGet() == 0 && closed.get()) {
      emptied();
    }
  }

  /** For a Cuda that is closed: waits for all threads between {@link #enter} and leaving. */
  public final void awaitUsers() {
    Await.until(() -> users.get() == 0);
  }

  /** Keeps the pool from being destroyed until {@link #release}, but for the end of its Cuda. */
  public final void hold() {
    enter();
    holders.incrementAndGet();
    leave();
  }

  public final void release() {
    if (holders.decrementAndGet() == 0 && closed.get()) {
      emptied();
    }
  }

  /**
   * Asks the driver about the pool, after the driver got back what is idle here and what waited for
   * streams that are done: its numbers are as if nothing was ever kept.
   */
  public final long ask(ToLongFunction<CudaDriver> question) {
    enter();
    try {
      memory.settle();
      memory.giveBackIdle(_ -> true);
      return question.applyAsLong(session.driver());
    } finally {
      leave();
    }
  }

  /** The value of an attribute when the pool was closed; null if it is open, or unknown. */
  public @Nullable Long last(int attribute) {
    PoolNumbers numbers = last;
    return numbers == null ? null : numbers.get(attribute);
  }

  public final void trimTo(long bytesToKeep) {
    ask(driver -> {
      boolean _ = memory.freesAreDone(); // so that the driver notices
      driver.pools().memPoolTrimTo(handle, bytesToKeep);
      return 0;
    });
  }

  @Override
  public final boolean canKeep() {
    return !closed.get() && !session.isClosed() && !pools.isShort();
  }

  /** Trims the pool of what it keeps for this process without use. */
  public abstract void trimKept();

  /** The same down to some bytes, unless it may be gone. */
  final void trimIfThere(BooleanSupplier isThere, LongSupplier kept) {
    unlessGone(() -> {
      if (isThere.getAsBoolean() && !session.isClosed()) {
        session.driver().pools().memPoolTrimTo(handle, kept.getAsLong());
      }
    });
  }

  /** Runs a step during which the pool is not destroyed, if it was there as the step began. */
  final void unlessGone(Runnable step) {
    users.incrementAndGet();
    try {
      step.run();
    } finally {
      leave();
    }
  }

  /**
   * Sets what devices may do, in one call of the driver.
   *
   * @param access one for each device, or one for all
   */
  public final void setAccess(List<Device> devices, int... access) {
    int[] ids = devices.stream().mapToInt(Device::id).toArray();
    ask(driver -> {
      driver.pools().memPoolSetAccess(handle, MemLocationType.DEVICE, ids, access);
      return 0;
    });
  }

  /** Rejects further allocations. Memory in use stays valid. */
  public final void close() {
    gate.run(this::closeNow);
  }

  /** Closes what nobody has after a failure, now or with a later step: there may be no heap. */
  public final void abandon(Throwable failure) {
    abandoned = true;
    pools.abandoned();
    try {
      close();
    } catch (RuntimeException | Error e) {
      Throwable _ = Failures.joined(failure, e);
    }
  }

  /** Tries again. */
  final void closeIfAbandoned() {
    if (abandoned) {
      try {
        close();
      } catch (OutOfMemoryError e) {
        pools.abandoned();
        throw e;
      }
    }
  }

  private void closeNow() {
    if (closed.get()) {
      if (left.compareAndSet(true, false)) {
        letGoNow();
      }
      return;
    }
    Failures failures = new Failures();
    failures.run(() -> memory.giveBackIdle(_ -> true));
    failures.run(this::rememberNumbers);
    failures.run(this::closing);
    if (closed.compareAndSet(false, true)) {
      try {
        failures.run(() -> memory.giveBackIdle(_ -> true)); // of threads that came meanwhile
        failures.run(this::letGoNow);
      } catch (OutOfMemoryError e) { // of the steps themselves
        left.set(true);
        throw e;
      }
    }
    failures.throwFirst();
  }

  private void letGoNow() {
    try {
      letGo();
    } catch (OutOfMemoryError e) {
      left.set(true);
      throw e;
    }
  }

  private void rememberNumbers() {
    unlessGone(() -> {
      if (!closed.get() && canBeAsked()) {
        last = PoolNumbers.of(session.driver(), handle);
      }
    });
  }

  /** What else there is to do before it is closed; can come again. */
  void closing() {}

  /**
   * Whether the driver surely still has the pool, with nothing of it in use here, and can be
   * queried about it. A handle of a pool that its owner has destroyed must not reach a driver.
   */
  abstract boolean canBeAsked();

  /** Whether it is closed, so that nothing more is allocated. */
  void letGo() {
    forgetIfEmpty();
    pools.poll(); // somebody here may have waited for this
  }

  /** The last memory of a closed pool was freed, or its last user left. */
  @Override
  public final void emptied() {
    forgetIfEmpty();
    pools.poll();
  }

  /** A thread that is still allocating from a closed pool may yet have memory for Cuda to end. */
  final void forgetIfEmpty() {
    if (isUnneeded()) {
      pools.remove(this, end);
    }
  }

  /**
   * Whether a closed pool can end. No user before the look at the memory means that no allocation
   * is on its way, so that an empty memory stays empty. None after it means that nobody trims the
   * pool because its memory was in use a moment ago.
   */
  final boolean isUnneeded() {
    return users.get() == 0 && holders.get() == 0 && memory.isEmpty() && users.get() == 0;
  }

  /** The numbers of the devices that can access the memory. */
  public final List<Integer> accessors() {
    return gate.make(() -> accessors(_ -> true).boxed().toList());
  }

  final IntStream accessors(IntPredicate among) {
    return session.devices().stream()
        .mapToInt(Device::id)
        .filter(among)
        .filter(id ->
            session.driver().pools().memPoolGetAccess(handle, MemLocationType.DEVICE, id)
                != MemAccessFlags.NONE);
  }

  /** For a Cuda that is closed: all memory is freed, also that in use. */
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
