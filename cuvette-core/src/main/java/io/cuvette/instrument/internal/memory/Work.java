package io.cuvette.instrument.internal.memory;

import io.cuvette.driver.LaunchWatcher;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.Beginnings;
import io.cuvette.instrument.internal.report.CallTrace;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A piece of work for a stream: the call that queues it and the bytes it uses. Not thread-safe. */
public final class Work {
  public final CallTrace site;
  public final int device;
  public final long stream;
  private final List<Range> ranges = new ArrayList<>();
  private @Nullable LaunchWatcher watcher;
  boolean isBetweenDevices;

  public Work(CallTrace site, int device, long stream) {
    this.site = site;
    this.device = device;
    this.stream = stream;
  }

  public Work reads(long address, long bytes) {
    return uses(address, bytes, Kind.READ);
  }

  public Work writes(long address, long bytes) {
    return uses(address, bytes, Kind.WRITE);
  }

  public Work holds(long address, long bytes) {
    return uses(address, bytes, Kind.HOLD);
  }

  /** Each device does what is to be done with its own memory. */
  public Work betweenDevices() {
    isBetweenDevices = true;
    return this;
  }

  /** The memory around an argument of a kernel. */
  public Work uses(Range range) {
    ranges.add(range);
    return this;
  }

  public Work reads(MemorySegment segment) {
    return uses(segment, Kind.READ);
  }

  public Work writes(MemorySegment segment) {
    return uses(segment, Kind.WRITE);
  }

  /** This is a launch; who learns what it touches, if the driver tells that. */
  public void watchedBy(@Nullable LaunchWatcher observer) {
    watcher = observer;
  }

  public @Nullable LaunchWatcher watcher() {
    return watcher;
  }

  /** What learns that it runs. */
  public Stream<Beginnings> beginnings() {
    return Stream.ofNullable(watcher instanceof Beginnings told ? told : null);
  }

  /** Notes that the driver has it. */
  public void expected() {
    if (watcher instanceof TouchedBytes told) {
      told.expect();
    }
  }

  public List<Range> ranges() {
    return ranges;
  }

  /** Names the ranges of the host as the driver does. */
  public void resolve(HostViews views) {
    ranges.replaceAll(views::resolve);
  }

  /** What is copied to the last of the ranges; null if this is no copy. */
  @Nullable Range copied() {
    Range first = ranges.isEmpty() ? null : ranges.getFirst();
    return first != null && first.kind() == Kind.READ ? first : null;
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
