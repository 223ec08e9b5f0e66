package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.caching.Upstream;
import io.cuvette.internal.engine.Engine;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.session.ThreadState;
import java.util.List;
import java.util.Objects;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * The devices of this process, what is current on each thread, and where memory comes from.
 *
 * <p>The device, stream and allocator that are current belong to the thread as the library sees it,
 * also to a virtual one, and never to the OS thread. Closing takes back everything made through
 * this object that is still open.
 *
 * <p>Thread-safe.
 */
public final class Cuda implements AutoCloseable {
  private final Engine engine;
  private final ResourceRegistry registry = new ResourceRegistry();
  private final Session session;
  private final List<CudaDevice> devices;
  private final ThreadStreams threadStreams;
  private final MemoryPool defaultPool;
  private final PinnedMemoryPool defaultPinnedPool;
  private volatile MemoryResource globalAllocator;
  private volatile PinnedAllocator pinnedAllocator;

  private Cuda(Engine engine) {
    this.engine = engine;
    this.session = engine.session();
    this.devices = session.devices().stream().map(device -> new CudaDevice(this, device)).toList();
    this.threadStreams = new ThreadStreams(engine.streams());
    this.defaultPool = new MemoryPool(this);
    this.defaultPinnedPool = new PinnedMemoryPool(this);
    defaultPool.keep();
    defaultPinnedPool.keep();
    this.globalAllocator = defaultPool;
    this.pinnedAllocator = defaultPinnedPool;
  }

  /** Whether {@link #open()} would find a device (cuInit, cuDeviceGetCount). Never throws. */
  public static boolean isAvailable() {
    return Drivers.isAvailable(CudaOptions.DEFAULTS.device());
  }

  /** {@link #open(CudaOptions)} with {@link CudaOptions#DEFAULTS}. */
  public static Cuda open() {
    return open(CudaOptions.DEFAULTS);
  }

  /**
   * Opens the devices that the options name. It never falls back to simulated ones by itself.
   *
   * @throws CudaException if there is no usable driver or no device; the message says what to do
   * @throws IllegalArgumentException if the device specification or a memory limit of the
   *     environment is wrong
   */
  public static Cuda open(CudaOptions options) {
    Objects.requireNonNull(options, "options");
    MemoryLimit limit = options.firstLimit();
    LeakLevel leakLevel = options.firstLeakLevel();
    CudaDriver base = options.openDriver();
    try {
      CudaDriver driver = options.decorator().apply(base);
      return new Cuda(
          new Engine(driver, options::firstDevice, options.leakListener(), limit, leakLevel));
    } catch (RuntimeException | Error e) {
      Failures.closeAfter(e, base);
      throw e;
    }
  }

  /** All devices, in the driver's order. */
  public List<CudaDevice> devices() {
    return devices;
  }

  /** The number of devices, at least 1. */
  public int deviceCount() {
    return devices.size();
  }

  /**
   * One device.
   *
   * @param id 0 to {@link #deviceCount()} − 1
   * @throws IllegalArgumentException for another number
   */
  public CudaDevice device(int id) {
    return devices.get((int) Checks.inRange("device", id, 0, devices.size() - 1L));
  }

  /**
   * The device at an address of the bus.
   *
   * @param pciBusId {@code dddd:bb:dd.f}, as {@link CudaDevice#pciBusId()} gives
   * @throws CudaException INVALID_VALUE for a text that is no address, INVALID_DEVICE for an
   *     unknown one
   */
  public CudaDevice deviceByPciBusId(String pciBusId) {
    Objects.requireNonNull(pciBusId, "pciBusId");
    return device(session.ask(to -> to.devices().deviceGetByPciBusId(pciBusId)));
  }

  /**
   * The device that holds the memory at an address (CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL).
   *
   * @throws CudaException INVALID_VALUE if the driver does not know the address
   */
  public CudaDevice deviceOf(long address) {
    long device =
        session.ask(
            to -> to.memory().pointerGetAttribute(0, PointerAttribute.DEVICE_ORDINAL, address));
    return device((int) device);
  }

  /** The device that is current on this thread; at first that of {@code gpu:1}, else device 0. */
  public CudaDevice currentDevice() {
    return current().device();
  }

  /**
   * Makes a device current on this thread until changed; prefer the scope of {@link
   * CudaDevice#use()}.
   *
   * @throws IllegalStateException inside a scope, which restores what was current before it
   */
  public void setCurrentDevice(CudaDevice device) {
    checkMine(device);
    outsideScopes("setCurrentDevice").thread.device = device.core();
  }

