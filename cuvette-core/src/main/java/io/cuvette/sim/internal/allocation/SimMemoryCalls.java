package io.cuvette.sim.internal.allocation;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.sim.internal.base.MappedFiles;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.graph.GraphBlock;
import io.cuvette.sim.internal.machine.CaptureBranch;
import io.cuvette.sim.internal.machine.PointerAttributes;
import io.cuvette.sim.internal.machine.SimCosts;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.machine.SimManagedRange;
import io.cuvette.sim.internal.memory.DeviceBlock;
import io.cuvette.sim.internal.memory.HostBlock;
import io.cuvette.sim.internal.memory.RangeAdvice;
import io.cuvette.sim.internal.memory.SimBlock;
import io.cuvette.sim.internal.memory.SimPlace;
import io.cuvette.sim.internal.memory.VirtualBlock;
import io.cuvette.sim.internal.pool.PoolUse;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** The calls about memory, without those that move bytes. Thread-safe. */
public final class SimMemoryCalls implements MemoryCalls {
  private static final int MAX_HOST_FLAGS = 7;
  private static final int MAX_REGISTER_FLAGS = 15;

  private final SimMachine machine;

  public SimMemoryCalls(SimMachine machine) {
    this.machine = machine;
  }

  @Override
  public long memAlloc(int device, long bytes) {
    return machine.callLong(
        () -> {
          SimDevice owner = machine.working(device);
          machine.spend(SimCosts.alloc(bytes));
          return machine.memory(owner).allocate(bytes, machine.nextId()).address;
        },
        () -> "cuMemAlloc(bytes=%d, device=%d)".formatted(bytes, device));
  }

  @Override
  public void memFree(int device, long address) {
    machine.run(
        () -> free(machine.working(device), address),
        () -> "cuMemFree(address=0x%x, device=%d)".formatted(address, device));
  }

  private void free(SimDevice current, long address) {
    SimBlock freed = machine.start(address);
    PoolUse use = PoolUse.of(freed);
    GraphBlock ofGraph = GraphBlock.of(freed);
    if (use != null) {
      freePooled(freed, use);
    } else if (ofGraph != null) {
      machine.drainAll();
      ofGraph.checkOpen();
      ofGraph.freeing();
      ofGraph.free();
    } else if (freed instanceof VirtualBlock mapped) {
      throw mapped.notFreed();
    } else if (freed instanceof DeviceBlock block) {
      if (block.isImported()) {
        throw SimRefusal.invalidValue(
            "address: 0x%x of another process (expected: memory allocated here)"
                .formatted(address));
      }
      // The driver waits for the device of the memory, and no other.
      machine.drain(block.device);
      checkStillLive(block);
      machine.discard(block);
      machine.spend(SimCosts.alloc(block.byteSize));
      block.device.checkWorks();
    } else {
      freeHost((HostBlock) freed, HostBlock.Kind.MANAGED);
    }
    current.checkWorks();
  }

  /** Memory of a pool goes back there; it can have been used by any device. */
  private void freePooled(SimBlock block, PoolUse use) {
    machine.drainAll();
    block.checkNotRetired();
    use.unshare(block);
    use.end();
    machine.discard(block);
    if (!use.pool.isImported()) {
      use.pool.free(use.place());
    }
    machine.spend(SimCosts.pooled(use.pool.kind));
    block.device.checkWorks();
  }

  private static void checkStillLive(SimBlock block) {
    if (!block.isLive()) {
      throw SimRefusal.invalidValue("address: 0x%x was freed meanwhile".formatted(block.address));
    }
  }

  private void freeHost(HostBlock block, HostBlock.Kind kind) {
    if (block.kind != kind || block.use() != null) {
      throw SimRefusal.invalidValue(
          "address: 0x%x (expected: %s memory; this is %s%s)"
              .formatted(block.address, kind, block.kind, block.use() == null ? "" : " of a pool"));
    }
    machine.drainAll();
    checkStillLive(block);
    machine.hostMemory.free(block);
    machine.spend(SimCosts.hostAlloc(block.byteSize));
    block.device.checkWorks();
  }

