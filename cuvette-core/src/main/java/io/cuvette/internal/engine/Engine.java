package io.cuvette.internal.engine;

import io.cuvette.LeakLevel;
import io.cuvette.LeakReport;
import io.cuvette.MemoryLimit;
import io.cuvette.driver.CudaDriver;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.callback.Callback;
import io.cuvette.internal.callback.Callbacks;
import io.cuvette.internal.devicepool.CachesOfStream;
import io.cuvette.internal.driverpool.DriverPools;
import io.cuvette.internal.driverpool.ReleaseThresholds;
import io.cuvette.internal.fence.CachingPool;
import io.cuvette.internal.fence.MarkedStream;
import io.cuvette.internal.fence.Relief;
import io.cuvette.internal.fence.SyncListener;
import io.cuvette.internal.interop.LibraryHandles;
import io.cuvette.internal.kernel.Modules;
import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.ordered.OrderedMemory;
import io.cuvette.internal.pending.PendingFrees;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.share.Mappings;
import io.cuvette.internal.stream.Streams;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.IntUnaryOperator;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** The pools of a {@link Session}, and how all that it has made is taken back. Thread-safe. */
public final class Engine implements SyncListener, Relief {
  /** Stack for closing, in calls of {@link #deepen}: some 30 to 70 KB. */
  private static final int STACK_CALLS = 300;

  private final Session session;
  private final Streams streams;
  private final Callbacks callbacks;
  private final Mappings imports;
  private final DriverPools driverPools;
  private final LibraryHandles libraryHandles;
  private final Modules modules;
  private final Set<CachingPool> pools = ConcurrentHashMap.newKeySet();
  private final AtomicBoolean ending = new AtomicBoolean();

  /** An engine for a driver, which is closed at the end. */
  public Engine(
      CudaDriver driver,
      IntUnaryOperator firstDevice,
      Consumer<LeakReport> listener,
      MemoryLimit firstLimit,
      LeakLevel leakLevel) {
    this.imports = Mappings.of(driver.isSimulated());
    this.session =
        new Session(driver, firstDevice, listener, firstLimit, leakLevel, imports.process);
    this.streams =
        new Streams(
            session, this, this, new PendingFrees<>(Ending::releaseAgain), CachesOfStream::new);
    this.callbacks = new Callbacks(session);
    this.modules = new Modules(session);
    OrderedMemory asyncMemory = new OrderedMemory(session.gate(), driver.blockListener(), null);
    ReleaseThresholds thresholds = ReleaseThresholds.of(session.isSimulated());
    this.driverPools = new DriverPools(session, imports, asyncMemory, thresholds);
    this.libraryHandles = new LibraryHandles(session);
    session.children().add(() -> imports.endOf(session));
    session.children().add(asyncMemory::destroy);
  }

  public Session session() {
    return session;
  }

  public Streams streams() {
    return streams;
  }

  /** What runs callbacks. */
  public Callbacks callbacks() {
    return callbacks;
  }

  /** The memory of other processes. */
  public Mappings imports() {
    return imports;
  }

  /** The handles of cuBLAS and cuSOLVER. */
  public LibraryHandles libraryHandles() {
    return libraryHandles;
  }

  /** The modules with kernels. */
  public Modules modules() {
    return modules;
  }

  /** The driver's pools. */
  public DriverPools driverPools() {
    return driverPools;
  }

  /** Waits for all work that a device has now; see {@code CudaDevice.synchronize()}. */
  public void synchronize(Device device) {
    session.checkOpen();
    Callback inside = Callback.inside(session);
    if (inside != null) {
      throw inside.itself("synchronize() of " + device);
    }
    beforeWait(stream -> stream.device == device);
    long wait = device.beginWait();
    if (device.ask(
        driver ->
            streams.awaitAll(device)
                || session.frees().free(() -> driver.devices().ctxSynchronize(device.id())))) {
      device.endWait(wait);
    }
    callbacks.awaitPutOff();
    afterDevice();
    streams.ended().pollAll();
    settleClosed();
  }

  @Override
  public void add(CachingPool pool) {
    pools.add(pool);
  }

  @Override
  public void remove(CachingPool pool) {
    pools.remove(pool);
  }

  @Override
  public boolean hasForgottenPools() {
    return pools.stream().anyMatch(CachingPool::isForgotten);
  }

