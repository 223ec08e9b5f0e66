package io.cuvette.sim.internal.memory;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.internal.base.Addresses;
import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.Gaps;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The memory of one device. An address encodes where its block is: device, size class and slot, so
 * that every question takes constant time. A slot is larger than its block, so there is a guard
 * behind each block, and it is used again only after many others. Guarded by the driver's lock.
 *
 * <pre>
 *   63 62   56 55   50 49                         0
 *   | 0 | device | class |  slot &lt;&lt; class | offset |      device counts from 1
 * </pre>
 */
public final class DeviceMemory {
  private static final int CLASS_SHIFT = 50;
  private static final long OFFSET_MASK = (1L << CLASS_SHIFT) - 1;
  private static final int CLASSES = 50;

  /** Blocks are aligned to and counted in units of this many bytes, as cuMemAlloc aligns. */
  public static final long UNIT = 512;

  public final SimDevice device;
  private final long totalBytes;

  /** Which of the device's pages are taken. */
  public final DevicePages pages;

  /** What is left in pages that small allocations share: none is in more than one of them. */
  private final Gaps small = new Gaps(DevicePages.PAGE);

  private long sharedPages;
  private final SlotClass[] classes = new SlotClass[CLASSES];

  /** Blocks with bytes of files, those without an address too. */
  final Set<DeviceBlock> shared = new HashSet<>();

  private long usedBytes;
  private int liveBlocks;

  public DeviceMemory(SimDevice device, SimulatedOptions options) {
    this.device = device;
    this.totalBytes = options.memoryBytes();
    this.pages = new DevicePages(options);
    for (int i = 0; i < CLASSES; i++) {
      classes[i] = new SlotClass(1L << (CLASS_SHIFT - i));
    }
  }

  public DeviceBlock allocate(long bytes, long id) {
    if (bytes <= 0) {
      throw SimRefusal.invalidValue("bytes: %d (expected: > 0)".formatted(bytes));
    }
    long _ = pages.roomFor(bytes > totalBytes ? bytes : pagesFor(bytes));
    if (bytes > totalBytes || pagesFor(bytes) > pages.roomBytes()) {
      throw outOfMemory(bytes);
    }
    DeviceBlock block = place(bytes, id);
    pages.take(pagesFor(bytes));
    if (isSmall(bytes)) {
      block.piece(takeSmall(rounded(bytes)));
    }
    usedBytes += rounded(bytes);
    return block;
  }

  /** A part of the smallest gap that is large enough, or of a new page. */
  private Extent takeSmall(long bytes) {
    Extent piece = small.take(bytes);
    if (piece == null) {
      piece = new Extent(sharedPages, bytes);
      small.add(new Extent(sharedPages + bytes, DevicePages.PAGE - bytes));
      sharedPages += DevicePages.PAGE;
    }
    return piece;
  }

  /**
   * Gives a part of a page back, and with the last one the page; returns bytes of the page then.
   */
  private long giveSmall(Extent piece) {
    Extent gap = small.add(piece);
    if (gap.byteSize() < DevicePages.PAGE) {
      return 0;
    }
    small.remove(gap);
    return DevicePages.PAGE;
  }

  /** Bytes of the pages that a plain allocation takes now. */
  private long pagesFor(long bytes) {
    return isSmall(bytes) && small.smallest(rounded(bytes)) != null ? 0 : DevicePages.up(bytes);
  }

  /** Whether a plain allocation shares its page with others. */
  private static boolean isSmall(long bytes) {
    return bytes < DevicePages.PAGE;
  }

  /** A block of a pool; the pool reserves its bytes. */
  public DeviceBlock allocatePooled(long bytes, long id) {
    if (bytes > totalBytes) {
      throw outOfMemory(bytes);
    }
    DeviceBlock block = place(bytes, id);
    usedBytes += rounded(bytes);
    return block;
  }

  /** A block of another process, which is not counted here. */
  public DeviceBlock placeImported(long bytes, long id) {
    DeviceBlock block = place(bytes, id);
    block.markImported();
    return block;
  }

  /** A place for memory of a graph, whose bytes are counted while they are allocated. */
  public DeviceBlock placeOfGraph(long bytes, long id) {
    if (bytes > totalBytes) {
      throw outOfMemory(bytes);
    }
    DeviceBlock block = place(bytes, id);
    liveBlocks--;
    return block;
  }

