package io.cuvette.sim;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Memory that the host can see too. Guarded by the driver's lock. */
final class HostBlock extends SimBlock {

  /** Where host memory comes from. */
  enum Kind {
    PINNED,
    MANAGED,
    /** Memory the driver did not make; only during a copy. */
    PAGEABLE
  }

  final Kind kind;
  final MemorySegment segment;
  final int flags;

  /** What the program said about ranges of managed memory. */
  final RangeAdvice advice;

  private final FileExtents.@Nullable Extent extent;
  private final @Nullable Arena arena;
  private final List<MemorySegment> views = new ArrayList<>();

  private HostBlock(
      Kind kind,
      SimDevice device,
      MemorySegment segment,
      long id,
      int flags,
      FileExtents.@Nullable Extent extent,
      @Nullable Arena arena) {
    super(device, segment.address(), segment.byteSize(), id);
    this.kind = kind;
    this.segment = segment;
    this.flags = flags;
    this.advice = new RangeAdvice(segment.byteSize());
    this.extent = extent;
    this.arena = arena;
  }

  static HostBlock pageable(SimDevice device, MemorySegment segment) {
    return new HostBlock(Kind.PAGEABLE, device, segment, 0, 0, null, null);
  }

  static HostBlock allocate(
      Kind kind, SimDevice device, HostFile file, long bytes, long id, int flags) {
    FileExtents.Extent extent = file.reserve(bytes);
    Arena arena = Arena.ofShared();
    try {
      MemorySegment segment = file.map(extent.offset(), bytes, arena);
      return new HostBlock(kind, device, segment, id, flags, extent, arena);
    } catch (RuntimeException e) {
      arena.close();
      file.release(extent);
      throw e;
    }
  }

  /** The same memory once more, for as long as the arena lives. */
  MemorySegment view(HostFile file, long offset, long bytes, Arena viewArena) {
    if (extent == null) {
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
   * @return false if somebody still uses a mapping of it: try again later
   */
  boolean unmap(HostFile file) {
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
    if (extent != null) {
      file.release(extent);
    }
    return true;
  }

  @Override
  void read(long offset, MemorySegment target) {
    target.copyFrom(segment.asSlice(offset, target.byteSize()));
  }

  @Override
  void write(long offset, MemorySegment source) {
    segment.asSlice(offset, source.byteSize()).copyFrom(source);
  }

  @Override
  void fill(long offset, long bytes, int pattern) {
    PagedBytes.fill(segment, offset, bytes, pattern);
  }
}
