package io.cuvette.sim.internal.allocation;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemGranularity;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.sim.internal.base.HandleKind;
import io.cuvette.sim.internal.base.HandleTable;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.machine.SimCosts;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.memory.DeviceMemory;
import io.cuvette.sim.internal.memory.MappedPiece;
import io.cuvette.sim.internal.memory.PhysicalMemory;
import io.cuvette.sim.internal.memory.VirtualSpace;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.share.SharedAllocation;
import io.cuvette.sim.internal.share.SharedFile;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/** The calls about virtual memory. Thread-safe. */
public final class SimVirtualCalls implements VirtualCalls {
  /** Handles for other nodes of a cluster, which a machine without a fabric may not make. */
  private static final int FABRIC = 8;

  private final SimMachine machine;
  private final HandleTable<PhysicalMemory> memories =
      new HandleTable<>(HandleKind.ALLOCATION, false);

  public SimVirtualCalls(SimMachine machine) {
    this.machine = machine;
  }

  private void run(Runnable body, Supplier<String> name) {
    machine.run(
        () -> {
          require();
          body.run();
        },
        name);
  }

  private long callLong(LongSupplier body, Supplier<String> name) {
    return machine.callLong(
        () -> {
          require();
          return body.getAsLong();
        },
        name);
  }

  private void require() {
    if (!machine.options.virtualMemory()) {
      throw new SimRefusal(CudaStatus.NOT_SUPPORTED, "the devices have no virtual memory");
    }
  }

  @Override
  public long memGetAllocationGranularity(AllocationProperties properties, int option) {
    return callLong(
        () -> {
          if (option != MemGranularity.MINIMUM && option != MemGranularity.RECOMMENDED) {
            throw SimRefusal.invalidValue("option: %d (expected: 0 or 1)".formatted(option));
          }
          return VirtualSpace.GRANULARITY;
        },
        () -> "cuMemGetAllocationGranularity(%s, option=%d)".formatted(properties, option));
  }

  private void check(AllocationProperties properties) {
    int types = properties.handleTypes();
    boolean isHost = properties.locationType() == MemLocationType.HOST;
    if (types != MemHandleType.NONE && (types != MemHandleType.FILE_DESCRIPTOR || isHost)) {
      throw new SimRefusal(
          types == FABRIC && !isHost ? CudaStatus.NOT_PERMITTED : CudaStatus.INVALID_VALUE,
          "handle types: %d of %s memory (expected: 0%s)"
              .formatted(types, isHost ? "host" : "device", isHost ? "" : " or 1"));
    }
    place(properties.locationType(), properties.locationId());
  }

  /** The number of a device, or that of the host, which comes behind them. */
  private int place(int locationType, int id) {
    return switch (locationType) {
      case MemLocationType.DEVICE -> machine.device(id).index;
      case MemLocationType.HOST -> machine.devices().size();
      case MemLocationType.HOST_NUMA -> {
        if (id < 0 || id >= machine.options.numaNodes()) {
          throw SimRefusal.invalidValue(
              "NUMA node: %d (expected: 0 to %d)".formatted(id, machine.options.numaNodes() - 1));
        }
        yield machine.devices().size();
      }
      default ->
          throw SimRefusal.invalidValue(
              "location type: %d (expected: 1 to 3)".formatted(locationType));
    };
  }

  @Override
  public long memAddressReserve(long bytes, long alignment, long address) {
    return callLong(
        () -> {
          machine.spend(SimCosts.ADDRESS_RESERVE);
          return machine.virtual.reserve(bytes, alignment, address);
        },
        () ->
            "cuMemAddressReserve(bytes=%d, alignment=%d, address=0x%x)"
                .formatted(bytes, alignment, address));
  }

  @Override
  public void memAddressFree(long address, long bytes) {
    run(
        () -> machine.virtual.free(address, bytes),
        () -> "cuMemAddressFree(address=0x%x, bytes=%d)".formatted(address, bytes));
  }

