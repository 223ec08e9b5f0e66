package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.IpcCalls;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.instrument.ForwardingIpc;
import io.cuvette.instrument.ForwardingMemory;
import io.cuvette.instrument.ForwardingOrdered;
import io.cuvette.instrument.ForwardingPools;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongUnaryOperator;
import java.util.function.UnaryOperator;

/**
 * A driver with the defect that imports are guarded against: memory is mapped once for its bytes
 * however often it is imported, and the first free ends it for all. It notes each call that a
 * correct user of it does not make. Thread-safe.
 */
final class FakeSharing extends ForwardingDriver {
  static final long ALLOCATION_BYTES = 4096;

  final List<String> wrong = Collections.synchronizedList(new ArrayList<>());
  final AtomicInteger imports = new AtomicInteger();
  final AtomicInteger frees = new AtomicInteger();
  final AtomicInteger poolsOpen = new AtomicInteger();
  final Set<Long> pools = ConcurrentHashMap.newKeySet();
  private final Map<ByteBuffer, Long> mapped = new ConcurrentHashMap<>();
  private final Map<Long, ByteBuffer> handles = new ConcurrentHashMap<>();
  private final Map<Long, Integer> openings = new ConcurrentHashMap<>();
  private final Map<ByteBuffer, AtomicInteger> inside = new ConcurrentHashMap<>();

  /** The next calls of a name that fail. */
  final Map<String, CudaStatus> failing = new ConcurrentHashMap<>();

  /** Whether a pool can be imported only while no other is, as a process can with a host pool. */
  volatile boolean importsOnce;

  /** How much of a handle the driver reads. */
  volatile int bytesRead = IpcCalls.HANDLE_BYTES;

  /** Where in an allocation the driver says that it is; a peer's handle decides. */
  volatile long shift;

  /** Where the driver says that it has mapped memory of a pool which it mapped at an address. */
  volatile LongUnaryOperator places = address -> address;

  /** The device that pools and their memory are of. */
  volatile int poolDevice;

  /** How much larger the driver says that allocations are; a peer's last handle decides. */
  volatile long growth;

  /** Whether the next import of memory that is mapped already maps it at one more address. */
  volatile boolean mapsAgain;

  /** Whether all questions about events fail. */
  volatile boolean saysNothingOfEvents;

  /** What tests do between the answer to a question about an event and its end. */
  volatile Runnable answered = () -> {};

  /** What tests do in the middle of a call. */
  volatile UnaryOperator<String> during = call -> call;

  FakeSharing(CudaDriver delegate) {
    super(delegate);
  }

  boolean isMapped(long address) {
    return handles.containsKey(address);
  }

  int mappings() {
    return handles.size();
  }

  private final IpcCalls ipcCalls =
      new ForwardingIpc(delegate().sharing()) {
        @Override
        public long memPoolImportFromShareableHandle(int descriptor) {
          during.apply("importPool");
          fail("memPoolImportFromShareableHandle");
          if (importsOnce && !poolsOpen.compareAndSet(0, 1)) {
            throw new CudaException(
                CudaStatus.ALREADY_MAPPED, "memPoolImportFromShareableHandle", "");
          }
          long pool = pools().memPoolCreate(new PoolProperties(1, 0, 1, poolDevice, 0));
          pools.add(pool);
          if (!importsOnce) {
            poolsOpen.incrementAndGet();
          }
          return pool;
        }

        @Override
        public long memPoolImportPointer(long pool, byte[] handle) {
          ByteBuffer key = ByteBuffer.wrap(Arrays.copyOf(handle, bytesRead));
          enter(key, "import");
          try {
            during.apply("import");
            fail("memPoolImportPointer");
            if (handle[0] == 0) {
              throw new CudaException(
                  CudaStatus.INVALID_VALUE, "cuMemPoolImportPointer", "foreign");
            }
            imports.incrementAndGet();
            if (mapsAgain) {
              mapped.remove(key);
            }
            long address =
                mapped.computeIfAbsent(
                    key,
                    made -> {
                      long place = ordered().memAllocAsync(poolDevice, ALLOCATION_BYTES, 0);
                      handles.put(place, made);
                      return place;
                    });
            during.apply("imported");
            return places.applyAsLong(address) + shift;
          } finally {
            leave(key);
          }
        }

        @Override
        public long ipcOpenMemHandle(int device, byte[] handle) {
          if (handle.length != IpcCalls.HANDLE_BYTES) {
            wrong.add("open of " + handle.length + " bytes");
          }
          imports.incrementAndGet();
          ByteBuffer key =
              ByteBuffer.allocate(1 + bytesRead)
                  .put((byte) device)
                  .put(handle, 0, bytesRead)
                  .flip();
          long address =
              mapped.computeIfAbsent(key, _ -> memory().memAlloc(device, ALLOCATION_BYTES));
          if (openings.merge(address, 1, Integer::sum) > 1 && bytesRead == IpcCalls.HANDLE_BYTES) {
            wrong.add("opened twice");
          }
          handles.put(address, key);
          return address;
        }

        @Override
        public void ipcCloseMemHandle(int device, long address) {
          during.apply("close");
          fail("ipcCloseMemHandle");
          ByteBuffer key = handles.get(address);
          if (key == null) {
            wrong.add("close of an unknown address");
            return;
          }
          if (openings.merge(address, -1, Integer::sum) > 0) {
            return;
          }
          frees.incrementAndGet();
          handles.remove(address);
          mapped.remove(key);
          delegate().memory().memFree(device, address);
        }
      };

