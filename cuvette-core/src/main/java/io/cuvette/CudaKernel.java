package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.PotentialBlockSize;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.kernel.OpenKernel;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/**
 * A kernel of a module, for all devices (CUkernel). Keeps its module reachable, and ends with it.
 * Thread-safe.
 */
public final class CudaKernel extends LaunchableKernel {
  private final CudaModule module;
  private final OpenKernel core;

  CudaKernel(CudaModule module, OpenKernel core) {
    super(core);
    this.module = module;
    this.core = core;
  }

  /** {@return the module that it is in} */
  public CudaModule module() {
    return module;
  }

  /**
   * {@return the handle of the driver (CUkernel)}
   *
   * @throws IllegalStateException if the module is closed
   */
  public long handle() {
    return core.handle();
  }

  /**
   * {@return the place and size of each parameter, in order; empty if the driver does not tell,
   * which those of CUDA 12.4 and newer do (cuKernelGetParamInfo)} The driver was asked for one
   * after the other when the kernel was found, until it refused: it has no function for their
   * number.
   */
  public Optional<List<KernelParameter>> parameters() {
    return Optional.ofNullable(core.places());
  }

  /**
   * {@return an attribute on a device (cuKernelGetAttribute)}
   *
   * @param attribute the attribute
   * @param device the device
   * @throws IllegalStateException if the module is closed
   * @throws CudaException if the driver reports an error
   */
  public int attribute(KernelAttribute attribute, CudaDevice device) {
    Objects.requireNonNull(attribute, "attribute");
    return core.attribute(attribute, CudaDevice.coreOf(device));
  }

  /**
   * Sets an attribute on a device (cuKernelSetAttribute).
   *
   * @param attribute an attribute that can be set
   * @param value the new value
   * @param device the device
   * @throws IllegalStateException if the module is closed
   * @throws CudaException if the driver reports an error
   */
  public void setAttribute(KernelAttribute attribute, int value, CudaDevice device) {
    Objects.requireNonNull(attribute, "attribute");
    core.setAttribute(attribute, value, CudaDevice.coreOf(device));
  }

  /**
   * Allows launches on a device with more dynamic shared memory than the 48 KiB that are allowed
   * from the start (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES).
   *
   * @param device the device
   * @param bytes the most bytes of a block, at least 0
   * @throws IllegalArgumentException if it is negative, or more than the device has for a block
   * @throws IllegalStateException if the module is closed
   * @throws CudaException if the driver reports an error
   */
  public void allowDynamicSharedBytes(CudaDevice device, int bytes) {
    int most =
        CudaDevice.coreOf(device).attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
            - attribute(KernelAttribute.SHARED_SIZE_BYTES, device);
    Checks.inRange("bytes", bytes, 0, most);
    setAttribute(KernelAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes, device);
  }

  /**
   * {@return the blocks that a multiprocessor can run at once
   * (cuOccupancyMaxActiveBlocksPerMultiprocessor)}
   *
   * @param device the device
   * @param blockThreads the threads of a block, at least 1
   * @param dynamicSharedBytes the dynamic shared memory of a block, in bytes
   * @throws IllegalArgumentException if there are no threads, or less than no bytes
   * @throws CudaException if the driver reports an error
   */
  public int maxActiveBlocks(CudaDevice device, int blockThreads, long dynamicSharedBytes) {
    Checks.inRange("blockThreads", blockThreads, 1, Integer.MAX_VALUE);
    Checks.notNegative("dynamicSharedBytes", dynamicSharedBytes);
    return core.maxActiveBlocks(CudaDevice.coreOf(device), blockThreads, dynamicSharedBytes);
  }

