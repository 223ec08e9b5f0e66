package io.cuvette.instrument;

import io.cuvette.instrument.Access.Kind;
import io.cuvette.instrument.Access.Range;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * What the sanitizer knows about memory: the blocks, and the work that may still use them. Not
 * thread-safe.
 */
final class MemoryState {
  /** The method that frees memory given in stream order; memFree does so too, at once. */
  private static final String FREE_IN_ORDER = "memFreeAsync";

  private final BlockLedger blocks = new BlockLedger();
  private final StreamOrder order;

  /** What pools lend of the blocks. */
  final PoolParts parts;

  /** Where else than the device the host sees memory. */
  final HostViews views = new HostViews();

  /** What the host must not change yet. */
  final HostReads hostReads;

  MemoryState(StreamOrder order) {
    this.order = order;
    this.parts = new PoolParts(blocks, order);
    this.hostReads = new HostReads(order);
  }

  /** Notes memory that the driver gave to the host as well. */
  void allocatedOnHost(MemorySegment memory, String freedBy, Site here) {
    add(Block.ofHost(memory, freedBy, here));
  }

  /** Notes that the host sees a range somewhere. */
  void viewed(MemorySegment view, long address) {
    views.add(view, address);
    Block block = blocks.liveAround(address);
    if (block != null) {
      block.seenAs(view, address);
    }
  }

  /** Notes memory that the driver gave; {@code freedBy} is the method that takes it back. */
  void allocated(long address, long bytes, String freedBy, Site here) {
    add(new Block(address, bytes, freedBy, here));
  }

  /** Notes device memory that the driver gave, in order of no stream. */
  void allocatedOnDevice(long address, long bytes, Site here) {
    add(new Block(address, bytes, "memFree", here).ofDevice());
  }

  private void add(Block block) {
    if (block.bytes > 0 && block.address != 0) {
      blocks.add(block);
    }
  }

  /** Notes memory of another process; a driver may give what it gave before once more. */
  void imported(long address, long bytes, String freedBy, Site here) {
    Block known = blocks.liveAt(address);
    if (known == null || known.bytes != bytes || !known.freedBy.equals(freedBy)) {
      Block block = new Block(address, bytes, freedBy, here);
      block.share();
      add(block);
    }
  }

  /**
   * Notes memory that the driver gave in order of a stream: other streams' use must come after.
   *
   * @param onDevice whether the host cannot touch it
   */
  void allocatedInOrder(
      long address, long bytes, @Nullable Lane lane, boolean onDevice, Site here) {
    Block block = new Block(address, bytes, FREE_IN_ORDER, here);
    add(onDevice ? block.ofDevice() : block);
    if (lane != null) {
      use(new Access(lane, lane.next(), new Range(address, bytes, Kind.WRITE, false), here));
    }
  }

  /** Whether a block may be freed in order of a stream: all its uses come before. */
  void checkFreeInOrder(long address, Lane lane, Site here, Findings findings) {
    Block block = blocks.liveAt(address);
    if (block == null) {
      explainFree(blocks, address, here, findings);
      return;
    }
    checkFreedBy(block, FREE_IN_ORDER, here, findings);
    Access use = block.uses.unordered(block.range(), lane, order);
    if (use != null) {
      inUse(block, use, here, findings);
    }
  }

  /**
   * Notes memory that somebody else's allocator gave. It may be a piece of a block known already,
   * and then stays one.
   */
  void allocatedNatively(long address, long bytes, Site here) {
    if (blocks.liveAround(address) == null) {
      allocated(address, bytes, "callFree", here);
    }
  }

  /** Whether somebody else's allocator may free an address now; one not known here it may. */
  void checkFreeNatively(long address, Site here, Findings findings) {
    Block live = blocks.liveAt(address);
    boolean known = live != null && live.freedBy.equals("callFree");
    if (known || (live == null && blocks.freedAt(address) != null)) {
      checkFree(address, "callFree", here, findings);
    }
  }

