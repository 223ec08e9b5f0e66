package io.cuvette;

import io.cuvette.internal.Checks;
import io.cuvette.pool.BlockArena;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Keeps freed device memory for reuse, one arena for each device and stream, with CuPy's rules:
 * sizes are rounded up to 512 bytes, the smallest cached block that fits is split exactly,
 * neighbours merge fully when they are freed, and a miss asks upstream for exactly the rounded
 * size. Beyond CuPy, memory used on other streams comes back only when that use is done, and a
 * large request takes the cached memory of an idle stream before the pool grows.
 *
 * <p>Methods without a device are about the current device of the thread. Thread-safe; freeing
 * never waits.
 */
public final class MemoryPool implements MemoryResource, AutoCloseable {
  private final Cuda cuda;
  private final PoolOptions options;
  private final ConcurrentHashMap<CudaDevice, DevicePool> devicePools = new ConcurrentHashMap<>();
  private final List<PressureListener> listeners = new CopyOnWriteArrayList<>();
  private final ReentrantLock hookLock = new ReentrantLock();

  /** The hooks and listeners that are listed as open. */
  private final Set<AtomicBoolean> registrations = ConcurrentHashMap.newKeySet();

  private final Runnable end = this::destroy;

  /**
   * Asked for from there so that the class is there: no call is inlined that gives an unknown one.
   */
  private volatile @Nullable MemoryHooks hooks = MemoryHooks.none();

  private volatile boolean closed;

  /** A pool with {@link PoolOptions#DEFAULTS}. */
  public MemoryPool(Cuda cuda) {
    this(cuda, PoolOptions.DEFAULTS);
  }

  /** A pool. It asks for no memory before the first allocation. */
  public MemoryPool(Cuda cuda, PoolOptions options) {
    Objects.requireNonNull(cuda, "cuda");
    this.cuda = cuda;
    this.options = Objects.requireNonNull(options, "options");
    cuda.checkOpen();
    cuda.owned().add(this, end);
    cuda.leaks().opened(this, this::toString);
  }

  /** How the pool was made. */
  public PoolOptions options() {
    return options;
  }

  /** Allocates on the current stream. */
  public Buffer allocate(long bytes) {
    return allocate(bytes, cuda.currentStream());
  }

  /**
   * Allocates a block in order of a stream, on its device.
   *
   * @param bytes at least 0; 0 gives a buffer without memory, which no statistics count
   * @throws OutOfDeviceMemoryException after everything was tried, with the numbers that tell why
   * @throws IllegalStateException if the pool or the stream is closed, or if this is called inside
   *     a hook of this pool; to grow it, also inside its upstream or a pressure listener of it
   */
  @Override
  public Buffer allocate(long bytes, CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    MemoryHooks watching = hooks;
    if (watching == null) {
      return take(bytes, stream).asBuffer();
    }
    long rounded = BlockArena.roundUp(bytes);
    return watching.malloc(this, stream, bytes, rounded, () -> take(bytes, stream)).asBuffer();
  }

  private BufferBase take(long bytes, CudaStream stream) {
    long rounded = BlockArena.roundUp(bytes);
    stream.checkUsable();
    checkOpen();
    if (bytes == 0) {
      checkOwn(stream.state);
      return DirectMemory.emptyDevice(stream);
    }
    StreamState state = stream.state;
    Capture capture = state.isExposed() ? state.capture() : null;
    if (capture != null) {
      return takeFor(capture, bytes, rounded, stream);
    }
    PoolArena arena = state.arenas.of(this);
    BufferBase cached = arena.take(bytes, rounded, stream);
    return cached != null ? cached : arena.devicePool.allocateSlow(arena, bytes, rounded, stream);
  }

  /** A block for captured work, which nothing queued before may still use. */
  private BufferBase takeFor(Capture capture, long bytes, long rounded, CudaStream stream) {
    StreamState like = capture.checked("allocate", stream.state).stateLike(stream.state);
    PoolArena arena = like.arenas.of(this);
    BufferBase taken = arena.devicePool.allocateSlow(arena, bytes, rounded, stream);
    taken.lifetime().use(capture);
    return taken;
  }

