package io.cuvette;

import io.cuvette.internal.base.Checks;
import java.util.Objects;

/**
 * How a kernel is launched. A value: nothing here calls the driver, and whether a device can run it
 * is checked at the launch. Immutable.
 *
 * @param grid the extent of the grid: in blocks, but in clusters if {@code cluster} is more than
 *     one block
 * @param block the extent of a block in threads
 * @param cluster the extent of a cluster in blocks; {@link Dim3#ONE} for a launch without clusters
 * @param dynamicSharedBytes the dynamic shared memory of a block, in bytes
 * @param cooperative whether all blocks must be resident at once, so that they can wait for each
 *     other
 * @param programmaticStreamSerialization whether the kernel may start before the one ahead of it in
 *     the stream has ended; it waits for that itself where it needs to
 */
public record LaunchConfig(
    Dim3 grid,
    Dim3 block,
    Dim3 cluster,
    int dynamicSharedBytes,
    boolean cooperative,
    boolean programmaticStreamSerialization) {

  /**
   * A configuration of all its parts.
   *
   * @throws IllegalArgumentException if the shared memory is negative, or grid times cluster is
   *     more than 2^31 − 1 in a dimension
   */
  public LaunchConfig {
    Objects.requireNonNull(grid, "grid");
    Objects.requireNonNull(block, "block");
    Objects.requireNonNull(cluster, "cluster");
    Checks.notNegative("dynamicSharedBytes", dynamicSharedBytes);
    checkBlocks("x", grid.x(), cluster.x());
    checkBlocks("y", grid.y(), cluster.y());
    checkBlocks("z", grid.z(), cluster.z());
  }

  private static void checkBlocks(String dimension, long clusters, long each) {
    if (clusters * each > Integer.MAX_VALUE) {
      throw new IllegalArgumentException(
          "grid in %s: %d clusters of %d blocks are %d (expected: <= %d)"
              .formatted(dimension, clusters, each, clusters * each, Integer.MAX_VALUE));
    }
  }

  /**
   * {@return a configuration without clusters or shared memory}
   *
   * @param grid the extent of the grid in blocks
   * @param block the extent of a block in threads
   */
  public static LaunchConfig of(Dim3 grid, Dim3 block) {
    return new LaunchConfig(grid, block, Dim3.ONE, 0, false, false);
  }

  /**
   * {@return a configuration in x alone}
   *
   * @param blocks the blocks of the grid, 1 to 2^31 − 1
   * @param threads the threads of a block
   * @throws IllegalArgumentException if one of them is outside its range
   */
  public static LaunchConfig of(long blocks, int threads) {
    return of(extent("blocks", blocks), extent("threads", threads));
  }

  /**
   * {@return a configuration in x with as many blocks as it takes to have a thread for each
   * element; the last block may have more}
   *
   * @param elements the number of elements, at least 1
   * @param threads the threads of a block
   * @throws IllegalArgumentException if there are no elements, or it takes more than 2^31 − 1
   *     blocks
   */
  public static LaunchConfig forElements(long elements, int threads) {
    Checks.inRange("elements", elements, 1, Long.MAX_VALUE);
    Dim3 block = extent("threads", threads);
    return of(extent("blocks", (elements - 1) / threads + 1), block);
  }

  private static Dim3 extent(String name, long count) {
    return Dim3.of(Checks.inRange(name, count, 1, Integer.MAX_VALUE));
  }

  /**
   * {@return this configuration with the same blocks in clusters}
   *
   * @param value the extent of a cluster in blocks, which divides that of the grid
   * @throws IllegalArgumentException if it does not divide the grid
   */
  public LaunchConfig inClustersOf(Dim3 value) {
    Objects.requireNonNull(value, "value");
    return new LaunchConfig(
        new Dim3(
            divided("x", blocks().x(), value.x()),
            divided("y", blocks().y(), value.y()),
            divided("z", blocks().z(), value.z())),
        block,
        value,
        dynamicSharedBytes,
        cooperative,
        programmaticStreamSerialization);
  }

  private static int divided(String dimension, int blocks, int each) {
    if (blocks % each != 0) {
      throw new IllegalArgumentException(
          "cluster in %s: %d blocks (expected: a divisor of the %d blocks of the grid)"
              .formatted(dimension, each, blocks));
    }
    return blocks / each;
  }

  /** {@return the extent of the grid in blocks, whether there are clusters or not} */
  public Dim3 blocks() {
    return new Dim3(grid.x() * cluster.x(), grid.y() * cluster.y(), grid.z() * cluster.z());
  }

  /**
   * {@return this configuration with another grid}
   *
   * @param value the extent in blocks, or in clusters if there are any
   */
  public LaunchConfig withGrid(Dim3 value) {
    Objects.requireNonNull(value, "value");
    return new LaunchConfig(
        value, block, cluster, dynamicSharedBytes, cooperative, programmaticStreamSerialization);
  }

  /**
   * {@return this configuration with other blocks}
   *
   * @param value the extent of a block in threads
   */
  public LaunchConfig withBlock(Dim3 value) {
    Objects.requireNonNull(value, "value");
    return new LaunchConfig(
        grid, value, cluster, dynamicSharedBytes, cooperative, programmaticStreamSerialization);
  }

  /**
   * {@return this configuration with other clusters, of which the grid has as many as before it had
   * blocks or clusters}
   *
   * @param value the extent of a cluster in blocks; {@link Dim3#ONE} for none
   */
  public LaunchConfig withCluster(Dim3 value) {
    Objects.requireNonNull(value, "value");
    return new LaunchConfig(
        grid, block, value, dynamicSharedBytes, cooperative, programmaticStreamSerialization);
  }

  /**
   * {@return this configuration with dynamic shared memory}
   *
   * @param value the bytes of a block
   */
  public LaunchConfig withDynamicSharedBytes(int value) {
    return new LaunchConfig(
        grid, block, cluster, value, cooperative, programmaticStreamSerialization);
  }

  /**
   * {@return this configuration as a cooperative launch or not}
   *
   * @param value whether all blocks must be resident at once
   */
  public LaunchConfig withCooperative(boolean value) {
    return new LaunchConfig(
        grid, block, cluster, dynamicSharedBytes, value, programmaticStreamSerialization);
  }

  /**
   * {@return this configuration with or without programmatic serialization}
   *
   * @param value whether the kernel may start before the one ahead of it has ended
   */
  public LaunchConfig withProgrammaticStreamSerialization(boolean value) {
    return new LaunchConfig(grid, block, cluster, dynamicSharedBytes, cooperative, value);
  }
}
