package io.cuvette.sim.internal.pool;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.internal.base.CudaVersion;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.internal.base.HandleKind;
import io.cuvette.sim.internal.base.HandleTable;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.memory.DeviceMemory;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import io.cuvette.sim.internal.share.PoolKind;
import io.cuvette.sim.internal.share.SharedPlace;
import io.cuvette.sim.internal.share.SharedPool;
import io.cuvette.sim.internal.share.SimSharing;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** The memory pools of a driver. Guarded by the driver's lock. */
public final class SimPools {
  private static final int POOLS = 11_020;
  private static final int POOLS_BY_LOCATION = 13_000;

  private final SimulatedOptions options;
  private final PeerRule peers;
  private final List<SimDevice> devices;
  private final List<DeviceMemory> memories;
  private final SimSharing sharing;
  private final HandleTable<SimPool> handles = new HandleTable<>(HandleKind.POOL, true);
  private final Map<PoolKind, SimPool> defaults = new HashMap<>();
  private final Map<PoolKind, SimPool> current = new HashMap<>();

  /** The pools that may hold memory, those destroyed too. */
  private final List<SimPool> holding = new ArrayList<>();

  public SimPools(
      SimulatedOptions options,
      PeerRule peers,
      List<SimDevice> devices,
      List<DeviceMemory> memories,
      SimSharing sharing) {
    this.options = options;
    this.peers = peers;
    this.devices = devices;
    this.memories = memories;
    this.sharing = sharing;
  }

  /** Checks that the driver has pools at all. */
  public void require() {
    require(POOLS);
  }

  /** Checks that the driver knows pools by their location. */
  public void requireLocations() {
    require(POOLS_BY_LOCATION);
  }

  public boolean haveLocations() {
    return options.driverVersion() >= POOLS_BY_LOCATION;
  }

  private void require(int version) {
    if (options.driverVersion() < version) {
      throw new SimRefusal(
          CudaStatus.CALL_REQUIRES_NEWER_DRIVER,
          CudaVersion.tooOld(options.driverVersion(), version));
    }
  }

  public SimPool get(long handle) {
    return handles.get(handle);
  }

  public PoolKind kind(int locationType, int locationId, int allocationType) {
    return PoolKind.of(options, locationType, locationId, allocationType);
  }

  public SimPool create(PoolProperties properties) {
    PoolKind kind =
        kind(properties.locationType(), properties.locationId(), properties.allocationType());
    checkHandles(kind, properties.handleTypes());
    SharedPool shared = properties.handleTypes() == 0 ? null : share(kind, properties.maxBytes());
    return add(kind, properties.handleTypes(), properties.maxBytes(), false, shared);
  }

  private SharedPool share(PoolKind kind, long maxBytes) {
    long bytes = maxBytes > 0 ? Math.min(maxBytes, options.memoryBytes()) : options.memoryBytes();
    return SharedPool.create(sharing, placeOf(kind), bytes);
  }

  private SharedPlace placeOf(PoolKind kind) {
    return kind.isDevice()
        ? SharedPlace.of(devices.get(kind.locationId()))
        : SharedPlace.ofHost(kind);
  }

  /**
   * The pool of another process behind a descriptor, which stays the caller's. A pool that was
   * imported already is the same one, to be destroyed once more.
   */
  public SimPool open(int descriptor) {
    SharedPool shared = SharedPool.open(sharing, descriptor);
    try {
      for (SimPool known : holding) {
        if (known.isImportOf(shared)) {
          known.importedAgain();
          shared.close();
          return known;
        }
      }
      return add(importedKind(shared.place()), MemHandleType.FILE_DESCRIPTOR, 0, false, shared);
    } catch (RuntimeException | Error e) {
      shared.close();
      throw e;
    }
  }

  private PoolKind importedKind(SharedPlace place) {
    int expected = place.isHost() ? MemLocationType.HOST_NUMA : MemLocationType.DEVICE;
    if (place.locationType() != expected) {
      throw SimRefusal.invalidValue(
          "location type: %d of a shared pool (expected: %d)"
              .formatted(place.locationType(), expected));
    }
    if (place.isHost()) {
      return kind(MemLocationType.HOST_NUMA, place.locationId(), MemAllocationType.PINNED);
    }
    return new PoolKind(
        MemLocationType.DEVICE, place.device(devices).index, MemAllocationType.PINNED);
  }

  private static void checkHandles(PoolKind kind, int handleTypes) {
    boolean sharable = !kind.isManaged() && kind.locationType() != MemLocationType.HOST;
    if (handleTypes != 0 && (handleTypes != MemHandleType.FILE_DESCRIPTOR || !sharable)) {
      throw SimRefusal.invalidValue(
          "handle types: %d for %s (expected: %s)"
              .formatted(handleTypes, kind, sharable ? "0 or 1" : "0"));
    }
  }

