package io.cuvette.sim.internal.machine;

import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.PerThread;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.internal.base.Addresses;
import io.cuvette.sim.internal.base.HandleKind;
import io.cuvette.sim.internal.base.HandleTable;
import io.cuvette.sim.internal.base.InsideKernel;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.graph.GraphMemory;
import io.cuvette.sim.internal.graph.GraphTables;
import io.cuvette.sim.internal.graph.LaunchQueue;
import io.cuvette.sim.internal.graph.NodeWork;
import io.cuvette.sim.internal.memory.DeviceBlock;
import io.cuvette.sim.internal.memory.DeviceMemory;
import io.cuvette.sim.internal.memory.HiddenManaged;
import io.cuvette.sim.internal.memory.HostBlock;
import io.cuvette.sim.internal.memory.HostMemory;
import io.cuvette.sim.internal.memory.SimBlock;
import io.cuvette.sim.internal.memory.SimPlace;
import io.cuvette.sim.internal.memory.VirtualBlock;
import io.cuvette.sim.internal.memory.VirtualSpace;
import io.cuvette.sim.internal.pace.SimSchedule;
import io.cuvette.sim.internal.pool.PeerRule;
import io.cuvette.sim.internal.pool.SimPools;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import io.cuvette.sim.internal.schedule.SimScheduler;
import io.cuvette.sim.internal.share.SimSharing;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The state of a simulated driver: devices, handles, host memory, clock. All but the calls' frame
 * is guarded by the driver's lock.
 */
public final class SimMachine implements LaunchQueue {
  public final SimulatedOptions options;

  /** Which devices can be peers. */
  public final PeerRule peers;

  public final SimScheduler scheduler;
  public final HostMemory hostMemory = new HostMemory();
  public final VirtualSpace virtual;
  public final SimSharing sharing;
  public final SimPools pools;
  public final HandleTable<SimStream> streams = new HandleTable<>(HandleKind.STREAM, true);
  public final GraphTables graphs = new GraphTables();
  public final SimCaptures captures = new SimCaptures(graphs);
  private final HiddenManaged hidden;

  private final LongAdder calls = new LongAdder();
  private final List<SimDevice> devices = new ArrayList<>();
  private final List<DeviceMemory> memories = new ArrayList<>();
  private final List<GraphMemory> graphMemories = new ArrayList<>();
  private final PerThread<@Nullable SimStream[]> threadStreams;
  private long nextId = 1;
  private long hostNanos;
  private boolean closed;

  public SimMachine(SimulatedOptions options) {
    this.options = options;
    this.peers = PeerRule.parse(options.peers(), options.devices());
    this.hidden = new HiddenManaged(options);
    this.sharing = new SimSharing(options.memoryBytes());
    this.pools = new SimPools(options, peers, devices, memories, sharing);
    this.scheduler = new SimScheduler(options, devices, pools::ordered);
    this.virtual = new VirtualSpace(options.devices(), scheduler::queuedNanos);
    int queues = SimSchedule.queues(options);
    for (int i = 0; i < options.devices(); i++) {
      devices.add(new SimDevice(i, nextId(), queues, options.queueLength()));
      memories.add(new DeviceMemory(devices.getLast(), options));
      graphMemories.add(new GraphMemory(memories.getLast()));
    }
    pools.createDefaults();
    this.threadStreams = new PerThread<>(() -> new @Nullable SimStream[devices.size()]);
  }

  /**
   * Runs the body of a driver call under the lock; a refusal becomes an exception with its name.
   */
  public <T> T call(Supplier<T> body, Supplier<String> name) {
    return call(body, name, true);
  }

  /** The same for what is no call of a real driver, and so waits for no other thread's call. */
  public <T> T look(Supplier<T> body, Supplier<String> name) {
    return call(body, name, false);
  }

  private <T> T call(Supplier<T> body, Supplier<String> name, boolean waits) {
    enter(name, waits);
    try {
      return body.get();
    } catch (SimRefusal e) {
      throw e.in(name.get());
    } finally {
      scheduler.endCall();
      scheduler.lock.unlock();
    }
  }

