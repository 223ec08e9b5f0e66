package io.cuvette.sim.internal.kernel;

import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.LaunchWatcher;
import io.cuvette.sim.GridFunction;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.queue.SimDevice;
import java.lang.foreign.MemorySegment;
import java.math.BigInteger;
import java.util.List;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * One launch of a kernel, which may run again as a node of a graph. Blocks of a cluster, and all of
 * a cooperative launch, are resident together; else one runs after the other, in an order of the
 * seed. Immutable.
 *
 * @param kernel what runs
 * @param shape how many threads, and how they are grouped
 * @param layout where the parameters lie in the arguments
 * @param arguments the values of the parameters, aligned to 8 bytes
 * @param watcher is notified of the memory that is touched; null if nobody is
 */
public record Grid(
    SimulatedKernel kernel,
    LaunchShape shape,
    List<KernelParameter> layout,
    MemorySegment arguments,
    @Nullable LaunchWatcher watcher) {
  private static final LaunchShape ONE_THREAD =
      new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);

  /**
   * Runs all threads; the caller holds the driver's lock.
   *
   * @param seed what the order of threads is drawn from
   * @throws io.cuvette.sim.internal.base.SimRefusal if a thread fails
   */
  public void run(SimMachine machine, SimDevice device, long seed) {
    if (kernel.function() instanceof GridFunction && (blocks() > 1 || threads() > 1)) {
      new Grid(kernel, ONE_THREAD, layout, arguments, watcher).run(machine, device, seed);
      return;
    }
    GlobalMemory memory = new GlobalMemory(machine, device, watcher);
    SplittableRandom random = new SplittableRandom(seed);
    long groups = shape.cooperative() ? 1 : blocks() / clusterSize();
    // Every group once, by steps that have no factor in common with their number.
    long step = groups == 1 ? 1 : 1 + random.nextLong(groups - 1);
    while (!BigInteger.valueOf(step).gcd(BigInteger.valueOf(groups)).equals(BigInteger.ONE)) {
      step = step % groups + 1;
    }
    long group = random.nextLong(groups);
    for (long done = 0; done < groups; done++) {
      new Residents(this, memory, random.split(), group).run();
      group = Math.addExact(group, step) % groups;
    }
    if (watcher != null) {
      watcher.ran();
    }
  }

  /** The number of blocks. */
  public long blocks() {
    return (long) shape.gridX() * shape.gridY() * shape.gridZ();
  }

  /** The number of threads in a block. */
  int threads() {
    return shape.blockX() * shape.blockY() * shape.blockZ();
  }

  /** The number of blocks in a cluster. */
  int clusterSize() {
    return shape.clusterX() * shape.clusterY() * shape.clusterZ();
  }

  /** The number of blocks that are resident together. */
  int residentBlocks() {
    return shape.cooperative() ? Math.toIntExact(blocks()) : clusterSize();
  }

  /** The bytes of shared memory of a block. */
  int sharedBytes() {
    return kernel.sharedBytes() + shape.dynamicSharedBytes();
  }

  /** The place of a block, where the blocks of a cluster follow each other. */
  Place place(long block) {
    int inCluster = (int) (block % clusterSize());
    long cluster = block / clusterSize();
    int clustersX = shape.gridX() / shape.clusterX();
    int clustersY = shape.gridY() / shape.clusterY();
    return new Place(
        (int) (cluster % clustersX) * shape.clusterX() + inCluster % shape.clusterX(),
        (int) (cluster / clustersX % clustersY) * shape.clusterY()
            + inCluster / shape.clusterX() % shape.clusterY(),
        (int) (cluster / clustersX / clustersY) * shape.clusterZ()
            + inCluster / shape.clusterX() / shape.clusterY());
  }

  /** Where a block is in the grid, or a thread in its block. */
  record Place(int x, int y, int z) {
    @Override
    public String toString() {
      return "(%d, %d, %d)".formatted(x, y, z);
    }
  }
}