  @Override
  public long memCreate(long bytes, AllocationProperties properties) {
    return callLong(
        () -> {
          check(properties);
          VirtualSpace.checkMultiple("bytes", bytes, VirtualSpace.GRANULARITY);
          machine.spend(SimCosts.create(bytes));
          DeviceMemory memory = machine.memory(deviceOf(properties));
          return added(PhysicalMemory.create(properties, memory, bytes, machine.nextId()));
        },
        () -> "cuMemCreate(bytes=%d, %s)".formatted(bytes, properties));
  }

  private SimDevice deviceOf(AllocationProperties properties) {
    return properties.locationType() == MemLocationType.DEVICE
        ? machine.working(properties.locationId())
        : machine.device(0);
  }

  private long added(PhysicalMemory memory) {
    memory.handle(memories.add(memory));
    memory.retain();
    return memory.handle();
  }

  private PhysicalMemory held(long handle) {
    PhysicalMemory memory = memories.get(handle);
    if (!memory.isHeld()) {
      throw HandleKind.ALLOCATION.refused(handle);
    }
    return memory;
  }

  @Override
  public void memMap(long address, long bytes, long offset, long handle) {
    run(
        () -> {
          PhysicalMemory memory = held(handle);
          if (offset != 0) {
            throw SimRefusal.invalidValue("offset: %d (expected: 0)".formatted(offset));
          }
          machine.spend(SimCosts.MAP);
          machine.virtual.map(memory, address, bytes, machine.hostNanos());
        },
        () ->
            "cuMemMap(address=0x%x, bytes=%d, offset=%d, handle=0x%x)"
                .formatted(address, bytes, offset, handle));
  }

  @Override
  public void memUnmap(long address, long bytes) {
    run(
        () -> {
          Set<PhysicalMemory> all = new LinkedHashSet<>(); // one may be mapped twice
          for (MappedPiece piece : machine.virtual.unmap(address, bytes)) {
            machine.spend(SimCosts.UNMAP);
            all.add(piece.memory);
          }
          all.forEach(this::endIfUnused);
        },
        () -> "cuMemUnmap(address=0x%x, bytes=%d)".formatted(address, bytes));
  }

  private void endIfUnused(PhysicalMemory memory) {
    if (memory.isUnused()) {
      memories.remove(memory.handle());
      machine.spend(SimCosts.release(memory.byteSize()));
      memory.end();
    }
  }

  @Override
  public void memSetAccess(
      long address, long bytes, int locationType, int[] locationIds, int... access) {
    int[] ids = locationIds.clone();
    int[] flags = access.clone();
    run(
        () -> setAccess(machine.virtual.exactly(address, bytes), locationType, ids, flags),
        () ->
            "cuMemSetAccess(address=0x%x, bytes=%d, location type=%d, ids=%s, access=%s)"
                .formatted(
                    address, bytes, locationType, Arrays.toString(ids), Arrays.toString(flags)));
  }

  private void setAccess(List<MappedPiece> pieces, int type, int[] ids, int[] flags) {
    if (ids.length == 0 || (flags.length != 1 && flags.length != ids.length)) {
      throw SimRefusal.invalidValue(
          "access: %d flags for %d places (expected: 1 or as many, for at least one place)"
              .formatted(flags.length, ids.length));
    }
    for (int i = 0; i < ids.length; i++) {
      int place = place(type, ids[i]);
      int access = flags[flags.length == 1 ? 0 : i];
      pieces.forEach(piece -> check(piece.memory, place, access));
    }
    for (int i = 0; i < ids.length; i++) {
      int place = place(type, ids[i]);
      int access = flags[flags.length == 1 ? 0 : i];
      pieces.forEach(piece -> piece.access(place, access));
    }
    machine.spend(SimCosts.SET_ACCESS * pieces.size());
  }

