package io.cuvette.instrument;

import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.NvtxCalls;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A driver that shows tools which parts of device memory pools have lent, by NVTX: so Compute
 * Sanitizer finds what uses memory of a {@code MemoryPool} after its buffer was closed, though the
 * memory itself is allocated still. Thread-safe.
 *
 * <p>An allocation becomes a heap of the tool when a pool lends its first block of it, and each
 * block that is lent is a region of that heap until its buffer is closed. Memory without a pool,
 * that of the driver's own pools, and memory of the host is what it is for the tool anyway. A pool
 * whose upstream is a pool is seen as what that one lent it.
 *
 * <p>A buffer is closed for the tool at the moment of {@code close}: work that uses it and is not
 * done then is reported too. With {@code --force-blocking-launches} there is none.
 */
public final class NvtxMemoryDriver extends ForwardingDriver {
  private static final String NAME = "pool of Cuvette";

  private final NvtxCalls tool;
  private final NavigableMap<Long, Heap> heaps = new ConcurrentSkipListMap<>();
  private final MemoryCalls memory;
  private final BlockListener listener;

  NvtxMemoryDriver(CudaDriver target, NvtxCalls tool) {
    super(target);
    this.tool = tool;
    this.memory = new Memory(target.memory());
    this.listener = new Blocks(target.blockListener());
  }

  /**
   * {@return a driver that shows the blocks of pools to the tool that listens; the target itself if
   * none does}
   *
   * @param target the driver, which the result closes
   */
  public static CudaDriver over(CudaDriver target) {
    Objects.requireNonNull(target, "target");
    return target.isSimulated()
        ? target
        : NvtxCalls.find()
            .<CudaDriver>map(tool -> new NvtxMemoryDriver(target, tool))
            .orElse(target);
  }

  @Override
  public String name() {
    return "nvtx(" + delegate().name() + ")";
  }

  @Override
  public MemoryCalls memory() {
    return memory;
  }

  @Override
  public BlockListener blockListener() {
    return listener;
  }

  /** Ends the heaps that are left, and closes the other driver. */
  @Override
  public void close() {
    heaps.values().forEach(Heap::end);
    heaps.clear();
    super.close();
  }

  /** One allocation, which is a heap once a block of it was lent. */
  private final class Heap {
    private final ReentrantLock lock = new ReentrantLock();
    private final long address;
    private final long bytes;
    private long handle;

    Heap(long address, long bytes) {
      this.address = address;
      this.bytes = bytes;
    }

    boolean contains(long part) {
      return part - address < bytes;
    }

    void lend(BlockListener.Block block) {
      lock.lock();
      try {
        if (handle == 0) {
          handle = tool.memHeapRegister(address, bytes, NAME);
        }
        if (handle != 0) {
          tool.memRegionRegister(handle, block.address(), block.bytes());
        }
      } finally {
        lock.unlock();
      }
    }

    void takeBack(BlockListener.Block block) {
      lock.lock();
      try {
        if (handle != 0) {
          tool.memRegionUnregister(block.address());
        }
      } finally {
        lock.unlock();
      }
    }

    void end() {
      lock.lock();
      try {
        if (handle != 0) {
          tool.memHeapUnregister(handle);
          handle = 0;
        }
      } finally {
        lock.unlock();
      }
    }
  }

  /** Notes what is allocated. */
  private final class Memory extends ForwardingMemory {
    Memory(MemoryCalls delegate) {
      super(delegate);
    }

    @Override
    public long memAlloc(int device, long bytes) {
      long address = super.memAlloc(device, bytes);
      heaps.put(address, new Heap(address, bytes));
      return address;
    }

    /** The heap goes first: the driver may give the address to others at once. */
    @Override
    public void memFree(int device, long address) {
      Heap heap = heaps.remove(address);
      if (heap != null) {
        heap.end();
      }
      try {
        super.memFree(device, address);
      } catch (RuntimeException e) {
        if (heap != null) {
          heaps.put(address, heap);
        }
        throw e;
      }
    }
  }

  /** Passes on what it is told, to the listener of the other driver too. */
  private final class Blocks implements BlockListener {
    private final @Nullable BlockListener below;

    Blocks(@Nullable BlockListener below) {
      this.below = below;
    }

    private @Nullable Heap heap(Block block) {
      Map.Entry<Long, Heap> found = block.depth() == 1 ? heaps.floorEntry(block.address()) : null;
      return found != null && found.getValue().contains(block.address()) ? found.getValue() : null;
    }

    @Override
    public void blockAllocated(Block block, int device, long stream) {
      if (below != null) {
        below.blockAllocated(block, device, stream);
      }
      Heap heap = heap(block);
      if (heap != null) {
        heap.lend(block);
      }
    }

    @Override
    public void blockAllocated(Block block) {
      if (below != null) {
        below.blockAllocated(block);
      }
    }

    @Override
    public void blockFreed(Block block) {
      if (below != null) {
        below.blockFreed(block);
      }
      Heap heap = heap(block);
      if (heap != null) {
        heap.takeBack(block);
      }
    }

    @Override
    public void usedElsewhere(long address, long bytes, int device, long stream) {
      if (below != null) {
        below.usedElsewhere(address, bytes, device, stream);
      }
    }

    @Override
    public void hostAccess(long address, long bytes, boolean writes) {
      if (below != null) {
        below.hostAccess(address, bytes, writes);
      }
    }

    @Override
    public void hostCopy(long address, long bytes, long target) {
      if (below != null) {
        below.hostCopy(address, bytes, target);
      }
    }
  }
}
