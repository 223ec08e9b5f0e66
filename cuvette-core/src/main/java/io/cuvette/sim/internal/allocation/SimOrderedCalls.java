package io.cuvette.sim.internal.allocation;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.graph.GraphBlock;
import io.cuvette.sim.internal.graph.NodeWork;
import io.cuvette.sim.internal.machine.CaptureBranch;
import io.cuvette.sim.internal.machine.SimCosts;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.memory.DeviceBlock;
import io.cuvette.sim.internal.memory.DeviceMemory;
import io.cuvette.sim.internal.memory.HostBlock;
import io.cuvette.sim.internal.memory.RangeAdvice;
import io.cuvette.sim.internal.memory.SharedBytes;
import io.cuvette.sim.internal.memory.SimBlock;
import io.cuvette.sim.internal.pool.PoolFree;
import io.cuvette.sim.internal.pool.PoolUse;
import io.cuvette.sim.internal.pool.SimPool;
import io.cuvette.sim.internal.pool.SimPools;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import io.cuvette.sim.internal.share.PoolKind;
import io.cuvette.sim.internal.share.SharedPool;
import java.util.List;

/** The calls that allocate and free in stream order. Thread-safe. */
public final class SimOrderedCalls implements OrderedCalls {

  private final SimMachine machine;

  public SimOrderedCalls(SimMachine machine) {
    this.machine = machine;
  }

  @Override
  public long memAllocAsync(int device, long bytes, long stream) {
    return machine.callLong(
        () -> {
          machine.pools.require();
          SimStream queue = machine.stream(machine.working(device), stream);
          PoolKind kind =
              new PoolKind(MemLocationType.DEVICE, queue.device.index, MemAllocationType.PINNED);
          return allocate(machine.pools.currentOf(kind), bytes, queue).address;
        },
        () -> "cuMemAllocAsync(bytes=%d, stream=0x%x, device=%d)".formatted(bytes, stream, device));
  }

  @Override
  public long memAllocFromPoolAsync(int device, long bytes, long pool, long stream) {
    return machine.callLong(
        () -> {
          machine.pools.require();
          SimStream queue = machine.stream(machine.working(device), stream);
          return allocate(machine.pools.get(pool), bytes, queue).address;
        },
        () ->
            "cuMemAllocFromPoolAsync(bytes=%d, pool=0x%x, stream=0x%x, device=%d)"
                .formatted(bytes, pool, stream, device));
  }

  private SimBlock allocate(SimPool pool, long bytes, SimStream stream) {
    machine.captures.checkLegacy(stream);
    if (stream.capture != null) {
      return capture(pool, bytes, stream);
    }
    if (bytes < 0) {
      throw SimRefusal.invalidValue("bytes: %d (expected: >= 0)".formatted(bytes));
    }
    SimPools.checkOwn(pool);
    machine.spend(SimCosts.pooled(pool.kind));
    SimBlock block = place(pool, bytes, stream.device);
    PoolUse use = new PoolUse(pool, DeviceMemory.rounded(bytes));
    block.use(use);
    long held = pool.attribute(5);
    Extent place;
    try {
      place = pool.take(use.byteSize, stream, op -> queue(SimOp.waiting(stream, op, now())));
    } catch (SimRefusal e) {
      machine.discard(block);
      throw e;
    }
    machine.spend(SimCosts.poolGrowth(pool.attribute(5) - held));
    use.allocated(place, queue(SimOp.point(stream, now())));
    return block;
  }

  /** As the driver does: it is memory of the graph, which the devices of the pool may access. */
  private SimBlock capture(SimPool pool, long bytes, SimStream stream) {
    if (!pool.kind.isDevice() || pool.shared != null) {
      throw CaptureBranch.capturing(stream)
          .capture
          .invalidate(
              CudaStatus.STREAM_CAPTURE_UNSUPPORTED,
              "allocations of %s cannot be captured".formatted(pool.kind));
    }
    SimDevice owner = machine.device(pool.kind.locationId());
    List<Integer> peers =
        machine.devices().stream()
            .filter(device -> device != owner)
            .filter(device -> pool.access.of(device) == MemAccessFlags.READ_WRITE)
            .map(device -> device.index)
            .toList();
    GraphBlock block = machine.graphMemory(owner).place(bytes, peers, machine.nextId());
    try {
      machine.capture(stream, () -> NodeWork.allocation(stream.device, block));
    } catch (SimRefusal e) {
      block.neverUsed();
      throw e;
    }
    return block.block();
  }

