package io.cuvette.instrument;

import io.cuvette.instrument.Access.Kind;
import io.cuvette.instrument.Access.Range;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** A block of memory, live or freed. Not thread-safe. */
final class Block {
  final long address;
  final long bytes;

  /** The one method that frees it. */
  final String freedBy;

  final Site allocated;
  final AccessHistory uses = new AccessHistory();

  /** When work was last queued that writes memory of the host, by the count of its reads. */
  final RangeMap<Long> deviceWrites = new RangeMap<>();

  /** What the host sees of it, as far as that is known here. */
  private @Nullable MemorySegment host;

  /** Where in the block that begins. */
  private long hostFrom;

  /** Whether other processes may write it. */
  private boolean shared;

  private @Nullable Contents contents;
  private @Nullable BlockLedger parts;
  private @Nullable Site freed;

  Block(long address, long bytes, String freedBy, Site allocated) {
    this.address = address;
    this.bytes = bytes;
    this.freedBy = freedBy;
    this.allocated = allocated;
  }

  /** A block of memory that the host sees where the device does. */
  static Block ofHost(MemorySegment host, String freedBy, Site allocated) {
    Block block = new Block(host.address(), host.byteSize(), freedBy, allocated);
    block.host = host;
    return block;
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

  /** The bytes of a range as the host sees them; null if that is not known here. */
  @Nullable MemorySegment seen(Range range) {
    if (host == null) {
      return null;
    }
    long from = range.address() - address - hostFrom;
    boolean inside = 0 <= from && from <= host.byteSize() - range.bytes();
    return inside ? host.asSlice(from, range.bytes()) : null;
  }

  /** The same block as memory that is written by work alone, and was never yet. */
  Block ofDevice() {
    contents = new Contents();
    return this;
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
  void handedOver(Block part) {
    if (contents != null) {
      contents.forget(part.address, part.bytes);
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

  boolean overlaps(Block other) {
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

  /** The ledger of smaller blocks, made when first asked for. */
  BlockLedger divide() {
    if (parts == null) {
      parts = new BlockLedger();
    }
    return parts;
  }

  /** Where it was freed; null while it is live. */
  @Nullable Site freed() {
    return freed;
  }

  void freed(@Nullable Site here) {
    freed = here;
  }

  @Override
  public String toString() {
    return "block 0x%x of %d bytes".formatted(address, bytes);
  }
}
