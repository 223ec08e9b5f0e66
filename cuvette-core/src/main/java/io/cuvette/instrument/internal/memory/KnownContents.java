package io.cuvette.instrument.internal.memory;

import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import org.jspecify.annotations.Nullable;

/** Which bytes were written, of what is copied to where a program looks. Not thread-safe. */
public final class KnownContents {
  private final BlockLedger blocks;
  private final HostViews views;
  private final HostReads hostReads;

  KnownContents(BlockLedger blocks, HostViews views, HostReads hostReads) {
    this.blocks = blocks;
    this.views = views;
    this.hostReads = hostReads;
  }

  /** Whether what work copies to the host was written, and is not what the work writes. */
  public void check(Work work, Findings findings) {
    Range from = work.copied();
    if (from == null || from.bytes() == 0) {
      return;
    }
    Range to = work.ranges().getLast();
    if (from.overlaps(to)) {
      findings.add(Misuse.OVERLAPPING_COPY, work.site, "%s overlaps the %s".formatted(from, to));
    }
    if (blocks.liveAround(to.address()) == null) {
      checkWritten(from, work.site, findings);
    }
    if (contentsAt(to) == null) {
      check(from, work.site, findings);
    }
  }

  /** Whether what is copied to the host was written. */
  void check(Range from, CallTrace here, Findings findings) {
    KnownBlock block = blocks.liveAround(from.address());
    Contents contents = block == null ? null : block.contents();
    long missing = contents == null ? 0 : contents.missing(from.address(), from.bytes());
    if (block != null && missing > 0 && findings.isEmpty()) { // else it is for that reason
      KnownBlock lent = block.lentAround(from.address());
      findings.add(
          Misuse.UNINITIALIZED_READ,
          here,
          "%s: %d bytes of it were never written (%s)".formatted(from, missing, lent),
          lent.allocated);
    }
  }

  /** Whether the host copies what somebody wrote to memory where a program may look at it. */
  public void checkCopyByHost(Range from, long to, CallTrace here, Findings findings) {
    Range target = views.resolve(new Range(to, 1, Kind.WRITE, true));
    if (to == 0 || blocks.liveAround(target.address()) == null) {
      checkWritten(from, here, findings);
    }
  }

  /** Whether anything was written in memory of the host. */
  private void checkWritten(Range from, CallTrace here, Findings findings) {
    KnownBlock block = blocks.liveAround(from.address());
    if (block != null && findings.isEmpty() && hostReads.isUnwritten(block, from)) {
      KnownBlock lent = block.lentAround(from.address());
      findings.add(
          Misuse.UNINITIALIZED_READ,
          here,
          "%s: nothing of it was ever written (%s)".formatted(from, lent),
          lent.allocated);
    }
  }

  private @Nullable Contents contentsAt(Range range) {
    KnownBlock block = blocks.liveAround(range.address());
    return block == null ? null : block.contents();
  }

  /** Notes what queued work writes. */
  public void written(Work work) {
    Range from = work.copied();
    for (Range range : work.ranges()) {
      Contents contents = range.kind() == Kind.WRITE ? contentsAt(range) : null;
      Contents source = from == null ? null : contentsAt(from);
      if (contents != null && source != null && from != null) {
        contents.copy(range.address(), source, from.address(), range.bytes());
      } else if (contents != null && from != null && isUnwrittenOnHost(from)) {
        contents.forget(range.address(), range.bytes());
      } else if (contents != null) {
        contents.write(range.address(), range.bytes());
      }
      if (range.kind() == Kind.USE) {
        written(range);
      }
    }
  }

  private boolean isUnwrittenOnHost(Range from) {
    KnownBlock block = blocks.liveAround(from.address());
    return block != null && hostReads.isUnwritten(block, from);
  }

  /** Notes that memory may be written by what is not seen. */
  public void written(Range range) {
    KnownBlock block = blocks.liveAround(range.address());
    if (block != null) {
      block.written(range.address(), range.bytes());
      hostReads.written(block, range);
    }
  }
}
