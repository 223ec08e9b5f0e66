package io.cuvette.sim;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.DeviceCalls;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.IpcCalls;
import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.MathCalls;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.NativeCalls;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.StreamCalls;
import io.cuvette.driver.TransferCalls;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.sim.internal.allocation.SimIpcCalls;
import io.cuvette.sim.internal.allocation.SimMemoryCalls;
import io.cuvette.sim.internal.allocation.SimOrderedCalls;
import io.cuvette.sim.internal.allocation.SimPoolCalls;
import io.cuvette.sim.internal.allocation.SimVirtualCalls;
import io.cuvette.sim.internal.calls.SimCaptureCalls;
import io.cuvette.sim.internal.calls.SimDeviceCalls;
import io.cuvette.sim.internal.calls.SimEventCalls;
import io.cuvette.sim.internal.calls.SimGraphCalls;
import io.cuvette.sim.internal.calls.SimKernelCalls;
import io.cuvette.sim.internal.calls.SimMathCalls;
import io.cuvette.sim.internal.calls.SimNativeCalls;
import io.cuvette.sim.internal.calls.SimReport;
import io.cuvette.sim.internal.calls.SimStreamCalls;
import io.cuvette.sim.internal.calls.SimTransferCalls;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.memory.DeviceMemory;
import io.cuvette.sim.internal.queue.SimDevice;
import java.util.Objects;

/**
 * A CUDA driver with simulated devices, for programs and tests without a GPU.
 *
 * <ul>
 *   <li>Memory that was never written reads as bytes of 0xA5, and costs nothing on a device. Device
 *       memory is counted in units of 512 bytes; its addresses are no host addresses. What is
 *       written is kept in the heap of the JVM; memory of the host is there when it is allocated,
 *       in a temporary file in /dev/shm or the directory for temporary files, or in {@code
 *       -Dcuvette.sim.dir}.
 *   <li>Queued work runs at one of the times and in one of the orders that the streams allow,
 *       chosen by the seed: at once, when a thread waits, or anything between. A query runs
 *       nothing. Work that no thread waits for goes on after 0.1 s on a thread of the driver; host
 *       functions, and the records of events that were exported to or opened from another process,
 *       earlier.
 *   <li>Work that touches freed memory fails the device for good with ILLEGAL_ADDRESS, as on a GPU;
 *       what a call can see itself is INVALID_VALUE.
 *   <li>An allocation of a pool has an address of its own, which is not given out again soon, while
 *       the place that it takes in the pool is one that the stream order and the reuse policies
 *       allow. A pool grows in steps of 32 MiB, of 2 MiB on a device of less than 1 GiB, and gives
 *       whole steps back. What a pool reserved is not free, even if it is only cached.
 *   <li>What is shared with other processes lies in files without names that all of them map, and
 *       needs the descriptors of {@link io.cuvette.driver.DescriptorCalls}. Memory that another
 *       process made stays readable until it is freed here, whatever becomes of that process; a
 *       record that it did not finish counts as done once it ended. The order of what waits for
 *       another process depends on that process, not on the seed alone.
 *   <li>Times are simulated: what operations and calls cost was measured on an H200.
 * </ul>
 *
 * <p>Thread-safe, from platform and virtual threads alike. With several threads the order depends
 * on how they interleave too.
 */
public final class SimulatedDriver implements CudaDriver {
  final SimMachine machine;
  private final SimDeviceCalls devices;
  private final SimMemoryCalls memory;
  private final SimTransferCalls transfers;
  private final SimPoolCalls pools;
  private final SimOrderedCalls ordered;
  private final SimEventCalls events;
  private final SimStreamCalls streams;
  private final SimCaptureCalls captures;
  private final SimGraphCalls graphs;
  private final SimIpcCalls sharing;
  private final SimVirtualCalls virtual;
  private final SimKernelCalls kernels;
  private final SimMathCalls math;
  private final SimNativeCalls natives;

  private SimulatedDriver(SimMachine machine) {
    this.machine = machine;
    this.devices = new SimDeviceCalls(machine);
    this.memory = new SimMemoryCalls(machine);
    this.transfers = new SimTransferCalls(machine);
    this.pools = new SimPoolCalls(machine);
    this.ordered = new SimOrderedCalls(machine);
    this.events = new SimEventCalls(machine);
    this.streams = new SimStreamCalls(machine, events);
    this.captures = new SimCaptureCalls(machine);
    this.kernels = new SimKernelCalls(machine);
    this.graphs = new SimGraphCalls(machine, transfers, kernels, events);
    this.sharing = new SimIpcCalls(machine, events);
    this.virtual = new SimVirtualCalls(machine);
    this.math = new SimMathCalls(machine, kernels);
    this.natives = new SimNativeCalls(machine);
  }

  /**
   * Opens a driver; {@link #close} frees its memory.
   *
   * @param options the settings of the device
   * @return the driver, which the caller closes
   */
  public static SimulatedDriver open(SimulatedOptions options) {
    Objects.requireNonNull(options, "options");
    return new SimulatedDriver(new SimMachine(options));
  }

