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

  /** What the host must not change yet. */
  final HostReads hostReads;

  MemoryState(StreamOrder order) {
    this.order = order;
    this.hostReads = new HostReads(order);
  }

  /** Notes page-locked memory that the driver gave. */
  void pinned(MemorySegment memory, Site here) {
    blocks.add(Block.pinned(memory, here));
  }

  /** Notes memory that the driver gave; {@code freedBy} is the method that takes it back. */
  void allocated(long address, long bytes, String freedBy, Site here) {
    if (bytes > 0 && address != 0) {
      blocks.add(new Block(address, bytes, freedBy, here));
    }
  }

  /** Notes memory of another process; a driver may give what it gave before once more. */
  void imported(long address, long bytes, String freedBy, Site here) {
    Block known = blocks.liveAt(address);
    if (known == null || known.bytes != bytes || !known.freedBy.equals(freedBy)) {
      allocated(address, bytes, freedBy, here);
    }
  }

  /** Notes memory that the driver gave in order of a stream: other streams' use must come after. */
  void allocatedInOrder(long address, long bytes, Lane lane, Site here) {
    allocated(address, bytes, FREE_IN_ORDER, here);
    use(new Access(lane, lane.next(), new Range(address, bytes, Kind.WRITE, false), here));
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
    checkIdle(block, here, findings);
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
    Block block = blocks.free(address, here);
    if (block != null) {
      hostReads.freed(block);
    }
    return block;
  }

  void restore(Block block) {
    blocks.restore(block);
  }

  /** Whether a range lies in one live block. */
  void checkLive(Range range, Site here, Findings findings) {
    if (range.bytes() == 0) {
      return;
    }
    Block block = blocks.liveAround(range.address());
    if (block == null) {
      if (!range.host()) {
        explainUse(blocks, range, here, findings);
      }
    } else if (!block.holds(range)) {
      outOfBounds(block, range, here, findings);
    } else if (block.parts() != null) {
      checkPart(block.parts(), range, here, findings);
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

  /** Notes a smaller block that a pool gave out of one of its own. */
  void partAllocated(long address, long bytes, Site here, Findings findings) {
    Block whole = blocks.liveAround(address);
    if (whole == null) {
      findings.add(Misuse.UNKNOWN_ADDRESS, here, "the pool holds no block there");
      return;
    }
    Block part = new Block(address, bytes, "blockFreed", here);
    if (!whole.holds(part.range())) {
      outOfBounds(whole, part.range(), here, findings);
    }
    whole.divide().add(part);
  }

  /** Takes a smaller block back that later work of a stream may get. */
  void partFreed(long address, Lane lane, Site here, Findings findings) {
    Block whole = blocks.liveAround(address);
    BlockLedger parts = whole == null ? null : whole.parts();
    Block part = parts == null ? null : parts.liveAt(address);
    if (whole == null || parts == null || part == null) {
      explainFree(parts == null ? blocks : parts, address, here, findings);
      return;
    }
    Access use = whole.uses.unordered(part.range(), lane, order);
    if (use != null) {
      inUse(part, use, here, findings);
    }
    parts.free(address, here);
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

  private static void inUse(Block block, Access use, Site here, Findings findings) {
    findings.add(
        Misuse.FREE_WHILE_IN_USE,
        here,
        "%s may still be used by work on %s".formatted(block, use.lane().name),
        use.site(),
        block.allocated);
  }

  private static void checkPart(BlockLedger parts, Range range, Site here, Findings findings) {
    Block part = parts.liveAround(range.address());
    if (part == null) {
      explainUse(parts, range, here, findings);
    } else if (!part.holds(range)) {
      outOfBounds(part, range, here, findings);
    }
  }

  private static void outOfBounds(Block block, Range range, Site here, Findings findings) {
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

  private static void explainFree(BlockLedger blocks, long address, Site here, Findings findings) {
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
