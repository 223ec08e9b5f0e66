package io.cuvette.instrument.internal.memory;

import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.report.CallTrace;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** A block of memory, live or freed. Not thread-safe. */
public final class KnownBlock {
  final long address;
  final long bytes;

  /** The one method that frees it. */
  final String freedBy;

  final CallTrace allocated;
  AccessHistory uses = new AccessHistory();

  /** When work was last queued that writes memory of the host, by the count of its reads. */
  final RangeMap<Long> deviceWrites = new RangeMap<>();

  /** What the host sees of it, as far as that is known here. */
  private @Nullable MemorySegment host;

  /** Where in the block that begins. */
  private long hostFrom;

  /** Whether other processes may write it. */
  private boolean shared;

  /** The capture or the launch that gave it, if it is memory of a graph. */
  @Nullable Object graph;

  /** When bytes came back, or were not lent yet, by the count of launches. */
  final RangeMap<Long> cameBack = new RangeMap<>();

  /** Whether no graph may use it once it is closed. */
  boolean isLeftByGraphs;

  private @Nullable Contents contents;

  /** The device for whose work the driver waits when it frees the block; -1 for none. */
  private int device = -1;

  private @Nullable BlockLedger parts;
  private @Nullable CallTrace freed;

  KnownBlock(long address, long bytes, String freedBy, CallTrace allocated) {
    this.address = address;
    this.bytes = bytes;
    this.freedBy = freedBy;
    this.allocated = allocated;
  }

  /** A block of memory that the host sees where the device does. */
  static KnownBlock ofHost(MemorySegment host, String freedBy, CallTrace allocated) {
    KnownBlock block = new KnownBlock(host.address(), host.byteSize(), freedBy, allocated);
    block.host = host;
    return block;
  }

  /** The same block as memory of a graph. */
  KnownBlock ofGraph(Object givenBy) {
    graph = givenBy;
    return this;
  }

  /** Notes that the host sees bytes of it, from an address on, as a segment. */
  void seenAs(MemorySegment segment, long from) {
    if (host == null || !host.scope().isAlive()) {
      host = segment;
      hostFrom = from - address;
    }
  }

  /** Whether the host sees it, or did, and no other process may write it. */
  boolean isOfHost() {
    return host != null && !shared;
  }

  /** The same, or one in its place that was closed. */
  KnownBlock lastAround(long point) {
    KnownBlock lent = lentAround(point);
    KnownBlock closed = lent.parts == null ? null : lent.parts.freedAround(point);
    return closed == null ? lent : closed;
  }

  /** The end of what somebody had, from an address on, at some time since a launch. */
  long lentUntil(long point, long launch) {
    KnownBlock part = parts == null ? this : parts.liveAround(point);
    if (part == null) { // then by lines of 64 bytes
      return cameBack.find(point, 1, time -> time >= launch) == null ? point : (point | 63) + 1;
    }
    return part == this ? address + bytes : part.lentUntil(point, launch);
  }

  /** The innermost block with an address, which is in this one. */
  KnownBlock lentAround(long point) {
    KnownBlock part = parts == null ? null : parts.liveAround(point);
    return part == null ? this : part.lentAround(point);
  }

  /** The bytes of a range as the host sees them; null if that is not known here. */
  @Nullable MemorySegment seen(Range range) {
    if (host == null) {
      return null;
    }
    long from = range.address() - address - hostFrom;
    boolean inside = 0 <= from && from <= host.byteSize() - range.bytes();
    return inside ? host.asSlice(from, range.bytes()) : null;
  }

  /** Marks bytes that the host can write as never written. */
  void markUnwritten(Range range) {
    MemorySegment bytes = isOfHost() ? seen(range) : null;
    if (bytes != null) {
      Unwritten.mark(bytes);
    }
  }

  /** The same block as memory that is written by work alone, and was never yet. */
  KnownBlock ofDevice() {
    contents = new Contents();
    return this;
  }

  /** The same block as plain memory of a device. */
  KnownBlock ofDevice(int index) {
    device = index;
    return ofDevice();
  }

  /** The device for whose work freeing it waits; -1 for none, or if the block was written. */
  int waitsFor() {
    boolean unused = contents != null && contents.missing(address, bytes) == bytes;
    return unused ? device : -1;
  }

  /** What was written of it; null if others can write it than the work that is seen. */
  @Nullable Contents contents() {
    return contents;
  }

  /** Notes that bytes of it are written. */
  void written(long from, long count) {
    if (contents != null) {
      contents.write(from, count);
    }
  }

  /** Notes that bytes of it get another owner, to whom their content is undefined. */
  void handedOver(KnownBlock part) {
    if (contents != null) {
      contents.forget(part.address, part.bytes);
    }
  }

  /** Notes that other memory will be where bytes of it are. */
  void emptied(long from, long count) {
    if (contents != null) {
      contents.replace(from, count);
    }
  }

  /** Others may write bytes of it from now on, until other memory is there. */
  void share(long from, long count) {
    if (contents != null) {
      contents.share(from, count);
    }
  }

  /** Others may write it from now on. */
  void share() {
    contents = null;
    shared = true;
  }

  boolean contains(long point) {
    return Long.compareUnsigned(point - address, bytes) < 0;
  }

  /** Whether a range that begins in this block also ends in it. */
  boolean holds(Range range) {
    return Long.compareUnsigned(range.bytes(), bytes - (range.address() - address)) <= 0;
  }

  boolean overlaps(KnownBlock other) {
    return contains(other.address) || other.contains(address);
  }

  /** All of it, for asking who uses it. */
  Range range() {
    return new Range(address, bytes, Kind.HOLD, false);
  }

  /** The smaller blocks that a pool made of it; null if none ever did. */
  @Nullable BlockLedger parts() {
    return parts;
  }

  /** The ledger of smaller blocks, made when first used. */
  BlockLedger divide(long launches) {
    if (parts == null) {
      parts = new BlockLedger();
      cameBack.set(address, bytes, launches);
    }
    return parts;
  }

  /** Where it was freed; null while it is live. */
  @Nullable CallTrace freed() {
    return freed;
  }

  void freed(@Nullable CallTrace here) {
    freed = here;
  }

  /**
   * A launch from the beginning of one of sixteen parts of the block on: it tells what it touches,
   * and where thousands begin would each be looked at for each of them.
   */
  Access widened(Access launch) {
    Range range = launch.range();
    long part = bytes / 16 + 1;
    long from = range.address() - (range.address() - address) % part;
    long more = range.bytes() == 1 ? 0 : range.address() - from;
    return launch.of(new Range(range.address() - more, range.bytes() + more, range.kind(), false));
  }

  /** Notes that the driver has freed it: only where is remembered. */
  public void ended() {
    uses = new AccessHistory();
    parts = null;
  }

  @Override
  public String toString() {
    return "block 0x%x of %d bytes".formatted(address, bytes);
  }
}