  /** Takes a block of somebody else's allocator away; null if it is not known. */
  @Nullable Block freeNatively(long address, Site here) {
    Block live = blocks.liveAt(address);
    return live != null && live.freedBy.equals("callFree") ? free(address, here) : null;
  }

  /** Whether a block may be freed now by this method. Freeing 0 is nothing. */
  void checkFree(long address, String method, Site here, Findings findings) {
    Block block = blocks.liveAt(address);
    if (block == null) {
      explainFree(blocks, address, here, findings);
      return;
    }
    checkFreedBy(block, method, here, findings);
    // A pool frees what it lent while its streams may work there: that the driver waits is its
    // plan.
    if (block.parts() == null || block.freedBy.equals(FREE_IN_ORDER)) {
      checkIdle(block, here, findings);
    }
  }

  private static void checkFreedBy(Block block, String method, Site here, Findings findings) {
    boolean atOnce = block.freedBy.equals(FREE_IN_ORDER) && method.equals("memFree");
    if (!atOnce && !block.freedBy.equals(method)) {
      findings.add(
          Misuse.INVALID_FREE, here, block + " is freed by " + block.freedBy, block.allocated);
    }
  }

  /** Takes a block away, before the driver may give its address to somebody else. */
  @Nullable Block free(long address, Site here) {
    return blocks.free(address, here);
  }

  void restore(Block block) {
    blocks.restore(block);
  }

  /** Whether an address is in a live block of the driver, whoever it is lent to. */
  void checkAllocation(long address, Site here, Findings findings) {
    if (blocks.liveAround(address) == null) {
      explainUse(blocks, new Range(address, 1, Kind.HOLD, false), here, findings);
    }
  }

  /** Notes that other processes may write a block from now on. */
  void shared(long address) {
    Block block = blocks.liveAround(address);
    if (block != null) {
      block.share();
    }
  }

  /** Whether a range lies in one live block, and in one that is lent if a pool lends from it. */
  void checkLive(Range range, Site here, Findings findings) {
    if (range.bytes() == 0) {
      return;
    }
    BlockLedger ledger = blocks;
    while (ledger != null) {
      Block block = ledger.liveAround(range.address());
      if (block == null) {
        if (!range.host() || ledger != blocks) {
          explainUse(ledger, range, here, findings);
        }
        return;
      }
      if (!block.holds(range)) {
        outOfBounds(block, range, here, findings);
        return;
      }
      ledger = block.parts();
    }
  }

  /** Whether all earlier uses that matter to this one come before it. */
  void checkRace(Range range, Lane lane, Site here, Findings findings) {
    Block block = blocks.liveAround(range.address());
    Access earlier = block == null ? null : block.uses.race(range, lane, order);
    if (block != null && earlier != null) {
      findings.add(
          Misuse.RACE,
          here,
          "%s (%s) is not ordered after the %s on %s"
              .formatted(range, block, earlier.range().kind(), earlier.lane().name),
          earlier.site(),
          block.allocated);
    }
  }

  /** Notes work that was queued. */
  void use(Access access) {
    Block block = blocks.liveAround(access.range().address());
    if (block != null && access.range().bytes() > 0) {
      hostReads.add(block, access);
      block.uses.add(access, order);
    }
  }

  /** Whether the host may read or write a range now: no work that matters is pending. */
  void checkHost(Range range, Site here, Findings findings) {
    Block block = blocks.liveAround(range.address());
    Access use = block == null ? null : block.uses.besideHost(range, order);
    if (block != null && use != null) {
      findings.add(
          Misuse.HOST_RACE,
          here,
          "%s (%s) by the host may come before the %s on %s is done"
              .formatted(range, block, use.range().kind(), use.lane().name),
          use.site(),
          block.allocated);
    }
  }