  @Override
  public void settleClosed() {
    pools.forEach(CachingPool::settleIfClosed);
    modules.poll();
  }

  @Override
  public void awaitReturns() {
    session.foreignUsers().awaitReturns();
  }

  @Override
  public void awaitFrees(@Nullable Device device) {
    awaitReturns();
    if (device != null) {
      driverPools.awaitFrees(device);
    }
    for (CachingPool pool : pools) {
      if (pool.isOfHost() == (device == null)) {
        pool.awaitIfClosed(device);
      }
    }
  }

  @Override
  public long releaseCached(@Nullable Device device) {
    long released = 0;
    for (CachingPool pool : pools) {
      if (pool.isOfHost() == (device == null)) {
        released += pool.release(device);
      }
    }
    if (device != null) {
      driverPools.giveBackIdle(stream -> stream.device == device);
      driverPools.trim();
    }
    return released;
  }

  @Override
  public void beforeWait(Predicate<MarkedStream> of) {
    driverPools.giveBackIdle(of);
  }

  @Override
  public void afterStream() {
    driverPools.poll();
  }

  @Override
  public void afterDevice() {
    session.gate().run(imports::settle); // these hold their pools
    driverPools.poll();
  }

  /**
   * Takes everything back, once. What other threads are about at this moment is waited for, so that
   * each thing is released by one thread alone, and none calls the driver after its end. An error
   * on the way, such as a full stack, leaves it half done, to be gone on with by the next call.
   * While code outside of Java uses memory nothing is taken back: the last to give some back does
   * so.
   *
   * @throws IllegalStateException if the segment of a buffer is in use: nothing is closed then but
   *     other segments
   */
  public void close() {
    if (!session.isClosed()) {
      session.state().checkOutsideCode("Cuda.close()");
    }
    long _ = deepen(STACK_CALLS, 1, 2, 3, 4); // a full stack is found before anything has changed
    if (!ending.compareAndSet(false, true)) {
      return;
    }
    Failures failures = new Failures();
    boolean isLeft;
    try {
      if (!session.isClosed()) {
        awaitReturns();
        beginClose(failures);
      }
      isLeft = session.foreignUsers().leaveEnd(() -> end(new Failures()));
    } catch (IllegalStateException | Error e) {
      ending.set(false);
      failures.addTo(e);
      throw e;
    }
    if (isLeft) {
      failures.throwFirst();
    } else {
      end(failures);
    }
  }

  /** The end, once nobody outside of Java uses memory. */
  private void end(Failures failures) {
    try {
      endAll(failures);
    } catch (IllegalStateException | Error e) {
      ending.set(false);
      failures.addTo(e);
      throw e;
    }
    failures.run(session.driver()::close);
    failures.throwFirst();
  }

  /** Lets nothing new begin and waits for what has; after a failure all of it can be done again. */
  private void beginClose(Failures failures) {
    try {
      callbacks.shut();
      failures.run(() -> driverPools.giveBackIdle(_ -> true));
      synchronizeAll(failures);
      session.setClosed(true);
      streams.views().closeAll();
    } catch (IllegalStateException | Error e) { // also no stack or heap for it: try once more later
      session.setClosed(false);
      callbacks.reopen();
      throw e;
    }
  }

  /** Ends all that is open, and waits for all threads in the driver. */
  private void endAll(Failures failures) {
    failures.run(callbacks::close);
    streams.awaitQueueing();
    streams.endCaptures(failures);
    synchronizeAll(failures); // once more: what found the session open has queued its work by now
    failures.run(session.leaks()::drain);
    session.gate().shut();
    driverPools.awaitUsers();
    session.children().close(failures);
    session.devices().forEach(device -> device.spareEvents.destroyAll(failures));
    if (driverPools.hasRetired()) {
      synchronizeAll(failures);
      failures.run(driverPools::destroyRetired);
    }
    streams.shut();
    session.gate().close();
  }

  /** Goes down the stack; the arguments, needed until the return, take space there. */
  private static long deepen(int calls, long a, long b, long c, long d) {
    return calls == 0 ? a + b + c + d : deepen(calls - 1, d, a, b, c) + a * b + c * d;
  }

  private void synchronizeAll(Failures failures) {
    for (Device device : session.devices()) {
      if (device.wasUsed()) {
        failures.run(() -> streams.awaitAll(device));
      }
    }
  }
}