  @Override
  public MemorySegment memAllocManaged(int device, long bytes, int flags) {
    return machine.call(
        () -> {
          if (flags != 1 && flags != 2) {
            throw SimRefusal.invalidValue(
                "flags: %d (expected: 1 global or 2 host)".formatted(flags));
          }
          return allocateHost(HostBlock.Kind.MANAGED, device, bytes, flags);
        },
        () -> "cuMemAllocManaged(bytes=%d, flags=%d, device=%d)".formatted(bytes, flags, device));
  }

  @Override
  public MemorySegment memHostAlloc(int device, long bytes, int flags) {
    return machine.call(
        () -> {
          if (flags < 0 || flags > MAX_HOST_FLAGS) {
            throw SimRefusal.invalidValue(
                "flags: %d (expected: 0 to %d)".formatted(flags, MAX_HOST_FLAGS));
          }
          return allocateHost(HostBlock.Kind.PINNED, device, bytes, flags);
        },
        () -> "cuMemHostAlloc(bytes=%d, flags=%d, device=%d)".formatted(bytes, flags, device));
  }

  private MemorySegment allocateHost(HostBlock.Kind kind, int device, long bytes, int flags) {
    if (bytes <= 0) {
      throw SimRefusal.invalidValue("bytes: %d (expected: > 0)".formatted(bytes));
    }
    SimDevice owner = machine.working(device);
    HostBlock block = machine.hostMemory.allocate(kind, owner, bytes, machine.nextId(), flags);
    machine.spend(SimCosts.hostAlloc(bytes));
    return block.segment;
  }

  @Override
  public void memFreeHost(int device, long address) {
    machine.run(
        () -> {
          machine.working(device);
          if (machine.start(address) instanceof HostBlock block) {
            freeHost(block, HostBlock.Kind.PINNED);
          } else {
            throw SimRefusal.invalidValue(
                "address: 0x%x (expected: page-locked host memory; this is device memory)"
                    .formatted(address));
          }
        },
        () -> "cuMemFreeHost(address=0x%x, device=%d)".formatted(address, device));
  }

  @Override
  public void memHostRegister(int device, MemorySegment memory, int flags) {
    machine.run(
        () -> {
          SimDevice owner = machine.working(device);
          if (flags < 0 || flags > MAX_REGISTER_FLAGS) {
            throw SimRefusal.invalidValue(
                "flags: %d (expected: 0 to %d)".formatted(flags, MAX_REGISTER_FLAGS));
          }
          checkPageable(memory, flags);
          machine.hostMemory.register(owner, memory, machine.nextId(), flags);
          machine.spend(SimCosts.hostAlloc(memory.byteSize()));
        },
        () ->
            "cuMemHostRegister(address=0x%x, bytes=%d, flags=%d, device=%d)"
                .formatted(memory.address(), memory.byteSize(), flags, device));
  }

  private static void checkPageable(MemorySegment memory, int flags) {
    if (!memory.isNative() || memory.byteSize() == 0) {
      throw SimRefusal.invalidValue("memory: %s (expected: native memory)".formatted(memory));
    }
    if (memory.isReadOnly() && (flags & HostBlock.READ_ONLY) == 0) {
      throw SimRefusal.invalidValue(
          "memory: %s may not be written (expected: flag %d)"
              .formatted(memory, HostBlock.READ_ONLY));
    }
    if (!MappedFiles.areThere(memory)) {
      throw SimRefusal.invalidValue("memory: the file of %s is shorter".formatted(memory));
    }
  }