  private SimPool add(
      PoolKind kind,
      int handleTypes,
      long maxBytes,
      boolean isDefault,
      @Nullable SharedPool shared) {
    PoolAccess access = new PoolAccess(peers, kind);
    SimPool pool = new SimPool(kind, handleTypes, access, space(kind, maxBytes), isDefault, shared);
    pool.named(handles.add(pool));
    holding.add(pool);
    return pool;
  }

  /** The file behind host memory says itself when it is full. */
  private PoolSpace space(PoolKind kind, long maxBytes) {
    long step = PoolSpace.stepOf(options.memoryBytes());
    if (!kind.isDevice()) {
      return new PoolSpace(step, maxBytes, Long.MAX_VALUE, _ -> Long.MAX_VALUE, _ -> {});
    }
    DeviceMemory memory = memories.get(kind.locationId());
    return new PoolSpace(
        step, maxBytes, options.memoryBytes(), memory.pages::roomFor, memory.pages::take);
  }

  /** Makes the default pools of all locations, which are there from the start. */
  public void createDefaults() {
    for (int type = MemAllocationType.PINNED; type <= MemAllocationType.MANAGED; type++) {
      for (int device = 0; device < options.devices(); device++) {
        createDefault(new PoolKind(MemLocationType.DEVICE, device, type));
      }
      for (int node = 0; node < options.numaNodes(); node++) {
        createDefault(new PoolKind(MemLocationType.HOST_NUMA, node, type));
      }
      createDefault(new PoolKind(MemLocationType.HOST, 0, type));
    }
    for (SimDevice device : devices) {
      memories.get(device.index).pages.whenShort(() -> trim(device.index));
    }
    createDefault(new PoolKind(MemLocationType.NONE, 0, MemAllocationType.MANAGED));
  }

  private void createDefault(PoolKind kind) {
    defaults.put(kind, add(kind, 0, 0, true, null));
  }

  public SimPool defaultOf(PoolKind kind) {
    return Objects.requireNonNull(defaults.get(kind));
  }

  public SimPool currentOf(PoolKind kind) {
    SimPool pool = current.get(kind);
    return pool == null ? defaultOf(kind) : pool;
  }

  public void setCurrent(PoolKind kind, long handle) {
    SimPool pool = get(handle);
    checkOwn(pool);
    if (!pool.kind.equals(kind)) {
      throw SimRefusal.invalidValue(
          "pool: 0x%x of %s (expected: one of %s)".formatted(handle, pool.kind, kind));
    }
    current.put(kind, pool);
  }

  /** Refuses a pool of another process, which cannot be allocated from. */
  public static void checkOwn(SimPool pool) {
    if (pool.isImported()) {
      throw SimRefusal.invalidValue(
          "pool: 0x%x was imported (expected: one that this process can allocate from)"
              .formatted(pool.handle()));
    }
  }

  public void destroy(long handle) {
    SimPool pool = get(handle);
    if (pool.isDefault) {
      throw SimRefusal.invalidValue("pool: 0x%x is the default of %s".formatted(handle, pool.kind));
    }
    if (pool.isStillImported()) {
      return;
    }
    handles.remove(handle);
    current.remove(pool.kind, pool);
    pool.destroy();
    forgetGone();
  }

  /** Learns from a queued operation that waits for another. */
  public void ordered(SimOp waiting) {
    SimOp dependency = waiting.dependency();
    if (dependency != null) {
      holding.forEach(pool -> pool.ordered(waiting, dependency));
    }
  }

  /** The host knows that a stream is done up to an operation. */
  public void observed(SimStream stream, long number) {
    holding.forEach(pool -> pool.observed(stream, number));
  }

  /** The host knows that a device is done. */
  public void observed(SimDevice device) {
    holding.forEach(pool -> pool.observed(device));
  }

  /** What each synchronization does with cached memory. */
  public void releaseExcess() {
    holding.forEach(SimPool::releaseExcess);
    forgetGone();
  }

  /** What each shortage of a device does with cached memory. */
  private void trim(int device) {
    holding.stream()
        .filter(pool -> pool.kind.isDevice() && pool.kind.locationId() == device)
        .forEach(pool -> pool.trimTo(0));
  }

  private void forgetGone() {
    holding.removeIf(SimPool::isGone);
  }

  /** The pools that a program made and did not destroy. */
  public int live() {
    return handles.size() - defaults.size();
  }

  public void forEachLive(Consumer<SimPool> action) {
    handles.forEach(pool -> {
      if (!pool.isDefault) {
        action.accept(pool);
      }
    });
  }
}