  private void check(PhysicalMemory memory, int place, int access) {
    if (access != MemAccessFlags.NONE
        && access != MemAccessFlags.READ
        && access != MemAccessFlags.READ_WRITE) {
      throw SimRefusal.invalidValue("access: %d (expected: 0, 1 or 3)".formatted(access));
    }
    int owner = memory.properties.locationId();
    boolean isHost = place == machine.devices().size();
    boolean reaches =
        !memory.isOnDevice() || (!isHost && (place == owner || machine.peers.allows(place, owner)));
    if (access != MemAccessFlags.NONE && !reaches) {
      throw new SimRefusal(
          isHost ? CudaStatus.NOT_SUPPORTED : CudaStatus.INVALID_DEVICE,
          "%s cannot reach memory of device %d"
              .formatted(isHost ? "the host" : "device " + place, owner));
    }
  }

  @Override
  public int memGetAccess(long address, int locationType, int locationId) {
    return (int)
        callLong(
            () -> {
              int place = place(locationType, locationId);
              var _ = machine.place("address", address, 1);
              MappedPiece piece = machine.virtual.at(address);
              return piece == null ? MemAccessFlags.NONE : piece.access(place);
            },
            () ->
                "cuMemGetAccess(address=0x%x, location=%d:%d)"
                    .formatted(address, locationType, locationId));
  }

  @Override
  public void memRelease(long handle) {
    run(
        () -> {
          PhysicalMemory memory = held(handle);
          memory.release();
          endIfUnused(memory);
        },
        () -> "cuMemRelease(handle=0x%x)".formatted(handle));
  }

  @Override
  public long memRetainAllocationHandle(long address) {
    return callLong(
        () -> {
          PhysicalMemory memory = machine.virtual.mapped(address).memory;
          memory.retain();
          return memory.handle();
        },
        () -> "cuMemRetainAllocationHandle(address=0x%x)".formatted(address));
  }

  @Override
  public AllocationProperties memGetAllocationPropertiesFromHandle(long handle) {
    return machine.call(
        () -> {
          require();
          return held(handle).properties;
        },
        () -> "cuMemGetAllocationPropertiesFromHandle(handle=0x%x)".formatted(handle));
  }

  @Override
  public int memExportToShareableHandle(long handle) {
    return (int)
        callLong(
            () -> SharedAllocation.file(machine.sharing, held(handle)).export(),
            () -> "cuMemExportToShareableHandle(handle=0x%x)".formatted(handle));
  }

  @Override
  public long memImportFromShareableHandle(int descriptor) {
    return callLong(
        () -> {
          SharedFile file =
              SharedFile.ofDescriptor(machine.sharing, SharedFile.Kind.ALLOCATION, descriptor);
          try {
            return imported(file);
          } finally {
            file.release(); // memory that is new has it too
          }
        },
        () -> "cuMemImportFromShareableHandle(descriptor=%d)".formatted(descriptor));
  }

  /** One memory for each file, whoever made it. */
  private long imported(SharedFile file) {
    PhysicalMemory[] known = new PhysicalMemory[1];
    memories.forEach(memory -> {
      SharedFile of = SharedAllocation.fileOf(memory);
      if (of != null && of.key().equals(file.key())) {
        known[0] = memory;
      }
    });
    if (known[0] != null) {
      known[0].retain();
      return known[0].handle();
    }
    SimDevice device =
        file.place().isHost() ? machine.device(0) : file.place().device(machine.devices());
    file.retain();
    return added(SharedAllocation.imported(file, machine.memory(device), machine.nextId()));
  }

  /** Says what is left: memory, mappings and ranges. */
  public String report() {
    StringBuilder text = new StringBuilder();
    memories.forEach(memory ->
        text.append(
            "allocation handle 0x%x of %s%s%s\n"
                .formatted(
                    memory.handle(),
                    memory,
                    memory.isHeld() ? ", held" : "",
                    memory.isMapped() ? ", mapped" : "")));
    if (machine.virtual.reservations() > 0) {
      text.append(
          "%d reserved ranges of addresses, %d mappings\n"
              .formatted(machine.virtual.reservations(), machine.virtual.mappings()));
    }
    return text.toString();
  }
}
