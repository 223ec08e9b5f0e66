package io.cuvette.sim.internal.kernel;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.LaunchShape;
import io.cuvette.sim.internal.base.SimRefusal;
import java.util.Map;
import java.util.TreeMap;

/**
 * The attributes of a kernel on a device, and what the device has room for: as on an H200, for a
 * kernel of 32 registers. Guarded by the driver's lock.
 */
public final class KernelSettings {
  private static final int MAX_THREADS_PER_BLOCK = 0;
  private static final int SHARED_SIZE_BYTES = 1;
  private static final int NUM_REGS = 4;
  private static final int PTX_VERSION = 5;
  private static final int BINARY_VERSION = 6;
  private static final int MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;
  private static final int PREFERRED_SHARED_MEMORY_CARVEOUT = 9;
  private static final int REQUIRED_CLUSTER_WIDTH = 11;
  private static final int REQUIRED_CLUSTER_HEIGHT = 12;
  private static final int REQUIRED_CLUSTER_DEPTH = 13;
  private static final int NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14;
  private static final int CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15;

  /** The number of attributes. */
  private static final int COUNT = 16;

  public static final int MOST_THREADS = 1024;
  private static final int MOST_THREADS_Z = 64;
  private static final int MOST_BLOCKS_YZ = 65_535;
  private static final int MULTIPROCESSORS = 132;
  private static final int WARP = 32;
  private static final int WARPS = 64;
  private static final int MOST_RESIDENT_BLOCKS = 32;

  /** Shared memory of a block that needs no opt-in, of one that has opted in, of all together. */
  private static final int USUAL_SHARED = 49_152;

  private static final int MOST_SHARED = 232_448;
  private static final int ALL_SHARED = 233_472;
  private static final int RESERVED_SHARED = 1_024;
  private static final int PORTABLE_CLUSTER = 8;
  private static final int MOST_CLUSTER = 16;

  private int staticShared;
  private final Map<Integer, Integer> changed = new TreeMap<>();

  /** Notes the shared memory that the code declares: its function may be registered late. */
  public void declare(int sharedBytes) {
    staticShared = sharedBytes;
  }

  public int get(int attribute) {
    check(attribute);
    Integer set = changed.get(attribute);
    if (set != null) { // perhaps before it was known what the code declares
      return attribute == MAX_DYNAMIC_SHARED_SIZE_BYTES
          ? Math.min(set, MOST_SHARED - staticShared)
          : set;
    }
    return switch (attribute) {
      case MAX_THREADS_PER_BLOCK -> MOST_THREADS;
      case SHARED_SIZE_BYTES -> staticShared;
      case NUM_REGS -> WARP;
      case PTX_VERSION, BINARY_VERSION -> 90;
      case MAX_DYNAMIC_SHARED_SIZE_BYTES -> USUAL_SHARED - staticShared;
      case PREFERRED_SHARED_MEMORY_CARVEOUT -> -1;
      default -> 0;
    };
  }

  public void set(int attribute, int value) {
    check(attribute);
    switch (attribute) {
      case MAX_DYNAMIC_SHARED_SIZE_BYTES -> checkRange(value, 0, MOST_SHARED - staticShared);
      case PREFERRED_SHARED_MEMORY_CARVEOUT -> checkRange(value, -1, 100);
      case NON_PORTABLE_CLUSTER_SIZE_ALLOWED -> checkRange(value, 0, 1);
      case CLUSTER_SCHEDULING_POLICY_PREFERENCE -> checkRange(value, 0, 2);
      case REQUIRED_CLUSTER_WIDTH, REQUIRED_CLUSTER_HEIGHT, REQUIRED_CLUSTER_DEPTH ->
          checkRange(value, 0, MOST_CLUSTER);
      default -> throw SimRefusal.invalidValue("attribute: %d cannot be set".formatted(attribute));
    }
    changed.put(attribute, value);
  }

  private static void check(int attribute) {
    if (attribute < 0 || attribute >= COUNT) {
      throw SimRefusal.invalidValue(
          "attribute: %d (expected: 0 to %d)".formatted(attribute, COUNT - 1));
    }
  }

  private static void checkRange(int value, int least, int most) {
    if (value < least || value > most) {
      throw SimRefusal.invalidValue("value: %d (expected: %d to %d)".formatted(value, least, most));
    }
  }

