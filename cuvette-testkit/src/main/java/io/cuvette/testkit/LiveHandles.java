package io.cuvette.testkit;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.driver.IpcCalls;
import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.NativeCalls;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.driver.StreamCalls;
import io.cuvette.driver.UserObject;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.instrument.ForwardingCaptures;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.instrument.ForwardingGraphs;
import io.cuvette.instrument.ForwardingIpc;
import io.cuvette.instrument.ForwardingKernels;
import io.cuvette.instrument.ForwardingMemory;
import io.cuvette.instrument.ForwardingNatives;
import io.cuvette.instrument.ForwardingOrdered;
import io.cuvette.instrument.ForwardingPools;
import io.cuvette.instrument.ForwardingStreams;
import io.cuvette.instrument.ForwardingVirtual;
import java.lang.foreign.MemorySegment;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Tracks what was created through a driver and not freed, and where. What a call tried to free
 * counts as freed, whether it worked or not: the caller has not lost it. It does not close the
 * driver below. Thread-safe.
 */
final class LiveHandles extends ForwardingDriver {

  /** Those whose values are told apart. */
  private enum Kind {
    MEMORY,
    STREAM,
    EVENT,
    POOL,
    GRAPH,
    EXECUTABLE_GRAPH,
    USER_OBJECT,
    LIBRARY,
    ADDRESSES,
    MAPPING,
    ALLOCATION
  }

  private record Key(Kind kind, long handle) {}

  /** Where something live was made, with the call as the message. */
  static final class Made extends Throwable {
    private static final long serialVersionUID = 1L;

    private final transient Key key;
    private final long number;

    private Made(Key key, String call, long number) {
      super(call);
      this.key = key;
      this.number = number;
    }
  }

  /** The null stream, and the two that CUDA names. */
  private static final long BUILT_IN_STREAMS = 2;

  private final Map<Key, Made> live = new ConcurrentHashMap<>();
  private final AtomicLong count = new AtomicLong();
  final ExportedFiles exported = new ExportedFiles();

  /** By event, the stream it was last recorded on. */
  private final Map<Long, Long> recordedOn = new ConcurrentHashMap<>();

  LiveHandles(CudaDriver delegate) {
    super(delegate);
  }

  /** What is live now, in the order in which it was made. */
  List<Made> live() {
    return live.values().stream().sorted(Comparator.comparingLong(made -> made.number)).toList();
  }

  /** The stream that an event marks, if it is a live one or one that every device has. */
  OptionalLong liveStreamOf(Made event) {
    Long stream = recordedOn.get(event.key.handle);
    if (stream == null) {
      return OptionalLong.empty();
    }
    boolean isThere = stream <= BUILT_IN_STREAMS || live.containsKey(new Key(Kind.STREAM, stream));
    return isThere ? OptionalLong.of(stream) : OptionalLong.empty();
  }

  /** Whoever opened the driver closes it. */
  @Override
  public void close() {}

  private long made(Kind kind, long handle, String call) {
    if (handle != 0) {
      String text = "%s 0x%x of %s".formatted(kind, handle, call);
      Key key = new Key(kind, handle);
      live.put(key, new Made(key, text, count.getAndIncrement()));
    }
    return handle;
  }

  private MemorySegment made(MemorySegment memory, String call) {
    long _ = made(Kind.MEMORY, memory.address(), call);
    return memory;
  }

  /** Before the call: after it, the driver may have given the handle to another thread. */
  private void given(Kind kind, long handle) {
    live.remove(new Key(kind, handle));
  }

  private final MemoryCalls memoryCalls =
      new ForwardingMemory(delegate().memory()) {
        @Override
        public long memAlloc(int device, long bytes) {
          return made(Kind.MEMORY, super.memAlloc(device, bytes), "memAlloc(" + bytes + " bytes)");
        }

        @Override
        public MemorySegment memAllocManaged(int device, long bytes, int flags) {
          return made(
              super.memAllocManaged(device, bytes, flags), "memAllocManaged(" + bytes + " bytes)");
        }

        @Override
        public void memFree(int device, long address) {
          given(Kind.MEMORY, address);
          super.memFree(device, address);
        }

        @Override
        public MemorySegment memHostAlloc(int device, long bytes, int flags) {
          return made(
              super.memHostAlloc(device, bytes, flags), "memHostAlloc(" + bytes + " bytes)");
        }

        @Override
        public void memFreeHost(int device, long address) {
          given(Kind.MEMORY, address);
          super.memFreeHost(device, address);
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
          return made(
              Kind.MEMORY,
              super.memAllocAsync(device, bytes, stream),
              "memAllocAsync(" + bytes + " bytes)");
        }

        @Override
        public long memAllocFromPoolAsync(int device, long bytes, long pool, long stream) {
          return made(
              Kind.MEMORY,
              super.memAllocFromPoolAsync(device, bytes, pool, stream),
              "memAllocFromPoolAsync(" + bytes + " bytes)");
        }

        @Override
        public void memFreeAsync(int device, long address, long stream) {
          given(Kind.MEMORY, address);
          super.memFreeAsync(device, address, stream);
        }
      };