  @Override
  public String name() {
    return "sim";
  }

  @Override
  public boolean isSimulated() {
    return true;
  }

  @Override
  public DeviceCalls devices() {
    return devices;
  }

  @Override
  public MemoryCalls memory() {
    return memory;
  }

  @Override
  public TransferCalls transfers() {
    return transfers;
  }

  @Override
  public PoolCalls pools() {
    return pools;
  }

  @Override
  public OrderedCalls ordered() {
    return ordered;
  }

  @Override
  public StreamCalls streams() {
    return streams;
  }

  @Override
  public EventCalls events() {
    return events;
  }

  @Override
  public CaptureCalls captures() {
    return captures;
  }

  @Override
  public GraphCalls graphs() {
    return graphs;
  }

  @Override
  public IpcCalls sharing() {
    return sharing;
  }

  @Override
  public VirtualCalls virtual() {
    return virtual;
  }

  @Override
  public KernelCalls kernels() {
    return kernels;
  }

  @Override
  public MathCalls math() {
    return math;
  }

  @Override
  public NativeCalls natives() {
    return natives;
  }

  /** {@return the settings of the simulated devices} */
  public SimulatedOptions options() {
    return machine.options;
  }

  /**
   * Registers a function to stand for one in C, with an address that {@link NativeCalls#callMalloc}
   * accepts.
   *
   * @param function the function, called by the driver
   * @return the address
   */
  public long registerMalloc(MallocFunction function) {
    Objects.requireNonNull(function, "function");
    return machine.peek(() -> natives.mallocs.add(function));
  }

  /**
   * Registers a function to stand for one in C, with an address that {@link NativeCalls#callFree}
   * accepts.
   *
   * @param function the function, called by the driver
   * @return the address
   */
  public long registerFree(FreeFunction function) {
    Objects.requireNonNull(function, "function");
    return machine.peek(() -> natives.frees.add(function));
  }

  /** {@return the number of driver calls so far, failed ones included} */
  public long driverCalls() {
    return machine.calls();
  }

  /**
   * {@return the number of live allocations of any kind} One that the program freed in stream order
   * is not live, even if the stream did not get there yet.
   */
  public int liveAllocations() {
    return machine.peek(() ->
        machine.hostMemory.liveBlocks()
            + machine.memories().stream().mapToInt(DeviceMemory::liveBlocks).sum());
  }

  /**
   * {@return the bytes allocated on a device, in units of 512 each; managed memory counts for the
   * host}
   *
   * @param device the device, from 0
   * @throws IllegalArgumentException if there is no such device
   */
  public long liveBytes(int device) {
    return machine.peek(() -> machine.memory(device(device)).usedBytes());
  }

  private SimDevice device(int index) {
    int last = machine.devices().size() - 1;
    if (index < 0 || index > last) {
      throw new IllegalArgumentException("device: %d (expected: 0 to %d)".formatted(index, last));
    }
    return machine.devices().get(index);
  }

  /** {@return the bytes of live page-locked and managed memory} */
  public long liveHostBytes() {
    return machine.peek(machine.hostMemory::usedBytes);
  }

  /** {@return the number of streams created and not destroyed} */
  public int liveStreams() {
    return machine.peek(machine.streams::size);
  }

  /** {@return the number of events created and not destroyed} */
  public int liveEvents() {
    return machine.peek(events.all::size);
  }

  /**
   * {@return the number of graphs created and not destroyed, including one that is being captured}
   */
  public int liveGraphs() {
    return machine.peek(machine.graphs::live);
  }

  /** {@return the number of executable graphs not destroyed} */
  public int liveExecutables() {
    return machine.peek(graphs.executables::size);
  }

  /** {@return the number of libraries of kernels loaded and not unloaded} */
  public int liveLibraries() {
    return machine.peek(kernels.libraries::size);
  }

  /** {@return the number of handles of libraries created and not destroyed} */
  public int liveMathHandles() {
    return machine.peek(math.handles::size);
  }

  /** {@return the number of user objects to which references are held} */
  public int liveUserObjects() {
    return machine.peek(graphs.userObjects::size);
  }

  /**
   * {@return the number of memory pools created and not destroyed, without the default pools of
   * devices}
   */
  public int livePools() {
    return machine.peek(machine.pools::live);
  }

  /**
   * {@return the number of files shared with other processes that this driver has open: of pools
   * that can be exported or were imported, of allocations and events that were exported or opened}
   */
  public int liveSharedFiles() {
    return machine.peek(machine.sharing::files);
  }

  /** {@return the live objects, one a line; empty if there are none} */
  public String report() {
    return machine.peek(
        () -> SimReport.of(machine, events, graphs, kernels, math, virtual.report()));
  }

  /**
   * {@return the simulated time of a device in nanoseconds from the start of the driver: what the
   * host has spent so far, or when the finished work of the device ended if that is later}
   *
   * @param device the device, from 0
   */
  public long simulatedNanos(int device) {
    return machine.peek(() -> Math.max(machine.hostNanos(), device(device).lastEndNanos()));
  }

  @Override
  public void close() {
    machine.close();
  }
}
