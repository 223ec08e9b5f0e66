package io.cuvette.instrument;

import io.cuvette.instrument.Access.Kind;
import io.cuvette.instrument.Access.Range;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A piece of work for a stream: the call that queues it and the bytes it uses. Not thread-safe. */
final class Work {
  final Site site;
  final int device;
  final long stream;
  private final List<Range> ranges = new ArrayList<>();

  Work(Site site, int device, long stream) {
    this.site = site;
    this.device = device;
    this.stream = stream;
  }

  Work reads(long address, long bytes) {
    return uses(address, bytes, Kind.READ);
  }

  Work writes(long address, long bytes) {
    return uses(address, bytes, Kind.WRITE);
  }

  Work holds(long address, long bytes) {
    return uses(address, bytes, Kind.HOLD);
  }

  Work reads(MemorySegment segment) {
    return uses(segment, Kind.READ);
  }

  Work writes(MemorySegment segment) {
    return uses(segment, Kind.WRITE);
  }

  List<Range> ranges() {
    return ranges;
  }

  /** Names the ranges of the host as the driver does. */
  void resolve(HostViews views) {
    ranges.replaceAll(views::resolve);
  }

  /** What is copied to the last of the ranges; null if this is no copy. */
  @Nullable Range copied() {
    Range first = ranges.getFirst();
    return first.kind() == Kind.READ ? first : null;
  }

  private Work uses(long address, long bytes, Kind kind) {
    ranges.add(new Range(address, bytes, kind, false));
    return this;
  }

  /** Host memory that is still alive may be anybody's; else it was a block of the driver. */
  private Work uses(MemorySegment segment, Kind kind) {
    boolean alive = segment.scope().isAlive();
    ranges.add(new Range(segment.address(), segment.byteSize(), kind, alive));
    return this;
  }
}
