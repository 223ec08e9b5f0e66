package io.cuvette.testkit.support;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.driver.StreamCalls;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.instrument.ForwardingGraphs;
import io.cuvette.instrument.ForwardingKernels;
import io.cuvette.instrument.ForwardingMemory;
import io.cuvette.instrument.ForwardingOrdered;
import io.cuvette.instrument.ForwardingPools;
import io.cuvette.instrument.ForwardingStreams;
import io.cuvette.instrument.ForwardingVirtual;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Gives addresses for memory and handles for events, and counts them, without need of the Java
 * heap. Each must come back to its device. Streams are done or busy as a test sets. Thread-safe.
 */
public final class HeaplessDriver extends ForwardingDriver {
  private static final int MOST = 1 << 8;
  private static final int SEGMENT = 8192;
  private static final int SPACING = 1 << 30;

  /** Made before there is no heap. */
  private static final CudaException NOT_VALID =
      new CudaException(CudaStatus.INVALID_VALUE.code(), "a call of virtual memory");

  private final long[] memory = new long[MOST];
  private final long[] events = new long[MOST];
  private final long[] pools = new long[MOST];
  private final long[] ranges = new long[MOST];
  private final long[] handles = new long[MOST];
  private final long[] mapped = new long[MOST];
  private final long[] graphs = new long[MOST];
  private final long[] libraries = new long[MOST];
  private final MemorySegment[] segments = new MemorySegment[MOST];
  private int nextSegment;
  private long nextHandle = 1L << 40;
  private long nextWindow = 1L << 50;
  private volatile boolean busy;

  /** Over another driver, which has all else. */
  public HeaplessDriver(CudaDriver delegate) {
    super(delegate);
    MemorySegment all = Arena.ofAuto().allocate((long) MOST * SEGMENT);
    for (int i = 0; i < MOST; i++) {
      segments[i] = all.asSlice((long) i * SEGMENT, SEGMENT);
    }
  }

  /** Lets the work of all streams go on for ever, or be done. */
  public void setBusy(boolean now) {
    busy = now;
  }

  /** How many pieces of memory are out. */
  public int liveMemory() {
    return count(memory);
  }

  /** How many handles of memory that can be mapped, and pieces of it that are. */
  public int livePieces() {
    return count(handles) + count(mapped);
  }

  /** How many ranges of addresses are reserved. */
  public int liveRanges() {
    return count(ranges);
  }

  /** How many pools were made and not destroyed. */
  public int livePools() {
    return count(pools);
  }

  /** How many events there are. */
  public int liveEvents() {
    return count(events);
  }

  /** How many graphs there are, and executable ones. */
  public int liveGraphs() {
    return count(graphs);
  }

  /** How many libraries of kernels are loaded. */
  public int liveLibraries() {
    return count(libraries);
  }

  private synchronized int count(long[] all) {
    int count = 0;
    for (long each : all) {
      count += each != 0 ? 1 : 0;
    }
    return count;
  }

  private synchronized long put(long[] all, long given) {
    int i = 0;
    while (all[i] != 0) {
      i++;
    }
    all[i] = given;
    return given;
  }

  private long put(long[] all) {
    return put(all, next());
  }

  /** With the device, the first or the second one, in the last bit. */
  private long put(int device, long[] all, long given) {
    return put(all, given | device) & ~1;
  }

  private long put(int device, long[] all) {
    return put(device, all, next());
  }

  private synchronized long next() {
    nextHandle += SPACING;
    return nextHandle;
  }

  private synchronized long nextWindow(long bytes) {
    nextWindow += bytes;
    return nextWindow - bytes;
  }

  private synchronized void remove(long[] all, long given) {
    for (int i = 0; i < MOST; i++) {
      if (all[i] == given) {
        all[i] = 0;
        return;
      }
    }
    throw new AssertionError("given back twice, or to another device");
  }

  private void remove(int device, long[] all, long given) {
    remove(all, given | device);
  }

  private synchronized int removeAll(long[] all, long from, long to) {
    int count = 0;
    for (int i = 0; i < MOST; i++) {
      if (all[i] >= from && all[i] < to) {
        all[i] = 0;
        count++;
      }
    }
    return count;
  }

  /** Whether a piece of memory begins at an address. */
  private synchronized boolean isMapped(long address) {
    for (long each : mapped) {
      if (each == address) {
        return true;
      }
    }
    return false;
  }

  private synchronized MemorySegment segment(int device) {
    MemorySegment segment = segments[nextSegment++ % MOST];
    put(device, memory, segment.address());
    return segment;
  }

  private final MemoryCalls memoryCalls =
      new ForwardingMemory(delegate().memory()) {
        @Override
        public long memAlloc(int device, long bytes) {
          return put(device, memory);
        }

        @Override
        public void memFree(int device, long address) {
          remove(device, memory, address);
        }

        @Override
        public MemorySegment memAllocManaged(int device, long bytes, int flags) {
          return segment(device);
        }

        @Override
        public MemorySegment memHostAlloc(int device, long bytes, int flags) {
          return segment(device);
        }

        @Override
        public void memFreeHost(int device, long address) {
          remove(device, memory, address);
        }
      };

