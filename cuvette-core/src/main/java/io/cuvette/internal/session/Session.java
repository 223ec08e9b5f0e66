package io.cuvette.internal.session;

import io.cuvette.LeakLevel;
import io.cuvette.LeakReport;
import io.cuvette.MemoryLimit;
import io.cuvette.driver.CudaDriver;
import io.cuvette.internal.channel.Descriptors;
import io.cuvette.internal.lifetime.Children;
import io.cuvette.internal.lifetime.ForeignUsers;
import io.cuvette.internal.lifetime.LeakTracker;
import io.cuvette.internal.lifetime.ShutdownGate;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * An open driver and its devices as the engine knows them: what lasts from the opening of a {@link
 * Cuda} to its end. Thread-safe.
 */
public final class Session {
  private final CudaDriver driver;
  private final MemoryLimit firstLimit;
  private final ShutdownGate gate = new ShutdownGate();
  private final Children children = new Children();
  private final ForeignUsers foreignUsers = new ForeignUsers();
  private final UUID process;
  private final LeakTracker leaks;
  private final List<Device> devices;
  private final ThreadStates threads;
  private final PeerAccess peers;
  private final DeferredFrees frees = new DeferredFrees(this);
  private final PeerHandles handles = new PeerHandles(Descriptors::close);

  /** What else is done whenever forgotten objects are looked for. */
  private final List<Runnable> whenDrained = new CopyOnWriteArrayList<>();

  /** See {@link #captures}. */
  private final ReadWriteLock captures = new ReentrantReadWriteLock();

  private volatile boolean closed;

  /**
   * Begins with a driver.
   *
   * @param firstDevice the number of the device that is current at first, of so many
   * @param listener receives leaks
   * @param process the identity of this process for others
   */
  public Session(
      CudaDriver driver,
      IntUnaryOperator firstDevice,
      Consumer<LeakReport> listener,
      MemoryLimit firstLimit,
      LeakLevel leakLevel,
      UUID process) {
    this.driver = driver;
    this.firstLimit = firstLimit;
    this.process = process;
    this.leaks =
        new LeakTracker(
            leakLevel,
            leak -> callUser("the leak listener", () -> listener.accept(leak)),
            () -> whenDrained.forEach(Runnable::run));
    this.devices =
        IntStream.range(0, driver.devices().deviceGetCount())
            .mapToObj(id -> new Device(this, id))
            .toList();
    this.threads = new ThreadStates(devices.get(firstDevice.applyAsInt(devices.size())));
    this.peers = new PeerAccess(driver, devices.size());
  }

  /** Has something done whenever forgotten objects are looked for. */
  public void whenDrained(Runnable step) {
    whenDrained.add(step);
  }

  /** The driver with its decorators. */
  public CudaDriver driver() {
    return driver;
  }

  public boolean isSimulated() {
    return driver.isSimulated();
  }

  /** All devices, in the driver's order. */
  public List<Device> devices() {
    return devices;
  }

  /** A device of a number that there is. */
  public Device device(int id) {
    return devices.get(id);
  }

  /** The limit of pools that are given none. */
  public MemoryLimit firstLimit() {
    return firstLimit;
  }

  /** The gate for threads that create or release resources. */
  public ShutdownGate gate() {
    return gate;
  }

  /** The steps that take back what is left at the end. */
  public Children children() {
    return children;
  }

  /** The uses of memory by code outside of Java, which the end waits for. */
  public ForeignUsers foreignUsers() {
    return foreignUsers;
  }

  /** What finds forgotten objects. */
  public LeakTracker leaks() {
    return leaks;
  }

  /** What is current on each thread. */
  public ThreadStates threads() {
    return threads;
  }

  /** What is current on this thread, and what it is inside of. */
  public ThreadState state() {
    return threads.get();
  }

  /** Whether this thread is inside a callback. */
  public boolean isInsideCallback() {
    return state().callback != null;
  }

  /** Runs code of the user, which cannot end the session meanwhile. */
  public void callUser(Object what, Runnable code) {
    ThreadState state = state();
    state.enterCode(what);
    try {
      code.run();
    } finally {
      state.leave();
    }
  }

  /** The frees that wait for all streams. */
  public DeferredFrees frees() {
    return frees;
  }

  /** Which device may address the memory of which other. */
  public PeerAccess peers() {
    return peers;
  }

  /**
   * Held for reading by who ends a capture, each another one, and for writing by who destroys an
   * event that one of them may have: the driver crashes where these meet.
   */
  public ReadWriteLock captures() {
    return captures;
  }

  /** The identity of this process for others. */
  public UUID process() {
    return process;
  }

  /** The handles of other processes that the driver can be given. */
  public PeerHandles handles() {
    return handles;
  }

  /** The memory of the device that has most, in bytes. */
  public long mostMemory() {
    return devices.stream().mapToLong(Device::totalBytes).max().orElseThrow();
  }

  /** The newest CUDA version that the driver supports. */
  public int driverVersion() {
    return ask(driver -> driver.devices().driverGetVersion());
  }

  /** Asks the driver something; closing waits for the answer. */
  public <T extends @Nullable Object> T ask(Function<CudaDriver, T> question) {
    checkOpen();
    return gate.ask(() -> question.apply(driver));
  }

  /** Checks that the session is not closed. */
  public void checkOpen() {
    if (closed) {
      throw new IllegalStateException("Cuda is closed");
    }
  }

  public boolean isClosed() {
    return closed;
  }

  /** Whether it is closed from now on; who closes it may find that it cannot be. */
  public void setClosed(boolean now) {
    closed = now;
  }
}