  @Override
  public IpcCalls sharing() {
    return ipcCalls;
  }

  private final PoolCalls poolCalls =
      new ForwardingPools(delegate().pools()) {
        @Override
        public void memPoolDestroy(long pool) {
          if (pools.remove(pool)) {
            poolsOpen.decrementAndGet();
          }
          super.memPoolDestroy(pool);
          during.apply("destroyed");
        }
      };

  @Override
  public PoolCalls pools() {
    return poolCalls;
  }

  private final OrderedCalls orderedCalls =
      new ForwardingOrdered(delegate().ordered()) {
        @Override
        public void memFreeAsync(int device, long address, long stream) {
          free(address, "memFreeAsync", () -> super.memFreeAsync(device, address, stream));
        }
      };

  @Override
  public OrderedCalls ordered() {
    return orderedCalls;
  }

  private final MemoryCalls memoryCalls =
      new ForwardingMemory(delegate().memory()) {
        @Override
        public void memFree(int device, long address) {
          free(address, "memFree", () -> super.memFree(device, address));
        }

        @Override
        public long pointerGetAttribute(int device, int attribute, long address) {
          fail("pointerGetAttribute " + attribute);
          if (attribute != PointerAttribute.RANGE_SIZE) {
            return super.pointerGetAttribute(device, attribute, address);
          }
          during.apply("size");
          return super.pointerGetAttribute(device, attribute, address) + growth;
        }
      };

  @Override
  public MemoryCalls memory() {
    return memoryCalls;
  }

  private final EventCalls eventCalls =
      new ForwardingEvents(delegate().events()) {
        @Override
        public void eventRecord(int device, long event, long stream) {
          fail("eventRecord");
          super.eventRecord(device, event, stream);
        }

        @Override
        public void eventSynchronize(int device, long event) {
          during.apply("wait");
          super.eventSynchronize(device, event);
        }

        @Override
        public boolean eventQuery(int device, long event) {
          fail("eventQuery");
          if (saysNothingOfEvents) {
            throw new CudaException(CudaStatus.UNKNOWN, "eventQuery", "made to fail");
          }
          boolean isDone = super.eventQuery(device, event);
          answered.run();
          return isDone;
        }
      };

  @Override
  public EventCalls events() {
    return eventCalls;
  }

  private void free(long address, String call, Runnable free) {
    ByteBuffer key = handles.get(address);
    if (key == null) {
      free.run();
      return;
    }
    enter(key, "free");
    try {
      during.apply("free");
      fail(call);
      frees.incrementAndGet();
      mapped.remove(key);
      handles.remove(address);
      free.run();
    } finally {
      leave(key);
    }
  }

  private void fail(String call) {
    CudaStatus status = failing.remove(call);
    if (status != null) {
      throw new CudaException(status, call, "made to fail");
    }
  }

  private void enter(ByteBuffer key, String call) {
    int before = inside.computeIfAbsent(key, k -> new AtomicInteger()).getAndIncrement();
    if (before != 0) {
      wrong.add(call + " while another call is about the same memory");
    }
  }

  private void leave(ByteBuffer key) {
    inside.get(key).decrementAndGet();
  }
}
