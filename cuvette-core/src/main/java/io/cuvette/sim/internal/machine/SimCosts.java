package io.cuvette.sim.internal.machine;

import io.cuvette.driver.MemLocationType;
import io.cuvette.sim.internal.memory.DeviceBlock;
import io.cuvette.sim.internal.memory.PageableCopy;
import io.cuvette.sim.internal.memory.SimBlock;
import io.cuvette.sim.internal.memory.VirtualBlock;
import io.cuvette.sim.internal.pool.PoolSpace;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.share.PoolKind;

/**
 * What operations cost in simulated nanoseconds, as measured on an NVIDIA H200 with driver 580.
 * Where only one size was measured, the split into a fixed part and a part by size is an estimate.
 * Stateless.
 */
public final class SimCosts {
  public static final long CALL = 10;
  public static final long SUBMIT = 1_290;
  public static final long EVENT_RECORD = 1_292;
  public static final long EVENT_QUERY = 132;
  public static final long STREAM_QUERY = 153;
  public static final long STREAM_CREATE = 10_000;
  public static final long POOL_CREATE = 10_000;

  // For each range, or for each mapping in it.
  public static final long ADDRESS_RESERVE = 16_000;
  public static final long MAP = 800;
  public static final long SET_ACCESS = 24_500;
  public static final long UNMAP = 16_400;

  // Bytes per nanosecond are GB/s.
  private static final double HOST_TO_DEVICE = 55.3;
  private static final double DEVICE_TO_HOST = 55.3;
  private static final double PAGEABLE_TO_DEVICE = 8.0;
  private static final double DEVICE_TO_PAGEABLE = 16.1;
  private static final double HOST_TO_HOST = 10.0;
  private static final double INSIDE_DEVICE = 2_129;
  private static final double PEER = 391;

  /** At 2 MiB a copy is 0.70, at 32 MiB 0.97 of what it is in plain memory. */
  private static final double PIECE_LOSS = 0.84 * (1 << 20);

  private static final double FILL = 4_491;
  private static final long LATENCY = 1_500;
  private static final long BLOCKS_PER_NANOSECOND = 2;

  private SimCosts() {}

  /** cuMemAlloc or cuMemFree: a pair is 56.7 µs for 1 MiB and 135.1 µs for 64 MiB. */
  public static long alloc(long bytes) {
    return 27_700 + Math.round(bytes * (622.0 / (1 << 20)));
  }

  /** cuMemHostAlloc or cuMemFreeHost: a pair is 663.6 µs for 1 MiB. */
  public static long hostAlloc(long bytes) {
    return 100_000 + Math.round(bytes * (231_780.0 / (1 << 20)));
  }

  /** A stream-ordered allocation or free: half of a measured pair, without that of the JVM. */
  public static long pooled(PoolKind kind) {
    return switch (kind.locationType()) {
      case MemLocationType.HOST -> 620;
      case MemLocationType.HOST_NUMA -> 450;
      default -> 272;
    };
  }

  /** What a pool pays to grow: making, mapping and opening a range of 32 MiB, 34.4 µs each. */
  public static long poolGrowth(long bytes) {
    return (bytes + PoolSpace.STEP - 1) / PoolSpace.STEP * 34_400;
  }

  /** cuMemCreate: 9.8 µs for 2 MiB and 12.1 µs for 200 MiB. */
  public static long create(long bytes) {
    return 9_800 + bytes / 86_000;
  }

  /** What the last handle or mapping of memory costs: 11.8 µs for 2 MiB, 107.7 µs for 200 MiB. */
  public static long release(long bytes) {
    return 10_800 + bytes / 2_160;
  }

  public static long fill(long bytes) {
    return LATENCY + Math.round(bytes / FILL);
  }

  /** A kernel: an estimate, as if each block did little. */
  public static long launch(long blocks) {
    return LATENCY + blocks / BLOCKS_PER_NANOSECOND;
  }

  public static long prefetch(long bytes) {
    return LATENCY + Math.round(bytes / HOST_TO_DEVICE);
  }

  public static long copy(SimBlock target, SimBlock source, long bytes) {
    return LATENCY + Math.round(bytes / bandwidth(target, source));
  }

  private static double bandwidth(SimBlock target, SimBlock source) {
    if (isOnDevice(target) && isOnDevice(source)) {
      return target.device == source.device
          ? Math.min(inside(target), inside(source))
          : between(target.device, source.device);
    }
    if (isOnDevice(source)) {
      return PageableCopy.isPageable(target) ? DEVICE_TO_PAGEABLE : DEVICE_TO_HOST;
    }
    if (isOnDevice(target)) {
      return PageableCopy.isPageable(source) ? PAGEABLE_TO_DEVICE : HOST_TO_DEVICE;
    }
    return HOST_TO_HOST;
  }

  private static boolean isOnDevice(SimBlock block) {
    return block instanceof DeviceBlock || (block instanceof VirtualBlock v && v.isOnDevice);
  }

  /** Inside of a device: less for memory that was mapped in small pieces. */
  private static double inside(SimBlock block) {
    return block instanceof VirtualBlock mapped
        ? INSIDE_DEVICE / (1 + PIECE_LOSS / mapped.meanPieceBytes)
        : INSIDE_DEVICE;
  }

  /** Between devices: the link with peer access either way; else down to the host and up again. */
  private static double between(SimDevice one, SimDevice other) {
    return one.hasPeer(other) || other.hasPeer(one) ? PEER : HOST_TO_DEVICE / 2;
  }
}
