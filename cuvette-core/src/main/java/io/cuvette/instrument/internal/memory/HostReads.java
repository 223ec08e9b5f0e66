package io.cuvette.instrument.internal.memory;

import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.Clock;
import io.cuvette.instrument.internal.order.HappensBefore;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * The memory of the host that queued work reads, each with a checksum, so that a change by the host
 * before the work is known to be done is noticed. Not thread-safe.
 */
public final class HostReads {
  /** As much as a byte buffer can hold, and more. */
  private static final long STRIDE = 1L << 30;

  private final HappensBefore order;

  /** In the order of each stream, in which they are found to be done. */
  private final Map<Lane, ArrayDeque<Read>> pending = new HashMap<>();

  /** Queued work of which it is not known what it writes: the last host function, wait or graph. */
  private final Map<Lane, Access> unseen = new HashMap<>();

  /** How many reads and writes were noted so far. */
  private long time;

  /** Reads noted before are not compared: something may write anywhere meanwhile. */
  private long cleared;

  private record Read(
      KnownBlock block,
      KnownBlock lent,
      MemorySegment bytes,
      Access access,
      long checksum,
      long time) {}

  HostReads(HappensBefore order) {
    this.order = order;
  }

  /**
   * Notes work that reads or writes memory of a block, unless other work may still change it.
   *
   * @param lent what a pool lent of the block, else the block
   */
  void add(KnownBlock block, KnownBlock lent, Access access) {
    Range range = access.range();
    if (!block.isOfHost()) {
      return;
    }
    if (range.kind() == Kind.WRITE) { // of what kernels are given, KnownMemory tells
      written(block, range);
    } else if (range.kind() == Kind.READ && isSettled(block, range)) {
      MemorySegment bytes = block.seen(range);
      Long checksum = bytes == null ? null : checksum(bytes);
      if (bytes != null && checksum != null) {
        Read read = new Read(block, lent, bytes, access, checksum, ++time);
        pending.computeIfAbsent(access.lane(), _ -> new ArrayDeque<>()).add(read);
      }
    }
  }

  /** Notes that work may write memory of a block when it runs. */
  void written(KnownBlock block, Range range) {
    if (block.isOfHost()) {
      block.deviceWrites.set(range.address(), range.bytes(), ++time);
      block.deviceWrites.tidy(at -> at > oldest() ? at : null, Long::equals);
    }
  }

  /** Whether a range is memory of the host that nobody wrote, and no queued work will. */
  boolean isUnwritten(KnownBlock block, Range range) {
    MemorySegment bytes = block.isOfHost() ? block.seen(range) : null;
    if (bytes == null || !isReadable(bytes)) {
      return false;
    }
    try {
      return Unwritten.isAllMarked(bytes) && isSettled(block, range);
    } catch (IllegalStateException e) {
      return false; // freed at this moment
    }
  }

  private boolean isSettled(KnownBlock block, Range range) {
    unseen.values().removeIf(order::isFinished);
    return unseen.isEmpty() && block.uses.unfinishedWrite(range, block.allocated, order) == null;
  }

  /** Notes work that may have the host, or the device, change any memory when it runs. */
  public void unseen(Lane lane, CallTrace here) {
    unseen.put(lane, new Access(lane, lane.next(), new Range(0, 0, Kind.HOLD, false), here));
  }

  /** Forgets what is read: work was queued that may write it. */
  public void clear() {
    cleared = ++time;
  }

  /** Forgets what work has read that the host may have known to be done. */
  void forget(Clock done) {
    pending
        .values()
        .removeIf(all -> {
          all.removeIf(read -> done.covers(read.access.lane(), read.access.number()));
          return all.isEmpty();
        });
  }

  /** When the first of the pending reads was noted. */
  private long oldest() {
    return pending.values().stream().mapToLong(all -> all.getFirst().time).min().orElse(time);
  }

  /** Compares what the work that is finished has read. */
  public void finished(Findings findings) {
    unseen.values().removeIf(order::isFinished);
    for (Iterator<ArrayDeque<Read>> all = pending.values().iterator(); all.hasNext(); ) {
      ArrayDeque<Read> reads = all.next();
      while (!reads.isEmpty() && order.isFinished(reads.getFirst().access)) {
        check(reads.removeFirst(), findings);
      }
      if (reads.isEmpty()) {
        all.remove();
      }
    }
  }

  private void check(Read read, Findings findings) {
    if (mayHaveChanged(read)) {
      return;
    }
    Long checksum = checksum(read.bytes);
    if (checksum != null && checksum != read.checksum) {
      findings.addLate(
          Misuse.HOST_RACE,
          read.access.site(),
          "the host changed bytes that the %s on %s uses (%s), before it was known to be done"
              .formatted(read.access.range(), read.access.lane().name, read.lent),
          read.lent.allocated);
    }
  }

  /** Whether the memory is gone, or it need not be the host that changed it. */
  private boolean mayHaveChanged(Read read) {
    Range range = read.access.range();
    return read.time < cleared
        || !read.block.isOfHost()
        || read.block.freed() != null
        || read.block.deviceWrites.find(range.address(), range.bytes(), at -> at > read.time)
            != null;
  }

  private static boolean isReadable(MemorySegment bytes) {
    return bytes.scope().isAlive() && bytes.isAccessibleBy(Thread.currentThread());
  }

  /** The checksum of the bytes; null if they cannot be read here. */
  private static @Nullable Long checksum(MemorySegment bytes) {
    if (!isReadable(bytes)) {
      return null;
    }
    CRC32C sum = new CRC32C();
    try {
      for (long at = 0; at < bytes.byteSize(); at += STRIDE) {
        sum.update(bytes.asSlice(at, Math.min(STRIDE, bytes.byteSize() - at)).asByteBuffer());
      }
      return sum.getValue();
    } catch (IllegalStateException e) {
      return null; // freed at this moment
    }
  }
}
