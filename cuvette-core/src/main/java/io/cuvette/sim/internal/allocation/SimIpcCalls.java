package io.cuvette.sim.internal.allocation;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.IpcCalls;
import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.calls.SimEventCalls;
import io.cuvette.sim.internal.machine.SimCosts;
import io.cuvette.sim.internal.machine.SimEvent;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.memory.DeviceBlock;
import io.cuvette.sim.internal.memory.DeviceMemory;
import io.cuvette.sim.internal.memory.HostBlock;
import io.cuvette.sim.internal.memory.SharedBytes;
import io.cuvette.sim.internal.memory.SimBlock;
import io.cuvette.sim.internal.memory.SimPlace;
import io.cuvette.sim.internal.memory.VirtualBlock;
import io.cuvette.sim.internal.pool.PoolUse;
import io.cuvette.sim.internal.pool.SimPool;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.share.OpenedMemory;
import io.cuvette.sim.internal.share.ShareHandle;
import io.cuvette.sim.internal.share.SharedEvent;
import io.cuvette.sim.internal.share.SharedFile;
import io.cuvette.sim.internal.share.SharedPlace;
import io.cuvette.sim.internal.share.SharedPool;
import io.cuvette.sim.internal.share.SharedTable;
import java.util.Objects;

/** The calls that share memory and events with other processes. Thread-safe. */
public final class SimIpcCalls implements IpcCalls {

  private final SimMachine machine;
  private final SimEventCalls events;

  public SimIpcCalls(SimMachine machine, SimEventCalls events) {
    this.machine = machine;
    this.events = events;
  }

  @Override
  public int memPoolExportToShareableHandle(long pool) {
    return machine.call(
        () -> {
          machine.pools.require();
          return shared(machine.pools.get(pool)).export();
        },
        () -> "cuMemPoolExportToShareableHandle(pool=0x%x)".formatted(pool));
  }

  private static SharedPool shared(SimPool pool) {
    if (pool.shared == null) {
      throw SimRefusal.invalidValue(
          "a pool of %s without handle types (expected: one made with handle type 1)"
              .formatted(pool.kind));
    }
    return pool.shared;
  }

  @Override
  public long memPoolImportFromShareableHandle(int descriptor) {
    return machine.callLong(
        () -> {
          machine.pools.require();
          machine.spend(SimCosts.POOL_CREATE);
          return machine.pools.open(descriptor).handle();
        },
        () -> "cuMemPoolImportFromShareableHandle(descriptor=" + descriptor + ")");
  }

  @Override
  public byte[] memPoolExportPointer(long address) {
    return machine.call(
        () -> {
          machine.pools.require();
          return exportPointer(machine.place("address", address, 0));
        },
        () -> "cuMemPoolExportPointer(address=0x%x)".formatted(address));
  }

  private static byte[] exportPointer(SimPlace place) {
    SimBlock block = place.block();
    if (place.offset() > 0 && place.offset() == block.byteSize) {
      throw SimRefusal.invalidValue("address: the end of " + block + " (expected: inside)");
    }
    block.checkNotRetired();
    PoolUse use = PoolUse.of(block);
    if (use == null) {
      throw SimRefusal.invalidValue(
          "%s (expected: memory of a pool made with handle type 1)".formatted(block));
    }
    SharedPool pool = shared(use.pool);
    if (!pool.isExported()) {
      throw SimRefusal.invalidValue(
          "%s of a pool that was not exported (expected: the pool first)".formatted(block));
    }
    SharedTable.Entry entry = use.exported();
    if (entry == null) {
      entry = pool.add(extent(block), block.byteSize);
      use.exported(entry);
    }
    return pool.handle(entry);
  }

  /** Where a block of a shared pool is; from now on what is there can be seen by others. */
  private static Extent extent(SimBlock block) {
    return switch (block) {
      case DeviceBlock onDevice -> {
        SharedBytes bytes = Objects.requireNonNull(onDevice.shared());
        bytes.segment();
        yield bytes.extent();
      }
      case HostBlock host -> Objects.requireNonNull(host.extent());
      case VirtualBlock mapped -> throw mapped.notFreed();
    };
  }

