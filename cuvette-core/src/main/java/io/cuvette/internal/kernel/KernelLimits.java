package io.cuvette.internal.kernel;

import static io.cuvette.DeviceAttribute.CLUSTER_LAUNCH;
import static io.cuvette.DeviceAttribute.COOPERATIVE_LAUNCH;
import static io.cuvette.DeviceAttribute.MAX_BLOCK_DIM_X;
import static io.cuvette.DeviceAttribute.MAX_BLOCK_DIM_Y;
import static io.cuvette.DeviceAttribute.MAX_BLOCK_DIM_Z;
import static io.cuvette.DeviceAttribute.MAX_GRID_DIM_X;
import static io.cuvette.DeviceAttribute.MAX_GRID_DIM_Y;
import static io.cuvette.DeviceAttribute.MAX_GRID_DIM_Z;
import static io.cuvette.DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
import static io.cuvette.DeviceAttribute.MAX_THREADS_PER_BLOCK;
import static io.cuvette.DeviceAttribute.MULTIPROCESSOR_COUNT;

import io.cuvette.DeviceAttribute;
import io.cuvette.Dim3;
import io.cuvette.KernelAttribute;
import io.cuvette.LaunchConfig;
import io.cuvette.driver.LaunchShape;
import io.cuvette.internal.session.Device;
import java.util.Map;

/**
 * What a device can run of a kernel, and the check of configurations against it: before the driver,
 * with the value, the rule and the numbers. Immutable.
 *
 * @param device the attributes of the device
 * @param threads the most threads of a block
 * @param staticShared the static shared memory of a block, in bytes
 * @param dynamicShared the most dynamic shared memory of a block, in bytes
 * @param nonPortable whether clusters of more than {@value #PORTABLE_CLUSTER} blocks are allowed
 * @param needsCluster whether it cannot be launched without a cluster
 * @param cluster the cluster that it must have
 */