  @Override
  public void memHostUnregister(int device, long address) {
    machine.run(
        () -> {
          machine.working(device);
          if (machine.find(address) instanceof SimPlace(SimBlock block, long _)
              && !(block instanceof HostBlock)) {
            throw SimRefusal.invalidValue(
                "address: 0x%x (expected: registered memory; this is device memory)"
                    .formatted(address));
          }
          SimPlace place = machine.hostMemory.find(address);
          if (place == null
              || place.offset() != 0
              || !(place.block() instanceof HostBlock block)
              || block.kind != HostBlock.Kind.REGISTERED) {
            throw new SimRefusal(
                CudaStatus.HOST_MEMORY_NOT_REGISTERED,
                "address: 0x%x (expected: the first of registered memory)".formatted(address));
          }
          freeHost(block, HostBlock.Kind.REGISTERED);
        },
        () -> "cuMemHostUnregister(address=0x%x, device=%d)".formatted(address, device));
  }

  @Override
  public MemorySegment hostView(int device, long address, long bytes, Arena arena) {
    return machine.look(
        () -> {
          SimPlace place = machine.place("address", address, bytes);
          if (!(place.block() instanceof HostBlock)) {
            throw SimRefusal.invalidValue(
                "address: 0x%x (expected: host-accessible memory; this is device memory)"
                    .formatted(address));
          }
          return machine.hostMemory.view(place, bytes, arena);
        },
        () -> "hostView(address=0x%x, bytes=%d)".formatted(address, bytes));
  }

  @Override
  public void memAdvise(
      int device, long address, long bytes, int advice, int locationType, int locationId) {
    machine.run(
        () -> {
          machine.working(device);
          SimManagedRange range = SimManagedRange.of(machine, address, bytes);
          range.advise(advice, locationType, locationId);
        },
        () ->
            "cuMemAdvise(address=0x%x, bytes=%d, advice=%d, location=%d:%d)"
                .formatted(address, bytes, advice, locationType, locationId));
  }

  @Override
  public int memRangeGetAttribute(int device, int attribute, long address, long bytes) {
    return machine.call(
        () -> {
          machine.working(device);
          return SimManagedRange.of(machine, address, bytes).attribute(attribute);
        },
        () ->
            "cuMemRangeGetAttribute(attribute=%d, address=0x%x, bytes=%d)"
                .formatted(attribute, address, bytes));
  }

  @Override
  public void memPrefetchAsync(
      int device, long address, long bytes, int locationType, int locationId, long stream) {
    machine.run(
        () -> {
          SimStream queue = machine.stream(machine.working(device), stream);
          SimManagedRange range = SimManagedRange.of(machine, address, bytes);
          RangeAdvice.Location location = range.location(locationType, locationId);
          CaptureBranch branch = CaptureBranch.of(queue);
          if (branch != null) {
            throw branch.capture.invalidate(
                CudaStatus.STREAM_CAPTURE_UNSUPPORTED, "a prefetch cannot be captured");
          }
          SimBlock block = range.place().block();
          Runnable move =
              () -> {
                block.checkLive();
                range.moveTo(location);
              };
          machine.queue(machine.work(queue, move, SimCosts.prefetch(bytes), block));
          range.prefetch(location);
        },
        () ->
            "cuMemPrefetchAsync(address=0x%x, bytes=%d, location=%d:%d, stream=0x%x)"
                .formatted(address, bytes, locationType, locationId, stream));
  }

  @Override
  public int[] memRangeGetAttributeList(
      int device, int attribute, long address, long bytes, int count) {
    return machine.call(
        () -> {
          machine.working(device);
          return SimManagedRange.of(machine, address, bytes).attributes(attribute, count);
        },
        () ->
            "cuMemRangeGetAttribute(attribute=%d, address=0x%x, bytes=%d, count=%d)"
                .formatted(attribute, address, bytes, count));
  }

  @Override
  public long pointerGetAttribute(int device, int attribute, long address) {
    return machine.callLong(
        () -> {
          SimDevice asking = machine.working(device);
          SimPlace place = machine.place("address", address, 1);
          GraphBlock ofGraph = GraphBlock.of(place.block());
          if (ofGraph != null) {
            ofGraph.checkMapped();
          }
          return PointerAttributes.get(attribute, place, asking);
        },
        () -> "cuPointerGetAttribute(attribute=%d, address=0x%x)".formatted(attribute, address));
  }
}