  @Override
  public long memPoolImportPointer(long pool, byte[] handle) {
    byte[] bytes = ShareHandle.copy(handle);
    return machine.callLong(
        () -> {
          machine.pools.require();
          return importPointer(machine.pools.get(pool), bytes).address;
        },
        () -> "cuMemPoolImportPointer(pool=0x%x, %d bytes)".formatted(pool, bytes.length));
  }

  private SimBlock importPointer(SimPool pool, byte[] handle) {
    SharedPool shared = pool.shared;
    if (shared == null || !shared.isImported()) {
      throw SimRefusal.invalidValue(
          "pool: 0x%x (expected: one that was imported)".formatted(pool.handle()));
    }
    SharedTable.Entry entry = shared.entry(handle);
    SimBlock mapped = shared.mapped(entry);
    if (mapped instanceof DeviceBlock) {
      // As the driver does (its bug 5570902): there is one mapping, which the first free ends.
      return mapped;
    }
    if (mapped != null) {
      throw new SimRefusal(
          CudaStatus.ALREADY_MAPPED, "%s is this allocation already".formatted(mapped));
    }
    SimBlock block = place(pool, shared, entry);
    PoolUse use = new PoolUse(pool, DeviceMemory.rounded(entry.byteSize()));
    use.exported(entry);
    block.use(use);
    block.freedElsewhere(() -> shared.isGone(entry));
    shared.mapped(entry, block);
    return block;
  }

  private SimBlock place(SimPool pool, SharedPool shared, SharedTable.Entry entry) {
    long id = machine.nextId();
    if (!pool.kind.isDevice()) {
      return machine.hostMemory.placeImported(
          machine.device(0), shared, shared.borrow(entry), entry.byteSize(), id);
    }
    DeviceMemory memory = machine.memory(machine.device(pool.kind.locationId()));
    SharedBytes bytes = new SharedBytes(shared, shared.borrow(entry), true);
    return imported(memory, bytes, entry.byteSize(), id);
  }

  private static DeviceBlock imported(
      DeviceMemory memory, SharedBytes bytes, long byteSize, long id) {
    try {
      // Now, since the file may be gone when it is touched.
      bytes.segment();
      DeviceBlock block = memory.placeImported(byteSize, id);
      block.share(bytes);
      return block;
    } catch (RuntimeException | Error e) {
      bytes.close();
      throw e;
    }
  }

  @Override
  public byte[] ipcGetMemHandle(int device, long address) {
    return machine.call(
        () -> {
          machine.working(device);
          return export(machine.place("address", address, 1));
        },
        () -> "cuIpcGetMemHandle(address=0x%x, device=%d)".formatted(address, device));
  }

  private byte[] export(SimPlace place) {
    if (!(place.block() instanceof DeviceBlock block)
        || block.use() != null
        || block.isImported()) {
      throw SimRefusal.invalidValue(
          "%s (expected: memory of cuMemAlloc of this process)".formatted(place.block()));
    }
    SharedBytes bytes = block.shared();
    if (bytes == null) {
      bytes = moved(block);
    }
    return ((SharedFile) bytes.file()).handle(ShareHandle.Kind.MEMORY).toBytes();
  }

  /** Moves a block into a file of its own. */
  private SharedBytes moved(DeviceBlock block) {
    SharedPlace place = SharedPlace.of(block.device);
    SharedFile file =
        SharedFile.create(machine.sharing, SharedFile.Kind.MEMORY, place, block.byteSize);
    SharedBytes bytes = new SharedBytes(file, new Extent(0, block.byteSize), true);
    try {
      bytes.segment();
    } catch (RuntimeException | Error e) {
      bytes.close();
      throw e;
    }
    block.share(bytes);
    return bytes;
  }

  @Override
  public long ipcOpenMemHandle(int device, byte[] handle) {
    byte[] bytes = ShareHandle.copy(handle);
    return machine.callLong(
        () -> {
          SimDevice opening = machine.working(device);
          return open(opening, ShareHandle.of(bytes, ShareHandle.Kind.MEMORY)).address;
        },
        () -> "cuIpcOpenMemHandle(%d bytes, device=%d)".formatted(bytes.length, device));
  }

