package io.cuvette.testkit;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.LeakLevel;
import io.cuvette.LeakReport;
import io.cuvette.MemoryLimit;
import io.cuvette.driver.CudaDriver;
import io.cuvette.sim.SimulatedDriver;
import java.lang.reflect.Parameter;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * What one run of a {@link CudaTest} runs on: simulated devices with a seed, or the GPUs. All that
 * is opened here is closed and checked after the test. Thread-safe.
 */
public final class Subject {
  private final String specification;
  private final CudaTest test;
  private final long seed;
  private final List<OpenedCuda> opened = new ArrayList<>();
  private final Fixtures fixtures = new Fixtures();
  private final List<LeakReport> leaks = new CopyOnWriteArrayList<>();
  // Opening calls the driver: this keeps two threads of a test from opening twice.
  private final ReentrantLock lock = new ReentrantLock();
  private @Nullable CudaDriver bare;
  private @Nullable Cuda first;
  private @Nullable ScriptedDriver script;

  private Subject(String specification, CudaTest test, long seed) {
    this.specification = specification;
    this.test = test;
    this.seed = seed;
  }

  static Subject simulated(String device, CudaTest test, long seed) {
    return new Subject(SimulatedSettings.of(device, test, seed), test, seed);
  }

  static Subject real(String device, CudaTest test) {
    return new Subject(device, test, SimulatedSettings.seedOfProperty().orElse(1));
  }

  /** {@return the device specification, such as {@code gpu} or {@code sim:devices=2,seed=1}} */
  public String specification() {
    return specification;
  }

  /** {@return whether the devices are simulated} */
  public boolean isSimulated() {
    return specification.startsWith("sim");
  }

  /** {@return the seed of the run: of the simulator's order and of {@link #random}} */
  public long seed() {
    return seed;
  }

  /** {@return random numbers from the seed; each call starts them anew} */
  public SplittableRandom random() {
    return new SplittableRandom(seed);
  }

  /** {@return the Cuda of this run, opened at the first call} */
  public Cuda cuda() {
    lock.lock();
    try {
      Cuda made = first;
      if (made == null) {
        ScriptedDriver scripted = script;
        made = open(options -> scripted == null ? options : options.withDecorator(scripted::over));
        first = made;
      }
      return made;
    } finally {
      lock.unlock();
    }
  }

  /**
   * Opens one more Cuda, with its own driver.
   *
   * @param options changes the options of the run
   * @return the Cuda
   */
  public Cuda open(UnaryOperator<CudaOptions> options) {
    Objects.requireNonNull(options, "options");
    lock.lock();
    try {
      CudaDriver driver = DriverProviders.open(specification);
      try {
        OpenedCuda cuda =
            OpenedCuda.open(
                driver, options.apply(baseOptions()), isSimulated() && test.sanitized());
        opened.add(cuda);
        return cuda.cuda();
      } catch (RuntimeException | Error e) {
        driver.close();
        throw e;
      }
    } finally {
      lock.unlock();
    }
  }

  private CudaOptions baseOptions() {
    return CudaOptions.DEFAULTS
        .withMemoryLimit(MemoryLimit.none())
        .withLeakLevel(LeakLevel.FULL)
        .withLeakListener(leaks::add);
  }

  /** {@return a driver without a Cuda; the same at each call} */
  public CudaDriver driver() {
    lock.lock();
    try {
      CudaDriver made = bare;
      if (made == null) {
        made = DriverProviders.open(specification);
        bare = made;
      }
      return made;
    } finally {
      lock.unlock();
    }
  }

  /**
   * {@return the simulated driver below {@link #cuda()}}
   *
   * @throws IllegalStateException on a GPU
   */
  public SimulatedDriver simulator() {
    return simulator(cuda());
  }

  /**
   * {@return the simulated driver below a Cuda that was opened here}
   *
   * @param cuda a Cuda that was opened here
   * @throws IllegalStateException on a GPU
   */
  public SimulatedDriver simulator(Cuda cuda) {
    Objects.requireNonNull(cuda, "cuda");
    lock.lock();
    try {
      for (OpenedCuda one : opened) {
        if (one.cuda() == cuda && one.driver() instanceof SimulatedDriver simulated) {
          return simulated;
        }
      }
      throw new IllegalStateException(
          "cuda: %s (expected: simulated, opened here)".formatted(cuda));
    } finally {
      lock.unlock();
    }
  }

  /** The script of the driver below {@link #cuda()}; to be called before that is opened. */
  ScriptedDriver script() {
    lock.lock();
    try {
      ScriptedDriver made = script;
      if (made == null) {
        made = new ScriptedDriver();
        script = made;
      }
      return made;
    } finally {
      lock.unlock();
    }
  }

  /** A stream or a pool of {@link #cuda()}, closed after the test. */
  Object fixture(Parameter parameter) {
    lock.lock();
    try {
      return fixtures.make(cuda(), parameter);
    } finally {
      lock.unlock();
    }
  }

  /** {@return the forgotten objects found so far in all Cudas of the run} */
  public List<LeakReport> leaks() {
    return List.copyOf(leaks);
  }

  @Override
  public String toString() {
    return specification;
  }

  /** Whether the test closes all it opens. */
  boolean isTidy() {
    return test.tidy();
  }

  /** Why this run cannot be, if it cannot. */
  @Nullable String missing() {
    if (!DriverProviders.isAvailable(specification)) {
      return "there is no device '%s' here".formatted(specification);
    }
    int devices = DriverProviders.deviceCount(specification);
    return devices >= test.devices()
        ? null
        : "needs %d devices, there is %d".formatted(test.devices(), devices);
  }

  /** How to run it again. */
  String rerun() {
    return "seed=%d; rerun with -Dcuvette.seed=%d".formatted(seed, seed);
  }

  /** Closes all that was opened, and checks that nothing is left. */
  void end(boolean passed) {
    lock.lock();
    try {
      Cleanup cleanup = new Cleanup();
      if (script != null) {
        script.close();
      }
      fixtures.close(cleanup, passed);
      for (OpenedCuda one : opened.reversed()) {
        cleanup.run(() -> one.end(passed && test.tidy(), test.devices()));
      }
      CudaDriver driver = bare;
      if (driver != null) {
        cleanup.run(() -> OpenedCuda.endDriver(driver));
      }
      if (passed && test.tidy() && !leaks.isEmpty()) {
        cleanup.run(() -> {
          throw new AssertionError("forgotten, not closed: " + leaks);
        });
      }
      cleanup.throwFirst();
    } finally {
      lock.unlock();
    }
  }
}