  /** The same for a call that gives a long, which need not be boxed. */
  public long callLong(LongSupplier body, Supplier<String> name) {
    enter(name, true);
    try {
      return body.getAsLong();
    } catch (SimRefusal e) {
      throw e.in(name.get());
    } finally {
      scheduler.endCall();
      scheduler.lock.unlock();
    }
  }

  /** The same for a call that gives nothing. */
  public void run(Runnable body, Supplier<String> name) {
    Object _ =
        call(
            () -> {
              body.run();
              return this;
            },
            name,
            true);
  }

  private void enter(Supplier<String> name, boolean waits) {
    calls.increment();
    if (scheduler.hostThread().isCurrentThread()) {
      throw new SimRefusal(CudaStatus.NOT_PERMITTED, "host functions must not call the driver")
          .in(name.get());
    }
    if (InsideKernel.isCurrentThread()) {
      throw new SimRefusal(CudaStatus.NOT_PERMITTED, "kernels must not call the driver")
          .in(name.get());
    }
    scheduler.hostThread().giveWay();
    scheduler.lock.lock();
    if (waits) {
      scheduler.beginCall();
    }
    if (closed) {
      scheduler.lock.unlock();
      throw new SimRefusal(CudaStatus.DEINITIALIZED, "the driver was closed").in(name.get());
    }
    hostNanos += SimCosts.CALL;
  }

  public long calls() {
    return calls.sum();
  }

  /** Reads something under the lock, closed or not, without counting a call. */
  public <T> T peek(Supplier<T> body) {
    InsideKernel.checkOutside();
    scheduler.lock.lock();
    try {
      return body.get();
    } finally {
      scheduler.lock.unlock();
    }
  }

  /** The device of a number, whether it works or not. */
  public SimDevice device(int index) {
    if (index < 0 || index >= devices.size()) {
      throw new SimRefusal(
          CudaStatus.INVALID_DEVICE,
          "device: %d (expected: 0 to %d)".formatted(index, devices.size() - 1));
    }
    return devices.get(index);
  }

  /** The device of a number for a call that needs its context. */
  public SimDevice working(int index) {
    SimDevice device = device(index);
    device.checkWorks();
    return device;
  }

  public DeviceMemory memory(SimDevice device) {
    return memories.get(device.index);
  }

  /** The memory that the graphs of a device share. */
  public GraphMemory graphMemory(SimDevice device) {
    return graphMemories.get(device.index);
  }

  public List<DeviceMemory> memories() {
    return memories;
  }

  public List<SimDevice> devices() {
    return devices;
  }

  /** The stream of a handle, where 0 and 1 are the legacy stream and 2 is that of the thread. */
  public SimStream stream(SimDevice current, long handle) {
    SimStream stream =
        handle == 0 || handle == 1
            ? current.legacy()
            : handle == 2 ? threadStream(current) : streams.get(handle);
    stream.device.checkWorks();
    return stream;
  }

  private SimStream threadStream(SimDevice device) {
    @Nullable SimStream[] mine = threadStreams.get();
    SimStream stream = mine[device.index];
    if (stream == null) {
      stream = new SimStream(device, nextId(), 0, 0);
      mine[device.index] = stream;
    }
    return stream;
  }

  public long nextId() {
    return nextId++;
  }

  /** Where an address is, in memory of any kind, with room for a number of bytes behind it. */
  public SimPlace place(String name, long address, long bytes) {
    SimPlace place = find(address);
    if (place == null) {
      throw SimRefusal.invalidValue(
          "%s: 0x%x (expected: an address of live memory%s)"
              .formatted(name, address, what(address)));
    }
    place.checkRoom(name, bytes);
    return place;
  }

  private String what(long address) {
    if (Addresses.isVirtual(address)) {
      return "; nothing is mapped there";
    }
    return wasFreed(address) ? "; this was freed" : "";
  }

  /** The block that starts at an address. */
  public SimBlock start(long address) {
    SimPlace place = place("address", address, 0);
    if (address != place.block().address) {
      throw SimRefusal.invalidValue(
          "address: 0x%x (expected: the start of %s)".formatted(address, place.block()));
    }
    return place.block();
  }