  @Override
  public OrderedCalls ordered() {
    return orderedCalls;
  }

  private final IpcCalls ipcCalls =
      new ForwardingIpc(exported.over(delegate().sharing())) {
        @Override
        public long memPoolImportPointer(long pool, byte[] handle) {
          return made(
              Kind.MEMORY, super.memPoolImportPointer(pool, handle), "memPoolImportPointer");
        }

        @Override
        public long ipcOpenMemHandle(int device, byte[] handle) {
          return made(Kind.MEMORY, super.ipcOpenMemHandle(device, handle), "ipcOpenMemHandle");
        }

        @Override
        public void ipcCloseMemHandle(int device, long address) {
          given(Kind.MEMORY, address);
          super.ipcCloseMemHandle(device, address);
        }

        @Override
        public long memPoolImportFromShareableHandle(int descriptor) {
          return made(
              Kind.POOL,
              super.memPoolImportFromShareableHandle(descriptor),
              "memPoolImportFromShareableHandle");
        }

        @Override
        public long ipcOpenEventHandle(int device, byte[] handle) {
          return made(Kind.EVENT, super.ipcOpenEventHandle(device, handle), "ipcOpenEventHandle");
        }
      };

  @Override
  public IpcCalls sharing() {
    return ipcCalls;
  }

  /** How often each handle of memory without an address is held. */
  private final Map<Long, Integer> holds = new ConcurrentHashMap<>();

  private final VirtualCalls virtualCalls =
      new ForwardingVirtual(exported.over(delegate().virtual())) {
        @Override
        public long memAddressReserve(long bytes, long alignment, long address) {
          return made(
              Kind.ADDRESSES,
              super.memAddressReserve(bytes, alignment, address),
              "memAddressReserve(" + bytes + " bytes)");
        }

        @Override
        public void memAddressFree(long address, long bytes) {
          given(Kind.ADDRESSES, address);
          super.memAddressFree(address, bytes);
        }

        @Override
        public long memCreate(long bytes, AllocationProperties properties) {
          return held(super.memCreate(bytes, properties), "memCreate(" + bytes + " bytes)");
        }

        @Override
        public long memRetainAllocationHandle(long address) {
          return held(super.memRetainAllocationHandle(address), "memRetainAllocationHandle");
        }

        @Override
        public long memImportFromShareableHandle(int descriptor) {
          return held(
              super.memImportFromShareableHandle(descriptor), "memImportFromShareableHandle");
        }

        private long held(long handle, String call) {
          int _ = holds.merge(handle, 1, Integer::sum);
          return made(Kind.ALLOCATION, handle, call);
        }

        @Override
        public void memRelease(long handle) {
          if (holds.computeIfPresent(handle, (_, count) -> count == 1 ? null : count - 1) == null) {
            given(Kind.ALLOCATION, handle);
          }
          super.memRelease(handle);
        }

        @Override
        public void memMap(long address, long bytes, long offset, long handle) {
          super.memMap(address, bytes, offset, handle);
          long _ = made(Kind.MAPPING, address, "memMap(" + bytes + " bytes)");
        }

        @Override
        public void memUnmap(long address, long bytes) {
          live.keySet()
              .removeIf(key ->
                  key.kind == Kind.MAPPING
                      && key.handle >= address
                      && key.handle < address + bytes);
          super.memUnmap(address, bytes);
        }
      };

  @Override
  public VirtualCalls virtual() {
    return virtualCalls;
  }

  private final KernelCalls kernelCalls =
      new ForwardingKernels(delegate().kernels()) {
        @Override
        public long libraryLoadData(byte[] image) {
          return made(Kind.LIBRARY, super.libraryLoadData(image), "libraryLoadData");
        }

        @Override
        public void libraryUnload(long library) {
          given(Kind.LIBRARY, library);
          super.libraryUnload(library);
        }
      };

  @Override
  public KernelCalls kernels() {
    return kernelCalls;
  }

