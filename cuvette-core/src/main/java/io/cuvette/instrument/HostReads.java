package io.cuvette.instrument;

import io.cuvette.instrument.Access.Kind;
import io.cuvette.instrument.Access.Range;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * The page-locked memory that queued work reads, each with a checksum, so that a change by the host
 * before the work is known to be done is noticed. Not thread-safe.
 */
final class HostReads {
  private static final int MOST_PENDING = 1024;

  /** Of a longer range the beginning and the end are compared, this much of each. */
  private static final long EDGE_BYTES = 1L << 20;

  private final StreamOrder order;
  private final Deque<Read> pending = new ArrayDeque<>();

  /** Queued work of which it is not known what it writes: host functions, waits, graphs. */
  private final List<Access> unseen = new ArrayList<>();

  private record Read(Block block, MemorySegment bytes, Access access, long checksum) {}

  HostReads(StreamOrder order) {
    this.order = order;
  }

  /** Notes work that reads or writes memory of a block, unless other work may still change it. */
  void add(Block block, Access access) {
    Range range = access.range();
    if (range.kind() == Kind.WRITE) {
      pending.removeIf(read -> read.access.range().overlaps(range));
    } else if (range.kind() == Kind.READ && block.host != null && isSettled(block, range)) {
      MemorySegment bytes = block.host.asSlice(range.address() - block.address, range.bytes());
      Long checksum = checksum(bytes);
      if (checksum != null) {
        pending.add(new Read(block, bytes, access, checksum));
        if (pending.size() > MOST_PENDING) {
          pending.remove();
        }
      }
    }
  }

  private boolean isSettled(Block block, Range range) {
    unseen.removeIf(order::isFinished);
    return unseen.isEmpty() && block.uses.unfinishedWrite(range, order) == null;
  }

  /** Notes work that may have the host, or the device, change any memory when it runs. */
  void unseen(Lane lane, Site here) {
    unseen.removeIf(order::isFinished);
    unseen.add(new Access(lane, lane.next(), new Range(0, 0, Kind.HOLD, false), here));
  }

  /** Forgets what is read: work was queued that may write it. */
  void clear() {
    pending.clear();
  }

  /** Compares what the work that is finished has read. */
  void finished(Findings findings) {
    for (Iterator<Read> i = pending.iterator(); i.hasNext(); ) {
      Read read = i.next();
      if (order.isFinished(read.access)) {
        i.remove();
        check(read, findings);
      }
    }
  }

  /** Forgets what is read of a block that goes. */
  void freed(Block block) {
    pending.removeIf(read -> read.block == block);
  }

  private static void check(Read read, Findings findings) {
    Long checksum = checksum(read.bytes);
    if (checksum != null && checksum != read.checksum) {
      findings.add(
          Misuse.HOST_RACE,
          read.access.site(),
          "the host changed bytes that the %s on %s uses (%s), before it was known to be done"
              .formatted(read.access.range(), read.access.lane().name, read.block),
          read.block.allocated);
    }
  }

  /** The checksum of the bytes; null if they cannot be read here. */
  private static @Nullable Long checksum(MemorySegment bytes) {
    if (!bytes.scope().isAlive() || !bytes.isAccessibleBy(Thread.currentThread())) {
      return null;
    }
    CRC32C sum = new CRC32C();
    long edge = Math.min(bytes.byteSize(), EDGE_BYTES);
    try {
      sum.update(bytes.asSlice(0, edge).asByteBuffer());
      sum.update(bytes.asSlice(bytes.byteSize() - edge).asByteBuffer());
      return sum.getValue();
    } catch (IllegalStateException e) {
      return null; // freed at this moment
    }
  }
}