  private DeviceBlock open(SimDevice device, ShareHandle handle) {
    checkForeign(handle);
    SharedFile file = SharedFile.ofHandle(machine.sharing, SharedFile.Kind.MEMORY, handle);
    try {
      OpenedMemory opened = machine.sharing.memory(file);
      if (opened == null) {
        return open(device, file);
      }
      checkReaches(device, opened.block().device);
      opened.openAgain();
      return opened.block();
    } finally {
      file.release(); // a block that is new has it too
    }
  }

  private DeviceBlock open(SimDevice device, SharedFile file) {
    SimDevice owner = owner(device, file.place());
    long byteSize = file.dataBytes();
    file.retain();
    SharedBytes bytes = new SharedBytes(file, new Extent(0, byteSize), true);
    DeviceBlock block = imported(machine.memory(owner), bytes, byteSize, machine.nextId());
    machine.sharing.opened(file, new OpenedMemory(block));
    return block;
  }

  private void checkForeign(ShareHandle handle) {
    if (handle.driver() == machine.sharing.driverId) {
      throw new SimRefusal(
          CudaStatus.INVALID_CONTEXT, "handle: made by this process (expected: by another)");
    }
  }

  /** The device that something shared is on, which a device of this process shall reach. */
  private SimDevice owner(SimDevice device, SharedPlace place) {
    SimDevice owner = place.device(machine.devices());
    checkReaches(device, owner);
    return owner;
  }

  private void checkReaches(SimDevice device, SimDevice owner) {
    if (owner != device && !machine.peers.allows(device.index, owner.index)) {
      throw new SimRefusal(
          CudaStatus.PEER_ACCESS_UNSUPPORTED,
          "from device %d to device %d".formatted(device.index, owner.index));
    }
  }

  @Override
  public void ipcCloseMemHandle(int device, long address) {
    machine.run(
        () -> {
          machine.working(device);
          close(machine.start(address));
        },
        () -> "cuIpcCloseMemHandle(address=0x%x, device=%d)".formatted(address, device));
  }

  private void close(SimBlock block) {
    if (opened(block).isOpenOnce()) {
      machine.drainAll();
    }
    // Others may have opened or closed it while this waited.
    OpenedMemory opened = opened(block);
    if (opened.isOpenOnce()) {
      machine.sharing.closed(opened);
      machine.discard(block);
    } else {
      opened.closeOnce();
    }
  }

  private OpenedMemory opened(SimBlock block) {
    OpenedMemory opened = machine.sharing.memory(block);
    if (opened == null) {
      throw SimRefusal.invalidValue("%s (expected: an opened handle)".formatted(block));
    }
    return opened;
  }

  @Override
  public byte[] ipcGetEventHandle(int device, long event) {
    return machine.call(
        () -> {
          machine.working(device);
          return export(events.all.get(event));
        },
        () -> "cuIpcGetEventHandle(event=0x%x)".formatted(event));
  }

  private byte[] export(SimEvent event) {
    if (!event.isInterprocess()) {
      throw SimRefusal.invalidValue(
          "event: made with flags %d (expected: 4, interprocess, and 2)".formatted(event.flags));
    }
    SharedEvent shared = event.shared();
    if (shared == null) {
      shared = SharedEvent.create(machine.sharing, SharedPlace.of(event.device));
      event.share(shared);
      SimOp record = event.capturedPoint() == null ? event.lastRecord() : null;
      if (record != null) {
        events.share(shared, shared.begin(machine::awaitOutside), record);
      }
    }
    return shared.handle.toBytes();
  }

  @Override
  public long ipcOpenEventHandle(int device, byte[] handle) {
    byte[] bytes = ShareHandle.copy(handle);
    return machine.callLong(
        () -> {
          SimDevice opening = machine.working(device);
          return openEvent(opening, ShareHandle.of(bytes, ShareHandle.Kind.EVENT));
        },
        () -> "cuIpcOpenEventHandle(%d bytes, device=%d)".formatted(bytes.length, device));
  }

  private long openEvent(SimDevice device, ShareHandle handle) {
    checkForeign(handle);
    SharedEvent shared = SharedEvent.open(machine.sharing, handle);
    try {
      owner(device, shared.place());
    } catch (RuntimeException | Error e) {
      shared.release();
      throw e;
    }
    SimEvent event = new SimEvent(device, SimEvent.INTERPROCESS | SimEvent.DISABLE_TIMING);
    event.share(shared);
    return events.all.add(event);
  }
}
