package io.cuvette.internal.devicepool;

import io.cuvette.MemoryLimit;
import io.cuvette.PoolStats;
import io.cuvette.Registration;
import io.cuvette.internal.base.BargingLock;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.index.BlockArena;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.pool.PoolCore;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.session.ThreadState;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.stream.Streams;
import io.cuvette.internal.streamcache.BlockCache;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * What a {@code MemoryPool} does. Its buffers, the arenas of streams and its {@code Cuda} know this
 * alone, so that the pool can be forgotten. Thread-safe.
 */
public final class MemoryPoolCore extends PoolCore {
  /** Makes what the pool is on one device. */
  public interface Maker {
    DevicePool make(MemoryPoolCore pool, Device device, MemoryLimit limit);
  }

  /** The first limit on each device; null for the session's. */
  private final @Nullable MemoryLimit firstLimit;

  private final Maker maker;
  private final String text;

  private final ConcurrentHashMap<Device, DevicePool> devicePools = new ConcurrentHashMap<>();
  private final List<Pressure> listeners = new CopyOnWriteArrayList<>();
  private final BargingLock hookLock = new BargingLock();

  /** The hooks and listeners that are listed as open. */
  private final Set<AtomicBoolean> registrations = ConcurrentHashMap.newKeySet();

  /**
   * Asked for from there so that the class is there: no call is inlined that gives an unknown one.
   */
  private volatile @Nullable MemoryHooks hooks;

  /**
   * A pool for one object of its user.
   *
   * @param text what it is called
   * @param upstream where chunks come from, which also makes the buffers
   * @param firstLimit on each device; null for the session's
   * @param maker makes what it is on each device
   * @param faces makes buffers without memory
   */
  public MemoryPoolCore(
      Object of,
      String text,
      Streams streams,
      ChunkSource upstream,
      @Nullable MemoryLimit firstLimit,
      Maker maker,
      Faces faces) {
    super(of, streams, upstream, "the upstream resource", faces);
    this.firstLimit = firstLimit;
    this.maker = maker;
    this.text = text;
    this.hooks = MemoryHooks.none(session().driver().blockListener());
    opened();
  }

  /** Allocates a block in order of a stream, on its device. */
  public Face allocate(long bytes, OpenStream stream) {
    MemoryHooks watching = hooks;
    if (watching == null) {
      return take(bytes, stream);
    }
    long rounded = BlockArena.roundUp(bytes);
    return watching.malloc(this, stream, bytes, rounded, faces, () -> take(bytes, stream));
  }

  private Face take(long bytes, OpenStream stream) {
    long rounded = BlockArena.roundUp(bytes);
    stream.checkUsable();
    checkOpen();
    if (bytes == 0) {
      checkOwn(stream.state, stream.state.session);
      return DirectMemory.empty(faces, stream);
    }
    DriverStream state = stream.state;
    Capture capture = state.isExposed() ? state.capture() : null;
    if (capture != null) {
      return takeFor(capture, bytes, rounded, stream);
    }
    BlockCache arena = CachesOfStream.of(state).of(this);
    Face cached = arena.take(bytes, rounded, stream);
    return cached != null ? cached : arena.of.allocateSlow(arena, bytes, rounded, stream);
  }

  /** A block for captured work, which nothing queued before may still use. */
  private Face takeFor(Capture capture, long bytes, long rounded, OpenStream stream) {
    DriverStream like =
        streams().ofCapture(stream.state, capture.checked("allocate", stream.state));
    BlockCache arena = CachesOfStream.of(like).of(this);
    Face taken;
    try {
      taken = arena.of.allocateSlow(arena, bytes, rounded, stream);
    } catch (Capture.EndedException e) {
      return take(bytes, stream); // in order of the stream, or for the capture there is now
    }
    faces.memory(taken).block().use(capture);
    return taken;
  }

  public long freeAllBlocks(Device device) {
    checkOwn(device, device.session());
    streams().relief().awaitReturns();
    streams().relief().settleClosed();
    long released = release(device);
    Failures failures = new Failures();
    session().gate().run(() -> device.spareEvents.destroyAll(failures)); // last: it gave some back
    failures.throwFirst();
    return released;
  }

  @Override
  public boolean isOfHost() {
    return false;
  }

  @Override
  public long release(@Nullable Device device) {
    DevicePool pool = device == null ? null : devicePools.get(device);
    return pool == null ? 0 : pool.freeAllBlocks(null);
  }

  public long freeAllBlocks(OpenStream stream) {
    checkOwn(stream.state, stream.state.session);
    DevicePool pool = devicePools.get(stream.on());
    return pool == null ? 0 : pool.freeAllBlocks(stream.state);
  }

  public PoolStats stats(Device device) {
    return devicePool(device).stats();
  }

  public void resetPeaks(Device device) {
    devicePool(device).resetPeaks();
  }

  public MemoryLimit limit(Device device) {
    return devicePool(device).limit();
  }

  public long limitBytes(Device device) {
    return devicePool(device).limitBytes();
  }

  public void setLimit(Device device, MemoryLimit limit) {
    devicePool(device).setLimit(limit);
  }