  /** The stream that is current on this thread for the current device; the null stream at first. */
  public CudaStream currentStream() {
    Current current = current();
    return current.stream(current.device());
  }

  /** The stream that is current on this thread for a device. */
  public CudaStream currentStream(CudaDevice device) {
    checkMine(device);
    return current().stream(device);
  }

  /**
   * Makes a stream current on this thread for its device until changed; prefer {@link
   * CudaStream#use()}.
   *
   * @throws IllegalStateException inside a scope, which restores what was current before it
   */
  public void setCurrentStream(CudaStream stream) {
    checkOwn(stream);
    outsideScopes("setCurrentStream").chooseStream(stream.device(), stream);
  }

  /**
   * The allocator of {@link #allocate}: this thread's {@link #useAllocator} scope's, else the
   * global one.
   */
  public MemoryResource currentAllocator() {
    MemoryResource scoped = current().allocator;
    return scoped != null ? scoped : globalAllocator;
  }

  /**
   * Sets the allocator of all threads; {@link MemoryResource#direct()} switches pooling off.
   *
   * @throws IllegalStateException inside a {@link #useAllocator} scope of this thread
   */
  public void setAllocator(MemoryResource allocator) {
    if (current().allocator != null) {
      throw new IllegalStateException(
          "setAllocator inside a useAllocator scope of this thread (expected: after the scope is"
              + " closed)");
    }
    globalAllocator = Objects.requireNonNull(allocator, "allocator");
  }

  /**
   * Makes an allocator current on this thread until the scope closes. Memory may outlive the scope.
   */
  public Scope useAllocator(MemoryResource allocator) {
    Objects.requireNonNull(allocator, "allocator");
    Current current = current();
    MemoryResource before = current.allocator;
    Scope scope = new Scope(current, "allocator " + allocator, () -> current.allocator = before);
    current.allocator = allocator;
    return scope;
  }

  /** {@link #allocate(long, CudaStream)} on the current stream. */
  public Buffer allocate(long bytes) {
    Current current = current();
    return allocate(bytes, current.stream(current.device()), current);
  }

  /**
   * Allocates from the current allocator, in order of a stream and on its device.
   *
   * @param bytes at least 0; 0 gives a buffer without memory at address 0
   * @throws OutOfDeviceMemoryException if there is not enough memory, after everything was tried
   * @throws IllegalStateException if the current allocator called this method
   */
  public Buffer allocate(long bytes, CudaStream stream) {
    return allocate(bytes, stream, current());
  }

  private Buffer allocate(long bytes, CudaStream stream, Current current) {
    MemoryResource scoped = current.allocator;
    MemoryResource allocator = scoped != null ? scoped : globalAllocator;
    if (allocator instanceof MemoryPool pool) {
      checkOwn(stream);
      return pool.allocate(bytes, stream);
    }
    Checks.notNegative("bytes", bytes);
    checkOwn(stream);
    ThreadState state = current.thread;
    state.enter(allocator);
    Buffer given;
    try {
      given = allocator.allocate(bytes, stream);
    } finally {
      state.leave();
    }
    Memory _ =
        Upstream.check(
            "the allocator", BufferBase.memoryOf(given), bytes, session, stream.core().on());
    return given;
  }

  /** Managed memory without a pool, on the current stream's device (cuMemAllocManaged). */
  public ManagedBuffer allocateManaged(long bytes) {
    return (ManagedBuffer) DirectMemory.managed(BufferKind.MANAGED, bytes, currentStream().core());
  }

  /**
   * Page-locked host memory from the pinned allocator, a caching pool at first.
   *
   * @param bytes at least 0
   */
  public PinnedBuffer allocatePinned(long bytes) {
    Checks.notNegative("bytes", bytes);
    session.checkOpen();
    PinnedAllocator allocator = pinnedAllocator;
    if (allocator instanceof PinnedMemoryPool pool) {
      return pool.allocate(bytes);
    }
    ThreadState state = session.state();
    state.enter(allocator);
    PinnedBuffer given;
    try {
      given = allocator.allocate(bytes);
    } finally {
      state.leave();
    }
    Memory _ =
        Upstream.check("the pinned allocator", BufferBase.memoryOf(given), bytes, session, null);
    return given;
  }

  /** Where {@link #allocatePinned} takes memory from, for all threads. */
  public PinnedAllocator pinnedAllocator() {
    return pinnedAllocator;
  }

