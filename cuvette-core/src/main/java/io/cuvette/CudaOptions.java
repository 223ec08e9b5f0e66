package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.transfer.Staging;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * How a {@link Cuda} is opened. Immutable.
 *
 * @param device {@code gpu}, {@code gpu:1} for the GPUs with device 1 current at first, {@code
 *     sim}, or {@code sim:devices=2,memory=80GiB,seed=7}
 * @param driver a driver to use instead of the one {@code device} names; it is closed with the Cuda
 * @param decorator wraps the driver, for faults, traces or checks
 * @param memoryLimit the first limit of every memory pool for each device; null takes the
 *     environment variable {@code CUVETTE_GPU_MEMORY_LIMIT}, then {@code CUPY_GPU_MEMORY_LIMIT}
 * @param leakLevel how forgotten buffers are looked for; null takes {@code -Dcuvette.leaks}, then
 *     COUNT
 * @param leakListener receives each forgotten object after it was released
 * @param transferBytes the page-locked memory that all transfers of memory that is not page-locked
 *     have at once at most, in bytes, >= 1 MiB; the pinned allocator keeps what it caches beside
 */
public record CudaOptions(
    String device,
    @Nullable CudaDriver driver,
    UnaryOperator<CudaDriver> decorator,
    @Nullable MemoryLimit memoryLimit,
    @Nullable LeakLevel leakLevel,
    Consumer<LeakReport> leakListener,
    long transferBytes) {

  /**
   * The device of {@code -Dcuvette.device}, else of the environment variable {@code
   * CUVETTE_DEVICE}, else the GPU; the leak level of {@code -Dcuvette.leaks}, else COUNT; leaks go
   * to the system logger.
   */
  public static final CudaOptions DEFAULTS =
      new CudaOptions(
          Environment.device(),
          null,
          UnaryOperator.identity(),
          null,
          null,
          LeakReport::log,
          Staging.FIRST_LIMIT);

  /** Creates options. */
  public CudaOptions {
    Objects.requireNonNull(device, "device");
    Objects.requireNonNull(decorator, "decorator");
    Objects.requireNonNull(leakListener, "leakListener");
    Checks.inRange("transferBytes", transferBytes, Staging.LEAST_LIMIT, Long.MAX_VALUE);
  }

  /** {@return the options of the GPUs of this machine} */
  public static CudaOptions gpu() {
    return DEFAULTS.withDevice("gpu");
  }

  /** {@return the options of one simulated device} */
  public static CudaOptions simulated() {
    return DEFAULTS.withDevice("sim");
  }

  /**
   * {@return these options with other devices, such as {@code sim:devices=2}}
   *
   * <p>{@link Cuda#open(CudaOptions)} checks the specification: which devices there are depends on
   * the drivers that it finds.
   *
   * @param device the device specification: {@code gpu}, or {@code sim} with settings as in {@code
   *     sim:memory=8GiB,seed=7}
   */
  public CudaOptions withDevice(String device) {
    return new CudaOptions(
        device, driver, decorator, memoryLimit, leakLevel, leakListener, transferBytes);
  }

  /**
   * {@return these options with a driver created elsewhere}
   *
   * @param driver the driver, which the Cuda closes
   */
  public CudaOptions withDriver(CudaDriver driver) {
    Objects.requireNonNull(driver, "driver");
    return new CudaOptions(
        device, driver, decorator, memoryLimit, leakLevel, leakListener, transferBytes);
  }

  /**
   * {@return these options with one more decorator of the driver, applied after those before}
   *
   * @param next makes the decorator of a driver
   */
  public CudaOptions withDecorator(UnaryOperator<CudaDriver> next) {
    Objects.requireNonNull(next, "next");
    UnaryOperator<CudaDriver> before = decorator;
    return new CudaOptions(
        device,
        driver,
        d -> next.apply(before.apply(d)),
        memoryLimit,
        leakLevel,
        leakListener,
        transferBytes);
  }

  /**
   * {@return these options with a first limit for every memory pool instead of the environment's;
   * {@link MemoryLimit#none()}, or one of 0, does not limit}
   *
   * @param limit the limit
   */
  public CudaOptions withMemoryLimit(MemoryLimit limit) {
    Objects.requireNonNull(limit, "limit");
    return new CudaOptions(
        device, driver, decorator, limit, leakLevel, leakListener, transferBytes);
  }

  /**
   * {@return these options with another leak level}
   *
   * @param level the level
   */
  public CudaOptions withLeakLevel(LeakLevel level) {
    Objects.requireNonNull(level, "level");
    return new CudaOptions(
        device, driver, decorator, memoryLimit, level, leakListener, transferBytes);
  }

  /**
   * {@return these options with another listener for leaks} It runs on whatever thread finds one
   * and must not block.
   *
   * @param listener receives each forgotten object
   */
  public CudaOptions withLeakListener(Consumer<LeakReport> listener) {
    Objects.requireNonNull(listener, "listener");
    return new CudaOptions(
        device, driver, decorator, memoryLimit, leakLevel, listener, transferBytes);
  }

  /**
   * {@return these options with another bound on the page-locked memory of transfers, 256 MiB at
   * first}
   *
   * @param bytes what all transfers have at once at most, in bytes, >= 1 MiB
   * @throws IllegalArgumentException for fewer bytes
   */
  public CudaOptions withTransferBytes(long bytes) {
    return new CudaOptions(device, driver, decorator, memoryLimit, leakLevel, leakListener, bytes);
  }

  /** The driver: the one given, or else a new one. */
  CudaDriver openDriver() {
    try {
      return driver != null ? driver : Drivers.open(device);
    } catch (IllegalArgumentException e) {
      throw Environment.withOrigin(device, e);
    }
  }

  /** The number of the device that is current at first. */
  int firstDevice(int devices) {
    try {
      return driver != null ? 0 : Drivers.firstDevice(device, devices);
    } catch (IllegalArgumentException e) {
      throw Environment.withOrigin(device, e);
    }
  }

  /** The first limit of memory pools: the one given, or else that of the environment. */
  MemoryLimit firstLimit() {
    return memoryLimit != null ? memoryLimit : Environment.memoryLimit(System::getenv);
  }

  /** The leak level: the one given, or else that of the process. */
  LeakLevel firstLeakLevel() {
    return leakLevel != null ? leakLevel : Environment.leakLevel();
  }
}
