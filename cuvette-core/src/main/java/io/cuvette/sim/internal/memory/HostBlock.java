package io.cuvette.sim.internal.memory;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.BlockFile;
import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.MappedFiles;
import io.cuvette.sim.internal.base.PagedBytes;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.HeldMemory;
import io.cuvette.sim.internal.queue.SimDevice;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Memory that the host can see too. Guarded by the driver's lock. */
public final class HostBlock extends SimBlock implements HeldMemory {

  /** Where host memory comes from. */
  public enum Kind {
    PINNED,
    MANAGED,
    /** Memory of the program that was page-locked. */
    REGISTERED,
    /** Memory the driver did not make; only during a copy. */
    PAGEABLE
  }

  /** CU_MEMHOSTREGISTER_READ_ONLY. */
  public static final int READ_ONLY = 8;

  public final Kind kind;
  public final MemorySegment segment;
  public final int flags;

  /** The advice of the program about ranges of managed memory. */
  public final RangeAdvice advice;

  private final @Nullable BlockFile file;
  private final @Nullable Extent extent;
  private final @Nullable Arena arena;
  private final List<MemorySegment> views = new ArrayList<>();

  /** Of managed memory: what of it is on a device. */
  public final ManagedPages pages = new ManagedPages();

  /** What the memory holds while the host may not touch it. */
  private @Nullable MemorySegment hidden;

  /** The number of queued operations that use the memory, where that hides it. */
  private int uses;

  private HostBlock(
      Kind kind,
      SimDevice device,
      MemorySegment segment,
      long id,
      int flags,
      @Nullable BlockFile file,
      @Nullable Extent extent,
      @Nullable Arena arena) {
    super(device, segment.address(), segment.byteSize(), id);
    this.kind = kind;
    this.segment = segment;
    this.flags = flags;
    this.advice = new RangeAdvice(segment.byteSize());
    this.file = file;
    this.extent = extent;
    this.arena = arena;
  }

  public static HostBlock pageable(SimDevice device, MemorySegment segment) {
    return new HostBlock(Kind.PAGEABLE, device, segment, 0, 0, null, null, null);
  }

  /** A block of memory of the program, which stays the program's. */
  public static HostBlock registered(SimDevice device, MemorySegment segment, long id, int flags) {
    return new HostBlock(Kind.REGISTERED, device, segment, id, flags, null, null, null);
  }

  /** A block in a range of a file, which is released with the block. */
  public static HostBlock of(
      Kind kind, SimDevice device, BlockFile file, Extent extent, long bytes, long id, int flags) {
    Arena arena = Arena.ofShared();
    try {
      // Nothing would be mapped nowhere, but also a block of 0 bytes has an address.
      MemorySegment segment = file.map(extent.offset(), Math.max(1, bytes), arena);
      return new HostBlock(kind, device, segment.asSlice(0, bytes), id, flags, file, extent, arena);
    } catch (RuntimeException | Error e) {
      arena.close();
      file.release(extent);
      throw e;
    }
  }

  /** What the memory holds, which is where the host sees it unless that is hidden. */
  public MemorySegment content() {
    return hidden == null ? segment : hidden;
  }

  public boolean isHidden() {
    return hidden != null;
  }

  /** Takes what the memory holds out of the host's sight. */
  public void hide() {
    hidden = Arena.ofAuto().allocate(Math.max(1, byteSize)).asSlice(0, byteSize);
    hidden.copyFrom(segment);
    segment.fill(PagedBytes.UNTOUCHED);
  }

  /**
   * Shows what the memory holds again.
   *
   * @return whether no write came between
   */
  public boolean show() {
    MemorySegment held = content();
    hidden = null;
    boolean untouched = true;
    for (long i = 0; i < byteSize && untouched && isLive(); i++) {
      untouched = segment.get(ValueLayout.JAVA_BYTE, i) == PagedBytes.UNTOUCHED;
    }
    if (isLive()) {
      segment.copyFrom(held);
    }
    return untouched;
  }

  /** Those of some blocks that are managed memory. */
  public static List<HostBlock> managedOf(SimBlock... blocks) {
    List<HostBlock> managed = new ArrayList<>(blocks.length);
    for (SimBlock block : blocks) {
      if (block instanceof HostBlock host && host.kind == Kind.MANAGED) {
        managed.add(host);
      }
    }
    return managed;
  }

  /** An operation that uses the memory is queued. */
  public void queued() {
    uses++;
  }

  /** Such an operation is done. */
  @Override
  public void done() {
    uses = Math.max(0, uses - 1);
  }

  public boolean isUsed() {
    return uses > 0;
  }

  /** Where in its file the block is; null for pageable memory. */
  public @Nullable Extent extent() {
    return extent;
  }

  /** The same memory once more, for as long as the arena lives. */
  public MemorySegment view(long offset, long bytes, Arena viewArena) {
    if (kind == Kind.REGISTERED) {
      return segment.asSlice(offset, bytes); // the program has it already, for longer than this
    }
    if (file == null || extent == null) {
      throw new IllegalStateException("pageable memory has no views");
    }
    MemorySegment view = file.map(extent.offset() + offset, bytes, viewArena);
    views.removeIf(old -> !old.scope().isAlive());
    views.add(view);
    return view;
  }

  /**
   * Ends the memory.
   *
   * @return false if a mapping of it is still in use: try again later
   */
  public boolean unmap() {
    die();
    views.removeIf(view -> !view.scope().isAlive());
    if (arena != null && arena.scope().isAlive()) {
      try {
        arena.close();
      } catch (IllegalStateException e) {
        // Another thread is inside a call with the segment, such as a write to a channel.
        return false;
      }
    }
    if (!views.isEmpty()) {
      return false;
    }
    if (file != null && extent != null) {
      file.release(extent);
    }
    return true;
  }

  /** What a device that writes read-only memory ends with. */
  void checkWritable() {
    if (kind == Kind.REGISTERED && (segment.isReadOnly() || (flags & READ_ONLY) != 0)) {
      throw new SimRefusal(
          CudaStatus.ILLEGAL_ADDRESS,
          "0x%x: %d bytes that are registered as read-only".formatted(address, byteSize));
    }
  }

  /**
   * Reads or writes the memory; false if the program mapped it from a file that does not have it
   * any more. The simulator's own is there, or the device fails.
   */
  boolean access(Runnable access) {
    if (kind == Kind.REGISTERED || kind == Kind.PAGEABLE) {
      return MappedFiles.access(segment, access);
    }
    MappedFiles.run(access);
    return true;
  }

  @Override
  public void read(long offset, MemorySegment target) {
    MemorySegment source = content().asSlice(offset, target.byteSize());
    boolean _ = access(() -> target.copyFrom(source));
  }

  @Override
  public void write(long offset, MemorySegment source) {
    checkWritable();
    MemorySegment target = content().asSlice(offset, source.byteSize());
    boolean _ = access(() -> target.copyFrom(source));
  }

  @Override
  public void fill(long offset, long bytes, int pattern) {
    checkWritable();
    boolean _ = access(() -> PagedBytes.fill(content(), offset, bytes, pattern));
  }
}
