package io.cuvette.sim.internal.share;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.BlockFile;
import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.FileExtents;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.memory.SimBlock;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The memory of a pool that other processes can import, or that one of them made. Guarded by the
 * driver's lock.
 */
public final class SharedPool implements BlockFile {
  /** Blocks have whole pages, and units much smaller than those are allocated. */
  private static final long ROOM = 16;

  private static final long LEAST = 32L << 20; // what any limit counts as on a large device

  private final SharedFile file;
  private final SharedTable table;
  private final boolean imported;
  private final FileExtents extents = new FileExtents();
  private boolean exported;

  /** What is mapped here of a pool of another process. */
  private final Map<SharedTable.Entry, SimBlock> blocks = new HashMap<>();

  /** What is behind this was never used and is 0. */
  private long untouched;

  private SharedPool(SharedFile file, long mostBytes, boolean imported) {
    this.file = file;
    this.table = new SharedTable(file.own(), file.dataBytes(), mostBytes);
    this.imported = imported;
  }

  /** A pool for some bytes; its file, of which untouched parts take no room, has more for gaps. */
  public static SharedPool create(SimSharing sharing, SharedPlace place, long bytes) {
    return new SharedPool(
        SharedFile.create(sharing, SharedFile.Kind.POOL, place, ROOM * Math.max(bytes, LEAST)),
        bytes,
        false);
  }

  /** The pool behind a descriptor, which stays the caller's. */
  public static SharedPool open(SimSharing sharing, int descriptor) {
    return new SharedPool(
        SharedFile.ofDescriptor(sharing, SharedFile.Kind.POOL, descriptor),
        sharing.mostBytes,
        true);
  }

  public SharedPlace place() {
    return file.place();
  }

  /** Whether another driver, of this process or another, allocates from the pool. */
  public boolean isImported() {
    return imported;
  }

  public boolean isSameFile(SharedPool other) {
    return file.key().equals(other.file.key());
  }

  /** A descriptor to import the pool from. */
  public int export() {
    int descriptor = file.export();
    exported = true;
    return descriptor;
  }

  /** Whether another process may have imported the pool, or this is such an import. */
  public boolean isExported() {
    return exported || imported;
  }

  /** Room for a block; what it holds is 0 if {@code clean}, else what was there before. */
  public Room reserve(long bytes) {
    Extent extent = extents.reserve(Math.max(1, bytes));
    if (extent.offset() > file.dataBytes() - extent.byteSize()) {
      extents.release(extent);
      throw new SimRefusal(
          CudaStatus.OUT_OF_MEMORY,
          "requested=%d in a shared pool whose file of %d bytes is in pieces"
              .formatted(bytes, file.dataBytes()));
    }
    file.retain();
    boolean clean = extent.offset() >= untouched;
    untouched = Math.max(untouched, extent.offset() + extent.byteSize());
    return new Room(extent, clean);
  }

  /** Room for a block. Immutable. */
  public record Room(Extent extent, boolean clean) {}

  /** Room for a block, for which there is memory. */
  public Extent provide(long bytes) {
    Extent extent = reserve(bytes).extent();
    try {
      file.provide(extent);
      return extent;
    } catch (SimRefusal e) {
      release(extent);
      throw e;
    }
  }

  /** Room that an allocation of another process has. */
  public Extent borrow(SharedTable.Entry entry) {
    file.retain();
    return new Extent(entry.offset(), entry.byteSize());
  }

  @Override
  public MemorySegment map(long offset, long bytes, Arena arena) {
    return file.map(offset, bytes, arena);
  }

  @Override
  public void release(Extent extent) {
    if (!imported) {
      extents.release(extent);
    }
    file.release();
  }

  public SharedTable.Entry add(Extent extent, long byteSize) {
    return table.add(extent.offset(), byteSize);
  }

  /** Notes that the allocation was freed: it cannot be imported any more. */
  public void remove(SharedTable.Entry entry) {
    table.remove(entry);
  }

  /** Its memory is gone, in stream order. */
  public void end(SharedTable.Entry entry) {
    table.end(entry);
  }

  /** Whether the process that made the pool has freed an allocation. */
  public boolean isGone(SharedTable.Entry entry) {
    return table.isGone(entry);
  }

  public byte[] handle(SharedTable.Entry entry) {
    ShareHandle handle = file.handle(ShareHandle.Kind.POINTER);
    return new ShareHandle(
            handle.kind(),
            handle.file(),
            handle.driver(),
            handle.process(),
            entry.place(),
            entry.generation())
        .toBytes();
  }

  /** The allocation of a handle, or INVALID_VALUE. */
  public SharedTable.Entry entry(byte[] bytes) {
    ShareHandle handle = ShareHandle.of(bytes, ShareHandle.Kind.POINTER);
    if (!handle.file().equals(file.id())) {
      throw SimRefusal.invalidValue("handle: of an allocation of another pool");
    }
    SharedTable.Entry entry = table.find(handle.descriptor(), handle.generation());
    if (entry == null) {
      throw SimRefusal.invalidValue("handle: of an allocation that was freed");
    }
    return entry;
  }

  /** The block that an allocation is mapped as, if it is; not one that is being freed. */
  public @Nullable SimBlock mapped(SharedTable.Entry entry) {
    SimBlock block = blocks.get(entry);
    return block == null || block.isRetired() ? null : block;
  }

  public void mapped(SharedTable.Entry entry, SimBlock block) {
    blocks.put(entry, block);
  }

  /** A block is mapped no longer. */
  public void forget(SharedTable.Entry entry, SimBlock block) {
    blocks.remove(entry, block);
  }

  /** The pool is gone; its blocks keep what they need. */
  public void close() {
    file.release();
  }
}
