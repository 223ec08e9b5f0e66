package io.cuvette.ffm;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.StreamHandle;
import java.lang.invoke.MethodHandles;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The NVIDIA driver. The calls are in one interface for each group, which saves a hundred methods
 * that only pass on. Thread-safe.
 *
 * <p>After {@link #close} every call fails. Once the JVM is shutting down, calls that give
 * something back do nothing and the others fail: nothing goes to the driver any more.
 */
final class FfmDriver
    implements CudaDriver,
        FfmDevices,
        FfmContexts,
        FfmMemory,
        FfmManagedMemory,
        FfmCurrentPools,
        FfmPools,
        FfmPoolSharing,
        FfmIpc,
        FfmStreamMemory,
        FfmTransfers,
        FfmStreams,
        FfmHostFunctions,
        FfmEvents,
        FfmCaptures,
        FfmGraphs,
        FfmNative {
  private static final int OPEN = 0;
  private static final int CLOSED = 1;
  private static final int SHUT_DOWN = 2;

  private final AtomicInteger state = new AtomicInteger(OPEN);
  private final Contexts contexts;

  private FfmDriver(Contexts contexts) {
    this.contexts = contexts;
  }

  /**
   * Opens the driver of the process.
   *
   * @throws CudaException if there is none, it is too old, incomplete, or has no device
   */
  static FfmDriver open() {
    Startup.init();
    bindAll();
    FfmDriver driver = new FfmDriver(Contexts.ofAllDevices());
    Shutdown.watch(driver);
    return driver;
  }

  /**
   * Binds every function now. Later, a virtual thread that waits for the initialization of a class
   * between two calls could go on under another thread's context.
   */
  private static void bindAll() {
    for (Class<?> functions :
        List.of(
            ContextFunctions.class,
            MemoryFunctions.class,
            PoolFunctions.class,
            IpcFunctions.class,
            TransferFunctions.class,
            StreamFunctions.class,
            EventFunctions.class,
            CaptureFunctions.class)) {
      try {
        MethodHandles.lookup().ensureInitialized(functions);
      } catch (IllegalAccessException e) {
        throw new LinkageError(e.getMessage(), e);
      }
    }
    Libcuda.loaded().requireComplete();
  }

  @Override
  public String name() {
    return "ffm";
  }

  @Override
  public boolean isSimulated() {
    return false;
  }

  @Override
  public FfmDriver self() {
    return this;
  }

  @Override
  public Contexts contexts() {
    return contexts;
  }

  @Override
  public long context(int device) {
    checkOpen();
    return contexts.of(device);
  }

  @Override
  public CallFrame enter() {
    checkOpen();
    return relaxed();
  }

  @Override
  public CallFrame enter(int device) {
    checkOpen();
    return relaxed(device);
  }

  @Override
  public CallFrame enterFor(int device, long handle) {
    checkOpen();
    return relaxed(device, handle);
  }

  @Override
  public CallFrame enterAsIs(int device) {
    checkOpen();
    return withContext(device);
  }

  @Override
  public @Nullable CallFrame enterToFree() {
    return mayFree() ? relaxed() : null;
  }

  @Override
  public @Nullable CallFrame enterToFree(int device) {
    return mayFree() ? relaxed(device) : null;
  }

  @Override
  public @Nullable CallFrame enterToFree(int device, long handle) {
    return mayFree() ? relaxed(device, handle) : null;
  }

  private static CallFrame relaxed() {
    CallFrame frame = CallFrame.take();
    frame.relax();
    return frame;
  }

  private CallFrame relaxed(int device) {
    CallFrame frame = withContext(device);
    frame.relax();
    return frame;
  }

  private CallFrame relaxed(int device, long handle) {
    if (Long.compareUnsigned(handle, StreamHandle.PER_THREAD) <= 0) {
      return relaxed(device);
    }
    long context = contexts.of(device);
    CallFrame frame = CallFrame.take();
    frame.mayNeed(context);
    frame.relax();
    return frame;
  }

  private CallFrame withContext(int device) {
    long context = contexts.of(device);
    CallFrame frame = CallFrame.take();
    frame.enter(context);
    return frame;
  }

  private boolean mayFree() {
    int now = state.get();
    if (now == CLOSED) {
      throw closed();
    }
    return now == OPEN;
  }

  @Override
  public void checkOpen() {
    int now = state.get();
    if (now != OPEN) {
      throw now == CLOSED ? closed() : shutDown();
    }
  }

  /** What calls after {@link #close} get. */
  static IllegalStateException closed() {
    return new IllegalStateException("driver ffm is closed");
  }

  /** What calls that cannot be skipped get once the JVM is shutting down. */
  static IllegalStateException shutDown() {
    return new IllegalStateException("driver ffm: no calls while the JVM is shutting down");
  }

  /** Keeps every further call from the driver. */
  void shutDownNow() {
    state.compareAndSet(OPEN, SHUT_DOWN);
  }

  @Override
  public void close() {
    if (state.compareAndSet(OPEN, CLOSED)) {
      Shutdown.forget(this);
      HostFunctions.forget(this);
      contexts.releaseAll();
    }
  }
}