record KernelLimits(
    Map<DeviceAttribute, Integer> device,
    int threads,
    int staticShared,
    int dynamicShared,
    boolean nonPortable,
    boolean needsCluster,
    Required cluster) {

  /** The cluster that a kernel was compiled for, in blocks; zeros for any. */
  record Required(int x, int y, int z) {}

  /** The blocks of a cluster that every device with clusters can run. */
  private static final int PORTABLE_CLUSTER = 8;

  private static final int LARGEST_CLUSTER = 16;

  static KernelLimits of(OpenKernel kernel, Device device) {
    return new KernelLimits(
        device.attributes(),
        kernel.attribute(KernelAttribute.MAX_THREADS_PER_BLOCK, device),
        kernel.attribute(KernelAttribute.SHARED_SIZE_BYTES, device),
        kernel.attribute(KernelAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, device),
        kernel.attribute(KernelAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED, device) != 0,
        kernel.attribute(KernelAttribute.CLUSTER_SIZE_MUST_BE_SET, device) != 0,
        new Required(
            kernel.attribute(KernelAttribute.REQUIRED_CLUSTER_WIDTH, device),
            kernel.attribute(KernelAttribute.REQUIRED_CLUSTER_HEIGHT, device),
            kernel.attribute(KernelAttribute.REQUIRED_CLUSTER_DEPTH, device)));
  }

  static LaunchShape shape(LaunchConfig config) {
    Dim3 grid = config.blocks();
    Dim3 block = config.block();
    Dim3 cluster = config.cluster();
    return new LaunchShape(
        grid.x(),
        grid.y(),
        grid.z(),
        block.x(),
        block.y(),
        block.z(),
        cluster.x(),
        cluster.y(),
        cluster.z(),
        config.dynamicSharedBytes(),
        config.cooperative(),
        config.programmaticStreamSerialization());
  }

  /**
   * What the driver is given.
   *
   * @throws IllegalArgumentException if the device cannot run it
   */
  LaunchShape checked(OpenKernel kernel, Device on, LaunchConfig config) {
    Dim3 grid = config.blocks();
    Dim3 block = config.block();
    atMost("blocks in x", grid.x(), limit(MAX_GRID_DIM_X), on);
    atMost("blocks in y", grid.y(), limit(MAX_GRID_DIM_Y), on);
    atMost("blocks in z", grid.z(), limit(MAX_GRID_DIM_Z), on);
    atMost("threads of a block in x", block.x(), limit(MAX_BLOCK_DIM_X), on);
    atMost("threads of a block in y", block.y(), limit(MAX_BLOCK_DIM_Y), on);
    atMost("threads of a block in z", block.z(), limit(MAX_BLOCK_DIM_Z), on);
    atMost("threads of a block", block.count(), limit(MAX_THREADS_PER_BLOCK), on);
    atMost("threads of a block", block.count(), threads, kernel + " on " + on);
    checkShared(kernel, on, config);
    checkCluster(kernel, on, config.cluster());
    if (config.cooperative()) {
      checkCooperative(kernel, on, config);
    }
    return shape(config);
  }

  private int limit(DeviceAttribute attribute) {
    return device.getOrDefault(attribute, Integer.MAX_VALUE);
  }

  private static void atMost(String what, long value, long most, Object of) {
    if (value > most) {
      throw new IllegalArgumentException(
          "%s: %d (expected: <= %d, the most of %s)".formatted(what, value, most, of));
    }
  }

  private void checkShared(OpenKernel kernel, Device on, LaunchConfig config) {
    int bytes = config.dynamicSharedBytes();
    int most = limit(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    if ((long) bytes + staticShared > most) {
      throw new IllegalArgumentException(
          "dynamicSharedBytes: %d (expected: <= %d, what %s has for a block less the %d static bytes of %s)"
              .formatted(bytes, most - staticShared, on, staticShared, kernel));
    }
    if (bytes > dynamicShared) {
      throw new IllegalArgumentException(
          "dynamicSharedBytes: %d (expected: <= %d, or CudaKernel.allowDynamicSharedBytes(%s, %d) first)"
              .formatted(bytes, dynamicShared, on, bytes));
    }
  }

  private void checkCluster(OpenKernel kernel, Device on, Dim3 given) {
    if (given.count() == 1) {
      if (needsCluster) {
        throw new IllegalArgumentException(
            "cluster: %s (expected: a cluster of blocks, without which %s cannot be launched)"
                .formatted(given, kernel));
      }
      return;
    }
    if (device.getOrDefault(CLUSTER_LAUNCH, 0) == 0) {
      throw new IllegalArgumentException(
          "cluster: %s (expected: none, %s has no clusters)".formatted(given, on));
    }
    long most = nonPortable ? LARGEST_CLUSTER : PORTABLE_CLUSTER;
    if (given.count() > most) {
      throw new IllegalArgumentException(
          "cluster: %s is %d blocks (expected: <= %d%s)"
              .formatted(
                  given,
                  given.count(),
                  most,
                  nonPortable
                      ? ""
                      : ", or up to %d with KernelAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED"
                          .formatted(LARGEST_CLUSTER)));
    }
    if (cluster.x() > 0 && !cluster.equals(new Required(given.x(), given.y(), given.z()))) {
      throw new IllegalArgumentException(
          "cluster: %s (expected: (%d, %d, %d), for which %s was compiled)"
              .formatted(given, cluster.x(), cluster.y(), cluster.z(), kernel));
    }
  }

  private void checkCooperative(OpenKernel kernel, Device on, LaunchConfig config) {
    if (device.getOrDefault(COOPERATIVE_LAUNCH, 0) == 0) {
      throw new IllegalArgumentException(
          "cooperative: true (expected: false, %s has no cooperative launches)".formatted(on));
    }
    long resident = residentBlocks(kernel, on, config);
    long blocks = config.blocks().count();
    if (blocks > resident) {
      throw new IllegalArgumentException(
          "cooperative launch of %d blocks (expected: <= %d, those of %s that %s can run at once)"
              .formatted(blocks, resident, kernel, on));
    }
  }

  /** Counts blocks, not clusters. */
  long residentBlocks(OpenKernel kernel, Device on, LaunchConfig config) {
    long inCluster = config.cluster().count();
    long inBlock = config.block().count();
    atMost("threads of a block", inBlock, limit(MAX_THREADS_PER_BLOCK), on);
    return inCluster > 1
        ? inCluster * kernel.maxActiveClusters(on, config)
        : (long) limit(MULTIPROCESSOR_COUNT)
            * kernel.maxActiveBlocks(on, (int) inBlock, config.dynamicSharedBytes());
  }
}