  @Override
  public MemoryCalls memory() {
    return memoryCalls;
  }

  private final OrderedCalls orderedCalls =
      new ForwardingOrdered(delegate().ordered()) {
        @Override
        public long memAllocAsync(int device, long bytes, long stream) {
          return put(device, memory);
        }

        @Override
        public long memAllocFromPoolAsync(int device, long bytes, long pool, long stream) {
          return put(device, memory);
        }

        @Override
        public void memFreeAsync(int device, long address, long stream) {
          remove(device, memory, address);
        }
      };

  @Override
  public OrderedCalls ordered() {
    return orderedCalls;
  }

  private final PoolCalls poolCalls =
      new ForwardingPools(delegate().pools()) {
        @Override
        public long memPoolCreate(PoolProperties properties) {
          return put(pools);
        }

        @Override
        public void memPoolDestroy(long pool) {
          remove(pools, pool);
        }

        @Override
        public void memPoolSetAttribute(long pool, int attribute, long value) {}

        @Override
        public long memPoolGetAttribute(long pool, int attribute) {
          return 0;
        }

        @Override
        public int memPoolGetAccess(long pool, int locationType, int locationId) {
          return 0;
        }

        @Override
        public void memPoolTrimTo(long pool, long bytesToKeep) {}
      };

  @Override
  public PoolCalls pools() {
    return poolCalls;
  }

  private final VirtualCalls virtualCalls =
      new ForwardingVirtual(delegate().virtual()) {
        @Override
        public long memAddressReserve(long bytes, long alignment, long address) {
          return put(ranges, nextWindow(bytes));
        }

        @Override
        public void memAddressFree(long address, long bytes) {
          remove(ranges, address);
        }

        @Override
        public long memCreate(long bytes, AllocationProperties properties) {
          return put(handles);
        }

        @Override
        public void memRelease(long handle) {
          remove(handles, handle);
        }

        @Override
        public void memMap(long address, long bytes, long offset, long handle) {
          if (isMapped(address)) {
            throw NOT_VALID;
          }
          put(mapped, address);
        }

        @Override
        public void memUnmap(long address, long bytes) {
          if (removeAll(mapped, address, address + bytes) == 0) {
            throw NOT_VALID;
          }
        }

        @Override
        public void memSetAccess(long address, long bytes, int type, int[] ids, int... access) {}

        @Override
        public int memGetAccess(long address, int type, int id) {
          if (!isMapped(address)) {
            throw NOT_VALID;
          }
          return MemAccessFlags.READ_WRITE;
        }
      };

  @Override
  public VirtualCalls virtual() {
    return virtualCalls;
  }

  private final EventCalls eventCalls =
      new ForwardingEvents(delegate().events()) {
        @Override
        public long eventCreate(int device, int flags) {
          return put(device, events);
        }

        @Override
        public void eventDestroy(int device, long event) {
          remove(device, events, event);
        }

        @Override
        public void eventRecord(int device, long event, long stream) {}

        @Override
        public boolean eventQuery(int device, long event) {
          return !busy;
        }

        @Override
        public void eventSynchronize(int device, long event) {}
      };

  @Override
  public EventCalls events() {
    return eventCalls;
  }

  private final StreamCalls streamCalls =
      new ForwardingStreams(delegate().streams()) {
        @Override
        public boolean streamQuery(int device, long stream) {
          return !busy;
        }

        @Override
        public void streamSynchronize(int device, long stream) {}

        @Override
        public void streamWaitEvent(int device, long stream, long event) {}
      };

  @Override
  public StreamCalls streams() {
    return streamCalls;
  }

  private final GraphCalls graphCalls =
      new ForwardingGraphs(delegate().graphs()) {
        @Override
        public long graphCreate() {
          return put(graphs);
        }

        @Override
        public void graphDestroy(long graph) {
          remove(graphs, graph);
        }

        @Override
        public InstantiatedGraph graphInstantiateWithParams(
            int device, long graph, long flags, long uploadStream) {
          InstantiatedGraph made = new InstantiatedGraph(next(), 0, 0);
          put(graphs, made.executable());
          return made;
        }

        @Override
        public void graphExecDestroy(long executable) {
          remove(graphs, executable);
        }
      };

  @Override
  public GraphCalls graphs() {
    return graphCalls;
  }

  private final KernelCalls kernelCalls =
      new ForwardingKernels(delegate().kernels()) {
        @Override
        public long libraryLoadData(byte[] image) {
          return put(libraries);
        }

        @Override
        public void libraryUnload(long library) {
          remove(libraries, library);
        }
      };

  @Override
  public KernelCalls kernels() {
    return kernelCalls;
  }
}
