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

  /** The page-locked memory that the driver gave; null if it is of another kind. */
  final @Nullable MemorySegment host;

  /** When work was last queued that writes page-locked memory, by the count of its reads. */
  final RangeMap<Long> deviceWrites = new RangeMap<>();

  private @Nullable Contents contents;
  private @Nullable BlockLedger parts;
  private @Nullable Site freed;

  Block(long address, long bytes, String freedBy, Site allocated) {
    this(address, bytes, freedBy, allocated, null);
  }

  private Block(
      long address, long bytes, String freedBy, Site allocated, @Nullable MemorySegment host) {
    this.address = address;
    this.bytes = bytes;
    this.freedBy = freedBy;
    this.allocated = allocated;
    this.host = host;
  }

  /** A block of page-locked memory. */
  static Block pinned(MemorySegment host, Site allocated) {
    return new Block(host.address(), host.byteSize(), "memFreeHost", allocated, host);
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
