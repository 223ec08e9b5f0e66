package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.engine.Engine;
import io.cuvette.internal.loan.RegisteredMemory;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.transfer.Staging;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * The devices of this process, what is current on each thread, and where memory comes from.
 *
 * <p>The device, stream and allocator that are current belong to the thread as the library sees it,
 * also to a virtual one, and never to the OS thread. Closing releases everything created through
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
  private final Staging staging;

  private Cuda(Engine engine, long transferBytes) {
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
    this.staging =
        new Staging(new PinnedChunks(this::allocatePinned, this::pinnedAllocator), transferBytes);
  }

  /**
   * {@return whether {@link #open()} would find a device (cuInit, cuDeviceGetCount)} Never throws.
   */
  public static boolean isAvailable() {
    return Drivers.isAvailable(CudaOptions.DEFAULTS.device());
  }

  /**
   * {@link #open(CudaOptions)} with {@link CudaOptions#DEFAULTS}.
   *
   * @return the Cuda, which the caller closes
   */
  public static Cuda open() {
    return open(CudaOptions.DEFAULTS);
  }

  /**
   * Opens the devices that the options name. It never falls back to simulated ones by itself.
   *
   * @param options the options
   * @return the Cuda, which the caller closes
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
          new Engine(driver, options::firstDevice, options.leakListener(), limit, leakLevel),
          options.transferBytes());
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, base::close);
      throw e;
    }
  }

  /** {@return all devices, in the driver's order} */
  public List<CudaDevice> devices() {
    return devices;
  }

  /** {@return the number of devices, at least 1} */
  public int deviceCount() {
    return devices.size();
  }

  /**
   * {@return a device by its number}
   *
   * @param id 0 to {@link #deviceCount()} − 1
   * @throws IllegalArgumentException for another number
   */
  public CudaDevice device(int id) {
    return devices.get((int) Checks.inRange("device", id, 0, devices.size() - 1L));
  }

  /**
   * {@return the device at an address of the bus}
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
   * {@return the device that holds the memory at an address (CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)}
   *
   * @param address any address in the memory
   * @throws CudaException INVALID_VALUE if the driver does not know the address
   */
  public CudaDevice deviceOf(long address) {
    long device =
        session.ask(
            to -> to.memory().pointerGetAttribute(0, PointerAttribute.DEVICE_ORDINAL, address));
    return device((int) device);
  }

  /**
   * {@return the device that is current on this thread; at first that of {@code gpu:1}, else device
   * 0}
   */
  public CudaDevice currentDevice() {
    return current().device();
  }

  /**
   * Makes a device current on this thread until changed; prefer the scope of {@link
   * CudaDevice#use()}.
   *
   * @param device the device
   * @throws IllegalStateException inside a scope, which restores what was current before it
   */
  public void setCurrentDevice(CudaDevice device) {
    checkMine(device);
    outsideScopes("setCurrentDevice").thread.device = device.core();
  }

  /**
   * {@return the stream that is current on this thread for the current device; the null stream at
   * first}
   */
  public CudaStream currentStream() {
    Current current = current();
    return current.stream(current.device());
  }

  /**
   * {@return the stream that is current on this thread for a device}
   *
   * @param device the device
   */
  public CudaStream currentStream(CudaDevice device) {
    checkMine(device);
    return current().stream(device);
  }

  /**
   * Makes a stream current on this thread for its device until changed; prefer {@link
   * CudaStream#use()}.
   *
   * @param stream the stream
   * @throws IllegalStateException inside a scope, which restores what was current before it
   */
  public void setCurrentStream(CudaStream stream) {
    checkOwn(stream);
    outsideScopes("setCurrentStream").chooseStream(stream.device(), stream);
  }

  /**
   * {@return the allocator of {@link #allocate}: that of this thread's innermost {@link
   * #useAllocator} scope, else the global one}
   */
  public MemoryResource currentAllocator() {
    MemoryResource scoped = current().allocator;
    return scoped != null ? scoped : globalAllocator;
  }

  /**
   * Sets the allocator of all threads; {@link MemoryResource#direct()} switches pooling off.
   *
   * @param allocator the allocator
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
   *
   * @param allocator the allocator
   * @return the scope, closed by the same thread
   */
  public Scope useAllocator(MemoryResource allocator) {
    Objects.requireNonNull(allocator, "allocator");
    Current current = current();
    MemoryResource before = current.allocator;
    Scope scope =
        new Scope(current.scopes, "allocator " + allocator, () -> current.allocator = before);
    current.allocator = allocator;
    return scope;
  }

  /**
   * Allocates from the current allocator, in order of the current stream and on its device.
   *
   * @param bytes the size in bytes, >= 0; 0 gives a buffer without memory at address 0
   * @return the buffer
   * @throws IllegalArgumentException if bytes is negative
   * @throws OutOfDeviceMemoryException if there is not enough memory, after everything was tried
   * @throws IllegalStateException if the current allocator called this method
   */
  public Buffer allocate(long bytes) {
    Current current = current();
    return current.allocate(bytes, current.stream(current.device()), globalAllocator);
  }

  /**
   * Allocates from the current allocator, in order of a stream and on its device.
   *
   * @param bytes the size in bytes, >= 0; 0 gives a buffer without memory at address 0
   * @param stream the stream
   * @return the buffer
   * @throws IllegalArgumentException if bytes is negative
   * @throws OutOfDeviceMemoryException if there is not enough memory, after everything was tried
   * @throws IllegalStateException if the current allocator called this method
   */
  public Buffer allocate(long bytes, CudaStream stream) {
    return current().allocate(bytes, stream, globalAllocator);
  }

  /**
   * Allocates managed memory without a pool, on the current stream's device (cuMemAllocManaged).
   *
   * @param bytes the size in bytes, >= 0
   * @return the buffer
   * @throws CudaException if the driver reports an error
   */
  public ManagedBuffer allocateManaged(long bytes) {
    return (ManagedBuffer) DirectMemory.managed(BufferKind.MANAGED, bytes, currentStream().core());
  }

  /**
   * Allocates page-locked host memory from the pinned allocator, a caching pool at first.
   *
   * @param bytes the size in bytes, >= 0; 0 gives a buffer without memory
   * @return the buffer
   * @throws IllegalArgumentException if bytes is negative
   * @throws OutOfPinnedMemoryException if there is not enough memory, after everything was tried
   */
  public PinnedBuffer allocatePinned(long bytes) {
    Checks.notNegative("bytes", bytes);
    session.checkOpen();
    return PinnedChunks.allocate(pinnedAllocator, bytes, session);
  }

  /** {@return the allocator of {@link #allocatePinned}, for all threads} */
  public PinnedAllocator pinnedAllocator() {
    return pinnedAllocator;
  }

  /**
   * Sets where {@link #allocatePinned} takes memory from, for all threads.
   *
   * @param allocator the allocator
   */
  public void setPinnedAllocator(PinnedAllocator allocator) {
    pinnedAllocator = Objects.requireNonNull(allocator, "allocator");
  }

  /**
   * {@return an allocator of page-locked host memory without a pool (cuMemHostAlloc, portable and
   * device-mapped)}
   */
  public PinnedAllocator directPinned() {
    return bytes ->
        (PinnedBuffer)
            DirectMemory.pinned(BufferKind.PINNED, bytes, currentDevice().nullStream().core());
  }

  /**
   * {@return page-locked memory of the host that was there before, until it is closed
   * (cuMemHostRegister, portable and device-mapped)} Copies of the segment, or of parts of it, go
   * without page-locked memory in between. Devices only read memory of a read-only segment, such as
   * a file that is mapped read-only.
   *
   * <p>The arena of the segment cannot be closed meanwhile; a sleeping thread holds one that
   * otherwise could. A file that becomes shorter leaves undefined what devices read behind its end.
   *
   * @param segment native memory of an arena that is not confined, of which nothing is page-locked
   * @throws IllegalArgumentException for a heap segment, one without bytes or of a confined arena,
   *     or one that the driver cannot page-lock, such as one that is longer than its file
   * @throws IllegalStateException if the arena is closed, or some of it is page-locked already
   * @throws OutOfPinnedMemoryException if there is not enough memory
   * @throws UnsupportedOperationException if the current device cannot do so
   * @throws CudaException if the driver reports an error
   */
  public PinnedBuffer registerHost(MemorySegment segment) {
    Objects.requireNonNull(segment, "segment");
    OpenStream order = currentDevice().nullStream().core();
    PinnedBuffer buffer = new PinnedBuffer(segment, order);
    RegisteredMemory.own(BufferKind.PINNED, buffer, segment, order);
    return buffer;
  }

  /**
   * Wraps foreign memory as a buffer, on the device that the driver names for it.
   *
   * @param address the first address
   * @param bytes the size in bytes, >= 1
   * @param owner kept reachable as long as this object is; null for nothing
   * @return the buffer
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

  /** {@return the caching pool that is the first global allocator} */
  public MemoryPool defaultMemoryPool() {
    return defaultPool;
  }

  /** {@return the caching pool that is the first pinned allocator} */
  public PinnedMemoryPool defaultPinnedMemoryPool() {
    return defaultPinnedPool;
  }

  /** {@return the newest CUDA version the driver supports, 13000 for 13.0 (cuDriverGetVersion)} */
  public int driverVersion() {
    return session.driverVersion();
  }

  /**
   * {@return the version of the CUDA runtime library found on this machine; Cuvette does not need
   * one}
   */
  public OptionalInt runtimeVersion() {
    return session.ask(driver -> driver.devices().runtimeGetVersion());
  }

  /** {@return {@link CudaDevice#cublasHandle} of the current device} */
  public long cublasHandle() {
    return currentDevice().cublasHandle();
  }

  /** {@return the driver with its decorators} */
  public CudaDriver driver() {
    return session.driver();
  }

  /** {@return whether the devices are simulated} */
  public boolean isSimulated() {
    return session.isSimulated();
  }

  /** {@return the number of forgotten objects found so far, after looking for more} */
  public long leaksFound() {
    session.leaks().drain();
    return session.leaks().found();
  }

  /**
   * {@return the objects of this Cuda that are open now, with the place where each was created, in
   * that order: buffers, the memory that caching pools hold, streams, events, pools, memory
   * resources, hooks and pressure listeners} Complete with {@link LeakLevel#FULL}; with {@link
   * LeakLevel#SAMPLED} one in 64 is known, else none. What was {@code wrap}ped belongs to others
   * and is not listed.
   *
   * <p>After a unit of work it should be empty but for what caches hold, which {@link
   * MemoryPool#freeAllBlocks()} releases.
   */
  public List<OpenObject> openObjects() {
    session.leaks().drain();
    return session.leaks().open();
  }

  /** {@return whether this object is closed} */
  public boolean isClosed() {
    return session.isClosed();
  }

  /**
   * Waits for all devices, and for operations of other threads that have begun, and releases
   * everything that is still open. Operations that come later throw IllegalStateException. Does
   * nothing the second time. While code outside of Java has a {@link ForeignLoan} of this Cuda's
   * memory, releasing is left to the end of the last loan.
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

  /** The page-locked memory of transfers. */
  Staging staging() {
    return staging;
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

  void checkMine(CudaDevice device) {
    Objects.requireNonNull(device, "device");
    session.checkOpen();
    if (device.cuda() != this) {
      throw new IllegalArgumentException(
          "%s belongs to another Cuda (expected: one of this)".formatted(device));
    }
  }

  private Current outsideScopes(String what) {
    Current current = current();
    if (current.scopes.innermost != null) {
      throw new IllegalStateException(
          "%s inside the %s (expected: outside of scopes, or a nested use())"
              .formatted(what, current.scopes.innermost));
    }
    return current;
  }
}
