package io.cuvette.ffm;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
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
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.call.Startup;
import io.cuvette.ffm.library.Libcuda;
import io.cuvette.ffm.part.FfmCaptures;
import io.cuvette.ffm.part.FfmDevices;
import io.cuvette.ffm.part.FfmEvents;
import io.cuvette.ffm.part.FfmGraphs;
import io.cuvette.ffm.part.FfmIpc;
import io.cuvette.ffm.part.FfmKernels;
import io.cuvette.ffm.part.FfmMath;
import io.cuvette.ffm.part.FfmMemory;
import io.cuvette.ffm.part.FfmNative;
import io.cuvette.ffm.part.FfmOrdered;
import io.cuvette.ffm.part.FfmPools;
import io.cuvette.ffm.part.FfmStreams;
import io.cuvette.ffm.part.FfmTransfers;
import io.cuvette.ffm.part.FfmVirtual;
import io.cuvette.ffm.part.HostFunctions;

/**
 * The NVIDIA driver: one object for each part of the seam, and the entry that all of them share.
 * Thread-safe.
 *
 * <p>After {@link #close} every call fails. Once the JVM is shutting down, calls that give
 * something back do nothing and the others fail: nothing goes to the driver any more.
 *
 * <p>With the first driver its parts are initialized and bind every function. Later, a virtual
 * thread that waits for the initialization of a class between two calls could go on under another
 * thread's context. So {@link Startup#init} comes first.
 */
final class FfmDriver implements CudaDriver {
  private final Entry entry = new Entry();
  private final FfmDevices devices = new FfmDevices(entry);
  private final FfmMemory memory = new FfmMemory(entry);
  private final FfmTransfers transfers = new FfmTransfers(entry);
  private final FfmPools pools = new FfmPools(entry);
  private final FfmOrdered ordered = new FfmOrdered(entry);
  private final FfmStreams streams = new FfmStreams(entry);
  private final FfmEvents events = new FfmEvents(entry);
  private final FfmCaptures captures = new FfmCaptures(entry);
  private final FfmGraphs graphs = new FfmGraphs(entry);
  private final FfmIpc sharing = new FfmIpc(entry);
  private final FfmVirtual virtual = new FfmVirtual(entry);
  private final FfmKernels kernels = new FfmKernels(entry);
  private final FfmMath math = new FfmMath(entry);
  private final FfmNative natives = new FfmNative(entry);

  private FfmDriver() {}

  /**
   * Opens the driver of the process, which was initialized.
   *
   * @throws CudaException if it is incomplete
   */
  static FfmDriver open() {
    FfmDriver driver = new FfmDriver();
    Libcuda.loaded().requireComplete(); // now that the parts have bound their functions
    Shutdown.watch(driver.entry);
    return driver;
  }

  @Override
  public String name() {
    return "ffm";
  }

  @Override
  public boolean isSimulated() {
    return false;
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

  /** Where its calls start. */
  Entry entry() {
    return entry;
  }

  @Override
  public void close() {
    if (entry.close()) {
      Shutdown.forget(entry);
      HostFunctions.forget(entry);
      entry.contexts().releaseAll();
    }
  }
}