  /** Releases what is cached until no more than some bytes are held; gives the bytes released. */
  public long trim(Device device, long keptBytes) {
    Checks.notNegative("keptBytes", keptBytes);
    return devicePool(device).trim(keptBytes, OptionalLong.empty());
  }

  /** Releases what is cached and was free for some time; gives the bytes released. */
  public long trim(Device device, Duration idleFor) {
    Objects.requireNonNull(idleFor, "idleFor");
    if (idleFor.isNegative()) {
      throw new IllegalArgumentException("idleFor: %s (expected: >= 0)".formatted(idleFor));
    }
    long nanos = TimeUnit.NANOSECONDS.convert(idleFor);
    return devicePool(device).trim(0, OptionalLong.of(nanos));
  }

  /** What the pool is on a device. */
  public DevicePool of(Device device) {
    return devicePool(device);
  }

  /** Adds a hook that sees one thread, or all if null. */
  public Registration addHook(PoolHook hook, @Nullable Thread thread) {
    changeHooks(() -> hooks = MemoryHooks.with(hooks, hook, thread));
    return registration(
        "hook " + hook.user(),
        () -> changeHooks(() -> hooks = MemoryHooks.without(hooks, hook, thread)));
  }

  public Registration addPressureListener(Pressure listener) {
    listeners.add(listener);
    return registration("pressure listener " + listener, () -> listeners.remove(listener));
  }

  public void assertConsistent() {
    devicePools.values().forEach(DevicePool::assertConsistent);
  }

  @Override
  public long heldBytes() {
    return devicePools.values().stream().mapToLong(DevicePool::heldBytes).sum();
  }

  @Override
  protected boolean isEmpty() {
    return devicePools.values().stream().allMatch(DevicePool::isEmpty);
  }

  @Override
  protected void releaseAtEnd() {
    endRegistrations();
    Failures failures = new Failures();
    for (DevicePool pool : devicePools.values()) {
      failures.run(pool::shut);
    }
    failures.throwFirst();
  }

  @Override
  public void settleIfClosed() {
    if (isClosed()) {
      devicePools.values().forEach(DevicePool::settleClosed);
    }
  }

  @Override
  public void awaitIfClosed(@Nullable Device device) {
    DevicePool pool = isClosed() && device != null ? devicePools.get(device) : null;
    if (pool != null) {
      pool.awaitClosed();
    }
  }

  @Override
  public String toString() {
    return text + "[upstream=" + upstream().source().user() + "]";
  }

  public @Nullable MemoryHooks hooks() {
    return hooks;
  }

  public DevicePool poolOf(DriverStream stream) {
    checkOwn(stream, stream.session);
    DevicePool devicePool = devicePool(stream.device);
    checkOpen(); // again: whoever tears the pool down may not have seen the device's
    return devicePool;
  }

  private void checkOwn(Object what, Session of) {
    if (of != session()) {
      throw new IllegalArgumentException(
          "%s belongs to another Cuda than the pool".formatted(what));
    }
  }

  /** Asks the listeners; whether anyone gave something back. */
  public boolean pressure(Device device, long neededBytes) {
    long given = 0;
    ThreadState state = session().state();
    for (Pressure listener : listeners) {
      state.enter(this, listener);
      try {
        given += Checks.notNegative("bytes given back", listener.onPressure(device, neededBytes));
      } finally {
        state.leave();
      }
    }
    return given > 0;
  }

  private DevicePool devicePool(Device device) {
    checkOwn(device, device.session());
    DevicePool pool = devicePools.get(device);
    if (pool != null) {
      return pool;
    }
    DevicePool made = newDevicePool(device); // asks the driver, so not inside computeIfAbsent
    DevicePool other;
    try {
      other = devicePools.putIfAbsent(device, made);
    } catch (OutOfMemoryError e) {
      made.discard();
      throw e;
    }
    if (other != null) {
      made.discard();
      return other;
    }
    if (isClosed()) {
      made.shut(); // who closes it may not have seen this one
    }
    return made;
  }

  private DevicePool newDevicePool(Device device) {
    return maker.make(this, device, firstLimit != null ? firstLimit : session().firstLimit());
  }

  /** So that closing again does not remove what was added again meanwhile. */
  private Registration registration(String what, Runnable remove) {
    AtomicBoolean removed = new AtomicBoolean();
    registrations.add(removed);
    session().leaks().opened(removed, () -> what + " of " + this);
    if (isClosed()) {
      endRegistrations();
    }
    return () -> {
      if (removed.compareAndSet(false, true)) {
        registrations.remove(removed);
        session().leaks().closed(removed);
        remove.run();
      }
    };
  }

  /** Hooks and listeners end with the pool, but for the hooks of blocks that come back later. */
  private void endRegistrations() {
    registrations.forEach(session().leaks()::closed);
  }

  private void changeHooks(Runnable change) {
    hookLock.lock();
    try {
      change.run();
    } finally {
      hookLock.unlock();
    }
  }

  @Override
  protected void endLent(Failures failures) {
    devicePools.values().forEach(pool -> failures.run(pool::endLent));
  }
}
