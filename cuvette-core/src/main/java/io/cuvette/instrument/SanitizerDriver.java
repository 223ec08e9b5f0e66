package io.cuvette.instrument;

import io.cuvette.driver.BlockListener;
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
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.sanitizer.LentBlocks;
import io.cuvette.instrument.internal.sanitizer.SanitizerCaptures;
import io.cuvette.instrument.internal.sanitizer.SanitizerCore;
import io.cuvette.instrument.internal.sanitizer.SanitizerDevices;
import io.cuvette.instrument.internal.sanitizer.SanitizerEvents;
import io.cuvette.instrument.internal.sanitizer.SanitizerGraphs;
import io.cuvette.instrument.internal.sanitizer.SanitizerIpc;
import io.cuvette.instrument.internal.sanitizer.SanitizerKernels;
import io.cuvette.instrument.internal.sanitizer.SanitizerMath;
import io.cuvette.instrument.internal.sanitizer.SanitizerMemory;
import io.cuvette.instrument.internal.sanitizer.SanitizerNatives;
import io.cuvette.instrument.internal.sanitizer.SanitizerOrdered;
import io.cuvette.instrument.internal.sanitizer.SanitizerPools;
import io.cuvette.instrument.internal.sanitizer.SanitizerStreams;
import io.cuvette.instrument.internal.sanitizer.SanitizerTransfers;
import io.cuvette.instrument.internal.sanitizer.SanitizerVirtual;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * A driver that watches how memory, streams and events are used and reports mistakes: see {@link
 * Misuse}. Thread-safe; reports are made by the thread that makes the mistake, with no lock held.
 *
 * <p>A call is checked before it is forwarded, so a consumer that throws keeps the mistake from the
 * driver; a consumer that returns lets it through. What is right is judged by what the program has
 * made sure of, not by what happened to be finished: work of two streams is ordered by events,
 * waits, synchronisation and the rules of the default stream alone. A query that answered "done" is
 * a synchronisation. The work of a capture is checked for live memory and handles but not for
 * order, since it does not run.
 *
 * <p>Memory of the host that a copy reads must be the same when the copy is known to be done as
 * when it was queued; a program that learns it without the driver, from what later work wrote, must
 * query the stream or event first. Copies of this library on the host must not meet work that uses
 * the same bytes.
 *
 * <p>The pools of this library report their blocks: a block is freed when its buffer is closed, and
 * its content is undefined when it is lent again. Bytes of device memory must be written before
 * they are copied to the host; {@link io.cuvette.Buffer#recordUse} declares that work which is not
 * seen may write them.
 *
 * <p>Not seen: memory that kernels reach otherwise than by their arguments, and what else the host
 * does with memory it can see.
 *
 * <p>Memory that another pool gives out of a larger block looks live to the driver at all times; a
 * pool that calls {@link #blockAllocated} and {@link #blockFreed} has its blocks checked too.
 */
public final class SanitizerDriver extends ForwardingDriver {
  private final SanitizerCore core;
  private final SanitizerDevices devices;
  private final SanitizerMemory memory;
  private final SanitizerTransfers transfers;
  private final SanitizerPools pools;
  private final SanitizerOrdered ordered;
  private final SanitizerStreams streams;
  private final SanitizerEvents events;
  private final SanitizerCaptures captures;
  private final SanitizerGraphs graphs;
  private final SanitizerIpc sharing;
  private final SanitizerVirtual virtual;
  private final SanitizerKernels kernels;
  private final SanitizerMath math;
  private final SanitizerNatives natives;
  private final LentBlocks lent;

  private SanitizerDriver(CudaDriver target, SanitizerCore core) {
    super(target);
    this.core = core;
    this.devices = new SanitizerDevices(target, core);
    this.memory = new SanitizerMemory(target, core);
    this.transfers = new SanitizerTransfers(target, core);
    this.pools = new SanitizerPools(target, core);
    this.ordered = new SanitizerOrdered(target, core);
    this.streams = new SanitizerStreams(target, core);
    this.events = new SanitizerEvents(target, core);
    this.captures = new SanitizerCaptures(target, core);
    this.graphs = new SanitizerGraphs(target, core);
    this.sharing = new SanitizerIpc(target, core);
    this.virtual = new SanitizerVirtual(target, core);
    this.kernels = new SanitizerKernels(target, core);
    this.math = new SanitizerMath(target, core);
    this.natives = new SanitizerNatives(target, core);
    this.lent = new LentBlocks(core);
  }

  /**
   * Throws a {@link SanitizerException} for each mistake.
   *
   * @param target the driver whose use is checked
   * @param ignored mistakes that are not reported, such as {@link Misuse#UNKNOWN_HANDLE} where
   *     streams come from another library
   * @return the driver, which closes the target
   */
  public static SanitizerDriver throwing(CudaDriver target, Misuse... ignored) {
    Objects.requireNonNull(target, "target");
    Objects.requireNonNull(ignored, "ignored");
    return reporting(
        target,
        report -> {
          throw new SanitizerException(report);
        },
        ignored);
  }

  /**
   * Passes each mistake to a consumer, and forwards the call if the consumer returns.
   *
   * @param target the driver whose use is checked
   * @param consumer receives each mistake, on the thread that makes it
   * @param ignored mistakes that are not reported
   * @return the driver, which closes the target
   */
  public static SanitizerDriver reporting(
      CudaDriver target, Consumer<? super SanitizerReport> consumer, Misuse... ignored) {
    Objects.requireNonNull(target, "target");
    Objects.requireNonNull(ignored, "ignored");
    return new SanitizerDriver(target, new SanitizerCore(consumer, ignored));
  }

  /**
   * {@return the memory and handles that were created and not freed until now, with their places}
   */
  public List<SanitizerReport> leaks() {
    return core.leaks();
  }

  @Override
  public BlockListener blockListener() {
    return lent;
  }

  /** {@code sanitizer(NAME)}. */
  @Override
  public String name() {
    return "sanitizer(" + delegate().name() + ")";
  }

  /** Reports leaks, and closes the other driver in any case. */
  @Override
  public void close() {
    try {
      core.close();
    } finally {
      super.close();
    }
  }

  /**
   * Notes that a pool lends a part of a block it allocated. From the first part on, the block may
   * be used through its live parts alone.
   *
   * @param address the first address of the part
   * @param bytes the size of the part in bytes
   */
  public void blockAllocated(long address, long bytes) {
    CallTrace site = CallTrace.of("blockAllocated", "address", address, "bytes", bytes);
    core.check(findings -> core.memory.parts.partAllocated(address, bytes, site, findings));
  }

  /**
   * Notes that a part came back to its pool, to be used next in order of a stream: other streams'
   * work with it must come before.
   *
   * @param device the device, from 0
   * @param address the first address of the part
   * @param stream the handle of the stream
   */
  public void blockFreed(int device, long address, long stream) {
    CallTrace site =
        CallTrace.of("blockFreed", "device", device, "address", address, "stream", stream);
    core.check(findings -> {
      Lane lane = core.streams.lane(device, stream, site, findings);
      if (lane != null) {
        core.memory.parts.partFreed(address, lane, site, findings);
      }
    });
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
}
