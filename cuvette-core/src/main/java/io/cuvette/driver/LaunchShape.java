package io.cuvette.driver;

/**
 * How a kernel is launched: the extent of its grid and what the driver is to guarantee
 * (CUlaunchConfig). Not checked here. Immutable.
 *
 * @param gridX the blocks of the grid in x, with clusters a multiple of {@code clusterX}
 * @param gridY the blocks of the grid in y
 * @param gridZ the blocks of the grid in z
 * @param blockX the threads of a block in x
 * @param blockY the threads of a block in y
 * @param blockZ the threads of a block in z
 * @param clusterX the blocks of a cluster in x; 1 in all three for a launch without clusters
 * @param clusterY the blocks of a cluster in y
 * @param clusterZ the blocks of a cluster in z
 * @param dynamicSharedBytes the dynamic shared memory of a block, in bytes
 * @param cooperative whether all blocks must be resident at once, so that they can wait for each
 *     other (CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
 * @param programmaticStreamSerialization whether the kernel may start before the one ahead of it in
 *     the stream has ended (CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
 */
public record LaunchShape(
    int gridX,
    int gridY,
    int gridZ,
    int blockX,
    int blockY,
    int blockZ,
    int clusterX,
    int clusterY,
    int clusterZ,
    int dynamicSharedBytes,
    boolean cooperative,
    boolean programmaticStreamSerialization) {

  /** {@return whether a cluster has more than one block} */
  public boolean hasClusters() {
    return clusterX != 1 || clusterY != 1 || clusterZ != 1;
  }
}