  private void captureFree(SimStream stream, long address) {
    GraphBlock block = GraphBlock.of(machine.start(address));
    if (block == null) {
      throw CaptureBranch.capturing(stream)
          .capture
          .invalidate(CudaStatus.INVALID_VALUE, "only memory of a graph can be freed in a capture");
    }
    block.checkFreeNode(CaptureBranch.capturing(stream).capture.graph);
    machine.capture(stream, () -> NodeWork.free(stream.device, block));
  }

  private DeviceBlock placeShared(DeviceMemory memory, SharedPool shared, long bytes) {
    SharedPool.Room room = shared.reserve(bytes);
    SharedBytes content = new SharedBytes(shared, room.extent(), room.clean());
    try {
      DeviceBlock block = memory.allocatePooled(bytes, machine.nextId());
      block.share(content);
      return block;
    } catch (RuntimeException | Error e) {
      content.close();
      throw e;
    }
  }

  private SimBlock place(SimPool pool, long bytes, SimDevice device) {
    if (pool.kind.isDevice()) {
      DeviceMemory memory = machine.memory(machine.device(pool.kind.locationId()));
      return pool.shared == null
          ? memory.allocatePooled(bytes, machine.nextId())
          : placeShared(memory, pool.shared, bytes);
    }
    if (pool.shared != null) {
      Extent extent = pool.shared.provide(bytes);
      return machine.hostMemory.placeShared(device, pool.shared, extent, bytes, machine.nextId());
    }
    HostBlock.Kind kind = pool.kind.isManaged() ? HostBlock.Kind.MANAGED : HostBlock.Kind.PINNED;
    HostBlock block = machine.hostMemory.allocate(kind, device, bytes, machine.nextId(), 0);
    if (pool.kind.isManaged()) {
      RangeAdvice.Location preferred =
          new RangeAdvice.Location(pool.kind.locationType(), pool.kind.locationId());
      block.advice.change(0, bytes, advice -> advice.withPreferred(preferred));
    }
    return block;
  }

  private SimOp queue(SimOp op) {
    return machine.queue(op);
  }

  private long now() {
    return machine.hostNanos();
  }

  @Override
  public void memFreeAsync(int device, long address, long stream) {
    machine.run(
        () -> {
          machine.pools.require();
          SimStream queue = machine.stream(machine.working(device), stream);
          machine.captures.checkLegacy(queue);
          if (queue.capture != null) {
            captureFree(queue, address);
            return;
          }
          SimBlock block = machine.start(address);
          GraphBlock ofGraph = GraphBlock.of(block);
          if (ofGraph != null) {
            ofGraph.checkOpen();
            ofGraph.freeing();
            queue(SimOp.work(queue, ofGraph::free, 0, now()));
            return;
          }
          PoolUse use = PoolUse.of(block);
          if (use == null) {
            throw SimRefusal.invalidValue(
                "address: 0x%x (expected: memory allocated in stream order)".formatted(address));
          }
          block.checkNotRetired();
          machine.spend(SimCosts.pooled(use.pool.kind));
          free(block, use, queue);
        },
        () ->
            "cuMemFreeAsync(address=0x%x, stream=0x%x, device=%d)"
                .formatted(address, stream, device));
  }

  private void free(SimBlock block, PoolUse use, SimStream stream) {
    if (use.pool.isImported()) {
      queue(SimOp.work(stream, () -> end(block), 0, now()));
    } else {
      PoolFree free = new PoolFree(stream, use.place());
      Runnable work =
          () -> {
            use.end();
            end(block);
            use.pool.freed(free);
          };
      free.queued(queue(SimOp.work(stream, work, 0, now())));
      use.pool.freeing(free);
    }
    use.unshare(block);
    machine.retire(block);
  }

  private void end(SimBlock block) {
    block.checkLive();
    machine.discard(block);
  }
}