  /** Refuses a launch that the device has no room for. */
  public void check(LaunchShape shape) {
    check("gridX", shape.gridX(), Integer.MAX_VALUE);
    check("gridY", shape.gridY(), MOST_BLOCKS_YZ);
    check("gridZ", shape.gridZ(), MOST_BLOCKS_YZ);
    check("blockX", shape.blockX(), MOST_THREADS);
    check("blockY", shape.blockY(), MOST_THREADS);
    check("blockZ", shape.blockZ(), MOST_THREADS_Z);
    check("threads of a block", threads(shape), MOST_THREADS);
    checkShared(shape.dynamicSharedBytes());
    checkCluster(shape);
    long resident = (long) MULTIPROCESSORS * residentBlocks(shape);
    long blocks = (long) shape.gridX() * shape.gridY() * shape.gridZ();
    if (shape.cooperative() && blocks > resident) {
      throw new SimRefusal(
          CudaStatus.COOPERATIVE_LAUNCH_TOO_LARGE,
          "%d blocks (expected: <= %d, which can be resident at once)".formatted(blocks, resident));
    }
  }

  private static void check(String name, long value, long most) {
    if (value < 1 || value > most) {
      throw SimRefusal.invalidValue("%s: %d (expected: 1 to %d)".formatted(name, value, most));
    }
  }

  private static long threads(LaunchShape shape) {
    return (long) shape.blockX() * shape.blockY() * shape.blockZ();
  }

  private void checkShared(int bytes) {
    int most = get(MAX_DYNAMIC_SHARED_SIZE_BYTES);
    if (bytes < 0 || bytes > most) {
      throw SimRefusal.invalidValue(
          "dynamic shared memory: %d bytes (expected: 0 to %d, attribute %d of the kernel)"
              .formatted(bytes, most, MAX_DYNAMIC_SHARED_SIZE_BYTES));
    }
  }

  private void checkCluster(LaunchShape shape) {
    check("clusterX", shape.clusterX(), MOST_CLUSTER);
    check("clusterY", shape.clusterY(), MOST_CLUSTER);
    check("clusterZ", shape.clusterZ(), MOST_CLUSTER);
    int size = shape.clusterX() * shape.clusterY() * shape.clusterZ();
    if (size > mostCluster()) {
      throw new SimRefusal(
          CudaStatus.INVALID_CLUSTER_SIZE,
          "cluster: %d blocks (expected: <= %d)".formatted(size, mostCluster()));
    }
    checkDivides("gridX", shape.gridX(), shape.clusterX());
    checkDivides("gridY", shape.gridY(), shape.clusterY());
    checkDivides("gridZ", shape.gridZ(), shape.clusterZ());
  }

  private static void checkDivides(String name, int blocks, int cluster) {
    if (blocks % cluster != 0) {
      throw new SimRefusal(
          CudaStatus.INVALID_CLUSTER_SIZE,
          "%s: %d blocks (expected: a multiple of %d, those of a cluster)"
              .formatted(name, blocks, cluster));
    }
  }

  private int mostCluster() {
    return get(NON_PORTABLE_CLUSTER_SIZE_ALLOWED) == 1 ? MOST_CLUSTER : PORTABLE_CLUSTER;
  }

  private int residentBlocks(LaunchShape shape) {
    return residentBlocks((int) threads(shape), shape.dynamicSharedBytes());
  }

  /** The blocks that a multiprocessor runs at once. */
  public int residentBlocks(int threads, long dynamicShared) {
    check("threads of a block", threads, Integer.MAX_VALUE);
    if (dynamicShared < 0) {
      throw SimRefusal.invalidValue(
          "dynamic shared memory: %d bytes (expected: >= 0)".formatted(dynamicShared));
    }
    long shared = staticShared + dynamicShared + RESERVED_SHARED;
    if (threads > MOST_THREADS) {
      return 0;
    }
    int warps = (threads + WARP - 1) / WARP;
    return (int) Math.min(Math.min(MOST_RESIDENT_BLOCKS, WARPS / warps), ALL_SHARED / shared);
  }

  /** The blocks that the device runs at once if each has so many threads. */
  public int deviceBlocks(int threads, long dynamicShared) {
    return MULTIPROCESSORS * residentBlocks(threads, dynamicShared);
  }

  /** The bytes of dynamic shared memory that each of some blocks of a multiprocessor can have. */
  public long sharedLeft(int blocks, int threads) {
    check("blocks", blocks, MOST_RESIDENT_BLOCKS);
    check("threads of a block", threads, MOST_THREADS);
    int each = ALL_SHARED / blocks - RESERVED_SHARED - staticShared;
    return Math.max(each, 0);
  }

  /** The clusters that the device runs at once. */
  public int clusters(LaunchShape shape) {
    check("threads of a block", threads(shape), MOST_THREADS);
    checkCluster(shape);
    return MULTIPROCESSORS
        * residentBlocks(shape)
        / (shape.clusterX() * shape.clusterY() * shape.clusterZ());
  }

  /** The blocks of the largest cluster. */
  public int largestCluster(LaunchShape shape) {
    check("threads of a block", threads(shape), MOST_THREADS);
    return residentBlocks(shape) == 0 ? 0 : mostCluster();
  }
}