  /** Sets where {@link #allocatePinned} takes memory from, for all threads. */
  public void setPinnedAllocator(PinnedAllocator allocator) {
    pinnedAllocator = Objects.requireNonNull(allocator, "allocator");
  }

  /** Page-locked host memory without a pool (cuMemHostAlloc, portable and device-mapped). */
  public PinnedAllocator directPinned() {
    return bytes ->
        (PinnedBuffer)
            DirectMemory.pinned(BufferKind.PINNED, bytes, currentDevice().nullStream().core());
  }

  /**
   * Foreign memory as a buffer, on the device that the driver names for it.
   *
   * @see CudaDevice#wrap(long, long, Object)
   */
  public Buffer wrap(long address, long bytes, @Nullable Object owner) {
    session.checkOpen();
    return ForeignMemory.wrap(this, address, bytes, owner);
  }

  /** The memory resources that are known by a UUID. */
  ResourceRegistry registry() {
    return registry;
  }

  /** The caching pool that is the first global allocator. */
  public MemoryPool defaultMemoryPool() {
    return defaultPool;
  }

  /** The caching pool that is the first pinned allocator. */
  public PinnedMemoryPool defaultPinnedMemoryPool() {
    return defaultPinnedPool;
  }

  /** The newest CUDA version the driver supports, 13000 for 13.0 (cuDriverGetVersion). */
  public int driverVersion() {
    return session.driverVersion();
  }

  /** The version of the CUDA runtime library found on this machine; Cuvette does not need one. */
  public OptionalInt runtimeVersion() {
    return session.ask(driver -> driver.devices().runtimeGetVersion());
  }

  /** The driver with its decorators. */
  public CudaDriver driver() {
    return session.driver();
  }

  /** Whether the devices are simulated. */
  public boolean isSimulated() {
    return session.isSimulated();
  }

  /** The number of forgotten objects found so far; looks for more first. */
  public long leaksFound() {
    session.leaks().drain();
    return session.leaks().found();
  }

  /**
   * The objects of this Cuda that are open now, with the place where each was made, in that order:
   * buffers, the memory that caching pools hold, streams, events, pools, memory resources, hooks
   * and pressure listeners. Complete with {@link LeakLevel#FULL}; with {@link LeakLevel#SAMPLED}
   * one in 64 is known, else none. What was {@code wrap}ped belongs to others and is not listed.
   *
   * <p>After a unit of work it should be empty but for what caches hold, which {@link
   * MemoryPool#freeAllBlocks()} releases.
   */
  public List<OpenObject> openObjects() {
    session.leaks().drain();
    return session.leaks().open();
  }

  /** Whether this object was closed. */
  public boolean isClosed() {
    return session.isClosed();
  }

  /**
   * Waits for all devices, and for operations of other threads that have begun, and takes back
   * everything that is still open. Operations that come later throw IllegalStateException. Does
   * nothing the second time.
   *
   * @throws CudaException the first failure; the rest of the work is done all the same
   * @throws IllegalStateException inside an allocator, hook, listener, native function or callback
   *     that this library called, which this would wait for; also if another thread has the segment
   *     of a buffer in use, such as in a write to a channel, for more than a second. It is open
   *     then, and can be closed later
   */
  @Override
  public void close() {
    try {
      engine.close();
    } finally {
      if (isClosed()) {
        session.threads().close();
        threadStreams.close();
      }
    }
  }

  @Override
  public String toString() {
    return "Cuda[" + session.driver().name() + ", devices=" + devices.size() + "]";
  }

  /** What does the work. */
  Engine engine() {
    return engine;
  }

  /** The open driver. */
  Session session() {
    return session;
  }

  ThreadStreams threadStreams() {
    return threadStreams;
  }

  /** What is current on this thread. */
  Current current() {
    return Current.of(this);
  }

  void checkOpen() {
    session.checkOpen();
  }

  void checkOwn(CudaStream stream) {
    CudaStream.coreOf(stream).checkOf(session);
  }

  private void checkMine(CudaDevice device) {
    Objects.requireNonNull(device, "device");
    session.checkOpen();
    if (device.cuda() != this) {
      throw new IllegalArgumentException(
          "%s belongs to another Cuda (expected: one of this)".formatted(device));
    }
  }

  private Current outsideScopes(String what) {
    Current current = current();
    if (current.innermost != null) {
      throw new IllegalStateException(
          "%s inside the %s (expected: outside of scopes, or a nested use())"
              .formatted(what, current.innermost));
    }
    return current;
  }
}