  /**
   * Gives cached memory of all streams back to upstream, as far as whole chunks are free.
   *
   * @return the bytes given back
   */
  public long freeAllBlocks() {
    return freeAllBlocks(cuda.currentDevice());
  }

  /** {@link #freeAllBlocks()} on a device. */
  public long freeAllBlocks(CudaDevice device) {
    Objects.requireNonNull(device, "device");
    cuda.owned().settleClosed();
    return release(device);
  }

  long release(CudaDevice device) {
    DevicePool pool = devicePools.get(device);
    return pool == null ? 0 : pool.freeAllBlocks(null);
  }

  /** Gives cached memory of one stream back to upstream; 0 for a stream that has none. */
  public long freeAllBlocks(CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    DevicePool pool = devicePools.get(stream.device());
    return pool == null ? 0 : pool.freeAllBlocks(stream.state);
  }

  /** Bytes of the blocks in use. */
  public long usedBytes() {
    return stats().usedBytes();
  }

  /** Bytes of the cached blocks. */
  public long freeBytes() {
    return stats().freeBytes();
  }

  /** Bytes held from upstream: used and free. */
  public long totalBytes() {
    return stats().heldBytes();
  }

  /** The number of cached blocks. */
  public int freeBlocks() {
    return stats().freeBlocks();
  }

  /** All numbers of the current device. */
  public PoolStats stats() {
    return stats(cuda.currentDevice());
  }

  /** All numbers of a device. Takes back what is done or forgotten first. */
  public PoolStats stats(CudaDevice device) {
    return devicePool(device).stats();
  }

  /** Starts the peaks of a device anew from what is used and held now. */
  public void resetPeaks(CudaDevice device) {
    devicePool(device).resetPeaks();
  }

  /** The limit on the current device. */
  public MemoryLimit limit() {
    return limit(cuda.currentDevice());
  }

  /** The limit on a device. */
  public MemoryLimit limit(CudaDevice device) {
    return devicePool(device).limit();
  }

  /** The limit on the current device in bytes, {@link Long#MAX_VALUE} for none. */
  public long limitBytes() {
    return devicePool(cuda.currentDevice()).limitBytes();
  }

  /** Sets the limit on the current device; {@link MemoryLimit#none()}, or one of 0, is no limit. */
  public void setLimit(MemoryLimit limit) {
    Objects.requireNonNull(limit, "limit");
    setLimit(cuda.currentDevice(), limit);
  }

  /**
   * Sets the limit on a device; {@link MemoryLimit#none()}, or one of 0, is no limit. What is held
   * beyond a smaller limit stays; the pool just does not grow.
   */
  public void setLimit(CudaDevice device, MemoryLimit limit) {
    Objects.requireNonNull(limit, "limit");
    devicePool(device).setLimit(limit);
  }

  /**
   * Adds a hook that sees all threads, until the result is closed, or the pool.
   *
   * @throws IllegalStateException if the hook is there already
   */
  public Registration addHook(MemoryHook hook) {
    return register(hook, null);
  }

  /** Adds a hook that sees only this thread, until the scope closes. */
  public Scope useHook(MemoryHook hook) {
    Registration registration = register(hook, Thread.currentThread());
    return new Scope(cuda.state(), "hook " + hook, registration::close);
  }

  /** Adds a listener that is asked when memory runs out, until the result is closed. */
  public Registration addPressureListener(PressureListener listener) {
    listeners.add(Objects.requireNonNull(listener, "listener"));
    return registration("pressure listener " + listener, () -> listeners.remove(listener));
  }

  /**
   * Checks the pool's books, for diagnosis: on each device, the bytes that its limit counts are
   * those in its arenas and those that threads are bringing in or out at this moment. Other threads
   * wait meanwhile, so this is not for use in production.
   *
   * @throws AssertionError if memory was lost or counted twice, with the numbers
   */
  public void assertConsistent() {
    devicePools.values().forEach(DevicePool::assertConsistent);
  }

  /** Whether the pool was closed. */
  public boolean isClosed() {
    return closed;
  }