  /**
   * {@return the block size with which the kernel fills a device best
   * (cuOccupancyMaxPotentialBlockSize)}
   *
   * @param device the device
   * @param dynamicSharedBytes the dynamic shared memory of a block, in bytes
   * @param blockLimit the most threads of a block; 0 for no limit
   * @throws IllegalArgumentException if one of them is negative
   * @throws CudaException if the driver reports an error
   */
  public PotentialBlockSize maxPotentialBlockSize(
      CudaDevice device, long dynamicSharedBytes, int blockLimit) {
    Checks.notNegative("dynamicSharedBytes", dynamicSharedBytes);
    Checks.notNegative("blockLimit", blockLimit);
    return core.maxPotentialBlockSize(CudaDevice.coreOf(device), dynamicSharedBytes, blockLimit);
  }

  /**
   * {@return the dynamic shared memory that a block can have if so many are to run on a
   * multiprocessor at once, in bytes (cuOccupancyAvailableDynamicSMemPerBlock)}
   *
   * @param device the device
   * @param blocks the blocks on a multiprocessor, at least 1
   * @param blockThreads the threads of a block, at least 1
   * @throws IllegalArgumentException if one of them is less than 1
   * @throws CudaException if the driver reports an error
   */
  public long availableDynamicSharedBytes(CudaDevice device, int blocks, int blockThreads) {
    Checks.inRange("blocks", blocks, 1, Integer.MAX_VALUE);
    Checks.inRange("blockThreads", blockThreads, 1, Integer.MAX_VALUE);
    return core.availableDynamicSharedBytes(CudaDevice.coreOf(device), blocks, blockThreads);
  }

  /**
   * {@return the clusters that a device can run at once (cuOccupancyMaxActiveClusters)}
   *
   * @param device the device
   * @param config the launch, with its cluster
   * @throws CudaException if the driver reports an error
   */
  public int maxActiveClusters(CudaDevice device, LaunchConfig config) {
    Objects.requireNonNull(config, "config");
    return core.maxActiveClusters(CudaDevice.coreOf(device), config);
  }

  /**
   * {@return the most blocks of a cluster with which a launch can run
   * (cuOccupancyMaxPotentialClusterSize)}
   *
   * @param device the device
   * @param config the launch; its cluster is ignored
   * @throws CudaException if the driver reports an error
   */
  public int maxPotentialClusterSize(CudaDevice device, LaunchConfig config) {
    Objects.requireNonNull(config, "config");
    return core.maxPotentialClusterSize(CudaDevice.coreOf(device), config);
  }

  /**
   * {@return the blocks that a device can run at once: the most of a cooperative launch. Blocks,
   * not clusters, also where there are clusters}
   *
   * @param device the device
   * @param config the launch
   * @throws IllegalArgumentException if the device runs no block of so many threads
   * @throws CudaException if the driver reports an error
   */
  public long maxResidentBlocks(CudaDevice device, LaunchConfig config) {
    Objects.requireNonNull(config, "config");
    return core.maxResidentBlocks(CudaDevice.coreOf(device), config);
  }

  /**
   * {@return arguments that are packed once and launched often}
   *
   * @param arguments see {@link CudaStream#launch(CudaKernel, LaunchConfig, Object...)}
   * @throws IllegalArgumentException if their number, or the size of one, is not that of the
   *     parameters
   * @throws IllegalStateException if the module or a buffer is closed
   */
  public KernelArguments pack(Object... arguments) {
    return new KernelArguments(this, arguments);
  }

  /**
   * {@return an object of a functional interface whose method launches the kernel}
   *
   * <p>The method returns nothing. Its first two parameters are a {@link CudaStream} and a {@link
   * LaunchConfig}, those that follow are the kernel's: a kind of {@link Buffer}, a primitive
   * number, a boolean, or a {@link java.lang.foreign.MemorySegment} for a structure. They are
   * checked here, once, against the kernel's.
   *
   * @param <T> the interface
   * @param type the interface
   * @throws IllegalArgumentException if it is not such an interface, or its parameters do not fit
   */
  public <T> T bind(Class<T> type) {
    return BoundKernel.of(this, Objects.requireNonNull(type, "type"));
  }
}
