package io.cuvette.sim.internal.memory;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.internal.base.SimRefusal;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Set;

/**
 * Who has the memory of a device, as cuMemGetInfo counts it: pages of 2 MiB. Managed memory that
 * came to the device makes room when others need it, as it does on a GPU. Guarded by the driver's
 * lock.
 */
public final class DevicePages {
  public static final long PAGE = 2L << 20;

  // On an H200 (143,156 MiB, driver 580) a context takes 526.8 MiB, counted in pieces of 64 KiB.
  private static final double CONTEXT_PART = 552_402_944.0 / 150_109_880_320.0;
  private static final long CONTEXT_GRAIN = 64 << 10;

  // What cuMemGetInfo reports as free at the end but cannot be allocated: 3.1 to 7.1 MiB.
  private static final long KEPT_PART = 74;

  // There each stream but the first two takes 0.548 MiB, which the context keeps for the next.
  private static final long STREAM_PART = 961;
  private static final int FIRST_STREAMS = 2;

  private final SimulatedOptions options;
  private final long contextBytes;

  /** The bytes that are free but cannot be allocated. */
  private final long keptBytes;

  /** Makes the pools of the device give back what they do not use. */
  private Runnable relief = () -> {};

  private int streams;

  /** What the context has taken for streams. */
  private long streamBytes;

  /** Of plain allocations and of pools. */
  private long takenBytes;

  /** Managed memory that came here, the longest ago first. */
  private final Set<ManagedPages> managed = new LinkedHashSet<>();

  private long managedBytes;

  public DevicePages(SimulatedOptions options) {
    this.options = options;
    long context = options.contextBytes();
    this.contextBytes = context >= 0 ? context : measured(options.memoryBytes());
    this.keptBytes = contextBytes / KEPT_PART;
  }

  private static long measured(long memoryBytes) {
    long bytes = Math.round(memoryBytes * CONTEXT_PART / CONTEXT_GRAIN) * CONTEXT_GRAIN;
    return bytes < PAGE ? 0 : bytes;
  }

  /** The bytes of whole pages that hold some bytes. */
  public static long up(long bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
  }

  /** The free bytes as cuMemGetInfo reports them. */
  public long freeBytes() {
    return Math.max(0, leftBytes() - managedBytes);
  }

  /** What can be had, if managed memory makes room. */
  public long roomBytes() {
    return Math.max(0, leftBytes() - keptBytes);
  }

  public void whenShort(Runnable trim) {
    relief = trim;
  }

  /** What can be had; the pools give back first what they do not use if that is too little. */
  public long roomFor(long bytes) {
    if (bytes > roomBytes()) {
      relief.run();
    }
    return roomBytes();
  }

  private long leftBytes() {
    return options.memoryBytes() - options.othersBytes() - contextBytes - streamBytes - takenBytes;
  }

  /** Takes some bytes, for which there is room; releases them if negative. */
  public void take(long bytes) {
    takenBytes += bytes;
    makeRoom();
  }

  /** The context has so many streams more; OUT_OF_MEMORY if there is no room for them. */
  public void addStreams(int more) {
    int count = streams + more;
    long part = contextBytes * Math.max(0, count - FIRST_STREAMS) / STREAM_PART;
    long bytes = (part + PAGE / 2) / PAGE * PAGE - streamBytes;
    if (bytes > roomBytes()) {
      throw new SimRefusal(
          CudaStatus.OUT_OF_MEMORY,
          "%d streams need %d bytes more (expected: at most %d, the free memory)"
              .formatted(count, bytes, roomBytes()));
    }
    streams = count;
    if (bytes > 0) {
      streamBytes += bytes;
      makeRoom();
    }
  }

  /** Managed memory comes to the device, as much of it as there is room for. */
  public void bring(ManagedPages pages, long bytes) {
    managed.remove(pages);
    managed.add(pages);
    managedBytes += bytes;
    makeRoom();
  }

  /** Managed memory is here no longer. */
  public void leave(ManagedPages pages, long bytes) {
    managed.remove(pages);
    managedBytes -= bytes;
  }

  private void makeRoom() {
    Iterator<ManagedPages> oldest = managed.iterator();
    while (managedBytes > roomBytes() && oldest.hasNext()) {
      ManagedPages pages = oldest.next();
      managedBytes -= pages.evict(managedBytes - roomBytes());
      if (pages.isGone()) {
        oldest.remove();
      }
    }
  }
}