  /**
   * Gives the cached memory back and lets nobody allocate any more. Buffers in use stay valid;
   * their memory goes back to upstream when they are closed. What streams use at that time goes
   * back when one of them, or the device, was waited for, or when memory is needed. Does nothing
   * the second time.
   */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    cuda.leaks().closed(this);
    endRegistrations();
    Failures failures = new Failures();
    for (DevicePool pool : devicePools.values()) {
      failures.run(pool::shut);
    }
    forgetIfEmpty();
    failures.throwFirst();
  }

  /** Takes back what streams no longer use, if nobody else does. */
  void settleIfClosed() {
    if (closed) {
      devicePools.values().forEach(pool -> pool.pending().poll());
    }
  }

  /** The same once the streams are done with it. */
  void awaitIfClosed(CudaDevice device) {
    DevicePool pool = closed ? devicePools.get(device) : null;
    if (pool != null) {
      pool.pending().await();
    }
  }

  /** A closed pool that holds nothing has nothing left to end. */
  void forgetIfEmpty() {
    if (devicePools.values().stream().allMatch(pool -> pool.heldBytes() == 0)) {
      cuda.owned().remove(this, end);
    }
  }

  @Override
  public String toString() {
    return "MemoryPool[upstream=" + options.upstream() + "]";
  }

  Cuda cuda() {
    return cuda;
  }

  @Nullable MemoryHooks hooks() {
    return hooks;
  }

  DevicePool poolOf(StreamState stream) {
    checkOwn(stream);
    DevicePool devicePool = devicePool(stream.device);
    checkOpen(); // again: whoever tears the pool down may not have seen the device's
    return devicePool;
  }

  private void checkOwn(StreamState stream) {
    if (stream.cuda != cuda) {
      throw new IllegalArgumentException(
          "%s belongs to another Cuda than the pool".formatted(stream));
    }
  }

  /** Asks the listeners; whether anyone gave something back. */
  boolean pressure(CudaDevice device, long neededBytes) {
    long given = 0;
    ThreadState state = cuda.state();
    for (PressureListener listener : listeners) {
      state.enter(this, listener);
      try {
        given += Checks.notNegative("bytes given back", listener.onPressure(device, neededBytes));
      } finally {
        state.leave();
      }
    }
    return given > 0;
  }

  private DevicePool devicePool(CudaDevice device) {
    Objects.requireNonNull(device, "device");
    if (device.cuda() != cuda) {
      throw new IllegalArgumentException(
          "%s belongs to another Cuda than the pool".formatted(device));
    }
    DevicePool pool = devicePools.get(device);
    if (pool != null) {
      return pool;
    }
    DevicePool made = newDevicePool(device); // asks the driver, so not inside computeIfAbsent
    DevicePool other = devicePools.putIfAbsent(device, made);
    return other != null ? other : made;
  }

  private DevicePool newDevicePool(CudaDevice device) {
    MemoryLimit first = options.limit();
    return new DevicePool(this, device, first != null ? first : cuda.firstLimit());
  }

  private Registration register(MemoryHook hook, @Nullable Thread thread) {
    Objects.requireNonNull(hook, "hook");
    changeHooks(() -> hooks = MemoryHooks.with(hooks, hook, thread));
    return registration(
        "hook " + hook, () -> changeHooks(() -> hooks = MemoryHooks.without(hooks, hook, thread)));
  }

  /** So that closing again does not remove what was added again meanwhile. */
  private Registration registration(String what, Runnable remove) {
    AtomicBoolean removed = new AtomicBoolean();
    registrations.add(removed);
    cuda.leaks().opened(removed, () -> what + " of " + this);
    if (closed) {
      endRegistrations();
    }
    return () -> {
      if (removed.compareAndSet(false, true)) {
        registrations.remove(removed);
        cuda.leaks().closed(removed);
        remove.run();
      }
    };
  }

  /** Hooks and listeners end with the pool, but for the hooks of blocks that come back later. */
  private void endRegistrations() {
    registrations.forEach(cuda.leaks()::closed);
    registrations.clear();
  }

  private void changeHooks(Runnable change) {
    hookLock.lock();
    try {
      change.run();
    } finally {
      hookLock.unlock();
    }
  }

  void checkOpen() {
    if (closed) {
      throw new IllegalStateException(this + " is closed");
    }
  }

  private void destroy() {
    closed = true;
    Failures failures = new Failures();
    devicePools.values().forEach(pool -> failures.run(pool::destroy));
    failures.throwFirst();
  }
}