  /** Whether what work copies to the host was written, and is not what the work writes. */
  void checkContent(Work work, Findings findings) {
    Range from = work.copied();
    if (from == null || from.bytes() == 0) {
      return;
    }
    Range to = work.ranges().getLast();
    if (from.overlaps(to)) {
      findings.add(Misuse.OVERLAPPING_COPY, work.site, "%s overlaps the %s".formatted(from, to));
    }
    Block block = blocks.liveAround(from.address());
    Contents contents = block == null ? null : block.contents();
    long missing =
        contents == null || contentsAt(to) != null
            ? 0
            : contents.missing(from.address(), from.bytes());
    if (block != null && missing > 0 && findings.isEmpty()) { // else it is for that reason
      findings.add(
          Misuse.UNINITIALIZED_READ,
          work.site,
          "%s: %d bytes of it were never written (%s)".formatted(from, missing, block),
          lentAround(block, from.address()).allocated);
    }
  }

  private @Nullable Contents contentsAt(Range range) {
    Block block = blocks.liveAround(range.address());
    return block == null ? null : block.contents();
  }

  /** The innermost block with an address. */
  private static Block lentAround(Block block, long address) {
    BlockLedger parts = block.parts();
    Block part = parts == null ? null : parts.liveAround(address);
    return part == null ? block : lentAround(part, address);
  }

  /** Notes what queued work writes. */
  void written(Work work) {
    Range from = work.copied();
    for (Range range : work.ranges()) {
      Contents contents = range.kind() == Kind.WRITE ? contentsAt(range) : null;
      Contents source = from == null ? null : contentsAt(from);
      if (contents != null && source != null && from != null) {
        contents.copy(range.address(), source, from.address(), range.bytes());
      } else if (contents != null) {
        contents.write(range.address(), range.bytes());
      }
    }
  }

  /** Notes that memory may be written by what is not seen. */
  void written(long address, long bytes) {
    Block block = blocks.liveAround(address);
    if (block != null) {
      block.written(address, bytes);
    }
  }

  void leaks(Findings findings) {
    blocks.live().forEach(block -> findings.leak(block.toString(), block.allocated));
  }

  private void checkIdle(Block block, Site here, Findings findings) {
    Access use = block.uses.unfinished(block.range(), order);
    if (use != null) {
      inUse(block, use, here, findings);
    }
  }

  static void inUse(Block block, Access use, Site here, Findings findings) {
    findings.add(
        Misuse.FREE_WHILE_IN_USE,
        here,
        "%s may still be used by work on %s".formatted(block, use.lane().name),
        use.site(),
        block.allocated);
  }

  static void outOfBounds(Block block, Range range, Site here, Findings findings) {
    String rule =
        "%s begins %d bytes into %s".formatted(range, range.address() - block.address, block);
    findings.add(Misuse.OUT_OF_BOUNDS, here, rule, block.allocated);
  }

  private static void explainUse(BlockLedger blocks, Range range, Site here, Findings findings) {
    Block freed = blocks.freedAround(range.address());
    if (freed != null && freed.freed() != null) {
      findings.add(
          Misuse.USE_AFTER_FREE, here, range + ": freed " + freed, freed.freed(), freed.allocated);
      return;
    }
    Block before = blocks.liveBefore(range.address());
    String nearest = before == null ? "" : "; the nearest below is " + before;
    findings.add(Misuse.UNKNOWN_ADDRESS, here, range + " is in no block" + nearest);
  }

  static void explainFree(BlockLedger blocks, long address, Site here, Findings findings) {
    Block freed = blocks.freedAt(address);
    Block around = blocks.liveAround(address);
    if (freed != null && freed.freed() != null) {
      findings.add(
          Misuse.DOUBLE_FREE, here, freed + " is freed already", freed.freed(), freed.allocated);
    } else if (around != null) {
      String rule = "%d bytes into %s".formatted(address - around.address, around);
      findings.add(Misuse.INVALID_FREE, here, rule, around.allocated);
    } else if (address != 0) {
      findings.add(Misuse.INVALID_FREE, here, "no block begins at 0x%x".formatted(address));
    }
  }
}