  /** Memory of a graph is one more allocation of the program, or no more. */
  public void countOfGraph(DeviceBlock block, boolean isAllocated) {
    liveBlocks += isAllocated ? 1 : -1;
    usedBytes += isAllocated ? rounded(block.byteSize) : -rounded(block.byteSize);
  }

  /** Ends a place for memory of a graph. */
  public void endOfGraph(DeviceBlock block) {
    block.retire();
    end(block);
  }

  /** Takes pages for memory without an address. */
  void takePages(long bytes) {
    long _ = pages.roomFor(bytes);
    if (bytes > totalBytes || bytes > pages.roomBytes()) {
      throw outOfMemory(bytes);
    }
    pages.take(bytes);
    usedBytes += bytes;
  }

  /** Gives such pages back. */
  void givePages(long bytes) {
    pages.take(-bytes);
    usedBytes -= bytes;
  }

  private SimRefusal outOfMemory(long bytes) {
    return new SimRefusal(
        CudaStatus.OUT_OF_MEMORY,
        "requested=%d, free=%d, total=%d bytes on device %d"
            .formatted(bytes, freeBytes(), totalBytes, device.index));
  }

  private DeviceBlock place(long bytes, long id) {
    int sizeClass = Long.SIZE - Long.numberOfLeadingZeros(bytes + UNIT - 1);
    int slot = classes[sizeClass].take();
    DeviceBlock block = new DeviceBlock(this, address(sizeClass, slot), bytes, id);
    classes[sizeClass].put(slot, block);
    liveBlocks++;
    return block;
  }

  private long address(int sizeClass, int slot) {
    return ((device.index + 1L) << Addresses.DEVICE_SHIFT)
        | (long) sizeClass << CLASS_SHIFT
        | (long) slot << sizeClass;
  }

  /** The block an address points into or just behind, if there is one. */
  public @Nullable DeviceBlock find(long address) {
    int sizeClass = classOf(address);
    return sizeClass < CLASSES
        ? classes[sizeClass].get((address & OFFSET_MASK) >>> sizeClass)
        : null;
  }

  /** Counts a block no longer; its bytes stay until {@link #free}. */
  public void retire(DeviceBlock block) {
    if (block.retire()) {
      liveBlocks--;
      if (block.isImported()) {
        return;
      }
      usedBytes -= rounded(block.byteSize);
      if (block.use() == null) {
        pages.take(-pagesOf(block));
      }
    }
  }

  /** Bytes of the pages that nothing else is in. */
  private long pagesOf(DeviceBlock block) {
    Extent piece = block.piece();
    return piece == null ? DevicePages.up(block.byteSize) : giveSmall(piece);
  }

  public void free(DeviceBlock block) {
    retire(block);
    end(block);
  }

  private void end(DeviceBlock block) {
    int sizeClass = classOf(block.address);
    classes[sizeClass].give((int) ((block.address & OFFSET_MASK) >>> sizeClass));
    block.die();
    block.release();
  }

  /** Whether there was a block at an address that is free now. */
  public boolean wasFreed(long address) {
    int sizeClass = classOf(address);
    return sizeClass < CLASSES
        && classes[sizeClass].wasUsed((address & OFFSET_MASK) >>> sizeClass)
        && (address & (1L << sizeClass) - 1) == 0;
  }

  private static int classOf(long address) {
    return (int) (address >>> CLASS_SHIFT) & 0x3F;
  }

  public static long rounded(long bytes) {
    return (bytes + UNIT - 1) / UNIT * UNIT;
  }

  public long totalBytes() {
    return totalBytes;
  }

  /** Bytes of blocks, those in pools too, and of memory without an address. */
  public long usedBytes() {
    return usedBytes;
  }

  public long freeBytes() {
    return pages.freeBytes();
  }

  public int liveBlocks() {
    return liveBlocks;
  }

  public void close() {
    List.copyOf(shared).forEach(DeviceBlock::release);
  }

  public void forEach(Consumer<SimBlock> action) {
    for (SlotClass slots : classes) {
      slots.forEach(action);
    }
  }
}