  public @Nullable SimPlace find(long address) {
    if (Addresses.isVirtual(address)) {
      VirtualBlock mapped = virtual.find(address);
      return mapped == null ? null : new SimPlace(mapped, address - mapped.address);
    }
    int index = Addresses.deviceOf(address);
    if (index < 0) {
      return hostMemory.find(address);
    }
    DeviceBlock block = index < devices.size() ? memories.get(index).find(address) : null;
    return block == null || address - block.address > block.byteSize
        ? null
        : new SimPlace(block, address - block.address);
  }

  public boolean wasFreed(long address) {
    int index = Addresses.deviceOf(address);
    return index >= 0 && index < devices.size() && memories.get(index).wasFreed(address);
  }

  /** The program freed a block: it is counted no longer. */
  public void retire(SimBlock block) {
    switch (block) {
      case DeviceBlock onDevice -> onDevice.memory.retire(onDevice);
      case HostBlock host -> hostMemory.retire(host);
      case VirtualBlock mapped -> throw mapped.notFreed();
    }
  }

  /** Ends a block. */
  public void discard(SimBlock block) {
    switch (block) {
      case DeviceBlock onDevice -> onDevice.memory.free(onDevice);
      case HostBlock host -> hostMemory.free(host);
      case VirtualBlock mapped -> throw mapped.notFreed();
    }
  }

  /** Work in stream order that uses some memory, and is not queued yet. */
  public SimOp work(SimStream stream, Runnable work, long costNanos, SimBlock... used) {
    hostNanos += SimCosts.SUBMIT;
    return SimOp.work(stream, work, costNanos, hostNanos).holding(HostBlock.managedOf(used));
  }

  /** Queues work, or records it as a node of a graph if the stream is captured. */
  public void submit(SimOp op, Supplier<NodeWork> node) {
    if (op.stream.capture == null) {
      queue(op);
    } else {
      capture(op.stream, node);
    }
  }

  /** Records work as a node of a graph. */
  public void capture(SimStream stream, Supplier<NodeWork> node) {
    CaptureBranch branch = CaptureBranch.capturing(stream);
    branch.capture.checkValid();
    branch.add(node.get(), stream.priority);
  }

  /** Queues an operation in a stream that is not captured. */
  @Override
  public SimOp queue(SimOp op) {
    captures.checkLegacy(op.stream);
    hidden.queued(op);
    scheduler.submit(op);
    return op;
  }

  @Override
  public void drop(SimOp op) {
    scheduler.drop(op);
  }

  @Override
  public SimStream lane(SimDevice device) {
    return new SimStream(device, nextId(), SimStream.NON_BLOCKING | SimStream.HIDDEN, 0);
  }

  /** Waits for an operation, and for its time. */
  public void await(@Nullable SimOp op) {
    if (op != null) {
      scheduler.await(op);
      spendUntil(op.endNanos());
      observed(op.stream, op.number());
    }
  }

  /** The host knows that a stream is done up to an operation. */
  public void observed(SimStream stream, long number) {
    pools.observed(stream, number);
    hidden.observed();
  }

  /**
   * Waits for all work that a device has now, without looking at whether it failed. What others
   * queue meanwhile is not waited for: there may be no end to it.
   */
  public void drain(SimDevice device) {
    List<SimOp> ends = device.pendingTails();
    spendUntil(device.lastEndNanos());
    for (SimOp end : ends) {
      scheduler.await(end);
      spendUntil(end.endNanos());
    }
    pools.observed(device);
    hidden.observed();
  }

  /** Waits for something outside of the driver, and lets queued work run meanwhile. */
  public void awaitOutside(BooleanSupplier condition) {
    scheduler.awaitOutside(condition);
  }

  public void drainAll() {
    devices.forEach(this::drain);
  }

  public void spend(long nanos) {
    hostNanos += nanos;
  }

  /** The host was busy until a moment of a stream. */
  public void spendUntil(long nanos) {
    hostNanos = Math.max(hostNanos, nanos);
  }

  @Override
  public long hostNanos() {
    return hostNanos;
  }

  public void close() {
    InsideKernel.checkOutside();
    scheduler.lock.lock();
    try {
      if (!closed) {
        closed = true;
        scheduler.close();
        memories.forEach(DeviceMemory::close);
        hostMemory.close();
        sharing.close();
        threadStreams.close();
      }
    } finally {
      scheduler.lock.unlock();
    }
  }
}