  private final NativeCalls nativeCalls =
      new ForwardingNatives(delegate().natives()) {
        @Override
        public long callMalloc(long function, long parameter, long bytes, int device) {
          return made(
              Kind.MEMORY,
              super.callMalloc(function, parameter, bytes, device),
              "callMalloc(" + bytes + " bytes)");
        }

        @Override
        public void callFree(long function, long parameter, long address, int device) {
          given(Kind.MEMORY, address);
          super.callFree(function, parameter, address, device);
        }
      };

  @Override
  public NativeCalls natives() {
    return nativeCalls;
  }

  private final PoolCalls poolCalls =
      new ForwardingPools(delegate().pools()) {
        @Override
        public long memPoolCreate(PoolProperties properties) {
          return made(
              Kind.POOL, super.memPoolCreate(properties), "memPoolCreate(" + properties + ")");
        }

        @Override
        public void memPoolDestroy(long pool) {
          given(Kind.POOL, pool);
          super.memPoolDestroy(pool);
        }
      };

  @Override
  public PoolCalls pools() {
    return poolCalls;
  }

  private final StreamCalls streamCalls =
      new ForwardingStreams(delegate().streams()) {
        @Override
        public long streamCreateWithPriority(int device, int flags, int priority) {
          return made(
              Kind.STREAM,
              super.streamCreateWithPriority(device, flags, priority),
              "streamCreateWithPriority");
        }

        @Override
        public void streamDestroy(int device, long stream) {
          given(Kind.STREAM, stream);
          super.streamDestroy(device, stream);
        }
      };

  @Override
  public StreamCalls streams() {
    return streamCalls;
  }

  private final CaptureCalls captureCalls =
      new ForwardingCaptures(delegate().captures()) {
        @Override
        public long streamEndCapture(int device, long stream) {
          return made(Kind.GRAPH, super.streamEndCapture(device, stream), "streamEndCapture");
        }
      };

  @Override
  public CaptureCalls captures() {
    return captureCalls;
  }

  private final GraphCalls graphCalls =
      new ForwardingGraphs(delegate().graphs()) {
        @Override
        public long graphCreate() {
          return made(Kind.GRAPH, super.graphCreate(), "graphCreate");
        }

        @Override
        public long graphClone(long graph) {
          return made(Kind.GRAPH, super.graphClone(graph), "graphClone");
        }

        @Override
        public InstantiatedGraph graphInstantiateWithParams(
            int device, long graph, long flags, long uploadStream) {
          InstantiatedGraph made =
              super.graphInstantiateWithParams(device, graph, flags, uploadStream);
          if (made.executable() != 0) {
            long _ = made(Kind.EXECUTABLE_GRAPH, made.executable(), "graphInstantiateWithParams");
          }
          return made;
        }

        @Override
        public void graphDestroy(long graph) {
          given(Kind.GRAPH, graph);
          super.graphDestroy(graph);
        }

        @Override
        public void graphExecDestroy(long executable) {
          given(Kind.EXECUTABLE_GRAPH, executable);
          super.graphExecDestroy(executable);
        }

        // Its maker's until a graph has it.
        @Override
        public UserObject userObjectCreate() {
          UserObject object = super.userObjectCreate();
          long _ = made(Kind.USER_OBJECT, object.handle(), "userObjectCreate");
          return object;
        }

        @Override
        public void graphRetainUserObject(long graph, long object) {
          try {
            super.graphRetainUserObject(graph, object);
            given(Kind.USER_OBJECT, object);
          } catch (CudaException e) {
            if (e.status().losesContext()) {
              given(Kind.USER_OBJECT, object); // the graph may have it
            }
            throw e;
          }
        }

        @Override
        public void userObjectRelease(long object) {
          given(Kind.USER_OBJECT, object);
          super.userObjectRelease(object);
        }
      };

  @Override
  public GraphCalls graphs() {
    return graphCalls;
  }

  private final EventCalls eventCalls =
      new ForwardingEvents(delegate().events()) {
        @Override
        public long eventCreate(int device, int flags) {
          return made(Kind.EVENT, super.eventCreate(device, flags), "eventCreate");
        }

        @Override
        public void eventRecord(int device, long event, long stream) {
          super.eventRecord(device, event, stream);
          recordedOn.put(event, stream);
        }

        @Override
        public void eventDestroy(int device, long event) {
          given(Kind.EVENT, event);
          recordedOn.remove(event);
          super.eventDestroy(device, event);
        }
      };

  @Override
  public EventCalls events() {
    return eventCalls;
  }
}
