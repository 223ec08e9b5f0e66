package io.cuvette.instrument.internal.memory;

import io.cuvette.driver.LaunchWatcher;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.Clock;
import io.cuvette.instrument.internal.order.HappensBefore;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.order.Turn;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.IntPredicate;
import org.jspecify.annotations.Nullable;

/**
 * What the sanitizer knows about memory: the blocks, and the work that may still use them. Not
 * thread-safe.
 */
public final class KnownMemory {
  /** The method that frees memory given in stream order; memFree does so too, at once. */
  private static final String FREE_IN_ORDER = "memFreeAsync";

  private final BlockLedger blocks = new BlockLedger();
  private final HappensBefore order;

  /** What pools lend of the blocks. */
  public final PoolParts parts;

  /** Where else than the device the host sees memory. */
  public final HostViews views = new HostViews();

  /** What is mapped where addresses were reserved. */
  public final KnownMappings mappings;

  /** What the host must not change yet. */
  public final HostReads hostReads;

  /** What was written. */
  public final KnownContents contents;

  /** What kernels may have told the host. */
  public final TellingLaunches telling = new TellingLaunches();

  /** What kernels touch at the same time. */
  public final KnownLaunches launches;

  public KnownMemory(HappensBefore order) {
    this.order = order;
    this.parts = new PoolParts(blocks, order);
    this.mappings = new KnownMappings(blocks, order);
    this.hostReads = new HostReads(order);
    this.contents = new KnownContents(blocks, views, hostReads);
    this.launches = new KnownLaunches(blocks, order);
  }

  /** Notes memory that the driver gave to the host as well. */
  public void allocatedOnHost(MemorySegment memory, String freedBy, CallTrace here) {
    add(KnownBlock.ofHost(memory, freedBy, here));
  }

  /** Notes page-locked memory that the driver gave, in which nobody has written yet. */
  public void allocatedPinned(MemorySegment memory, CallTrace here) {
    allocatedOnHost(memory, "memFreeHost", here);
    Unwritten.mark(memory);
  }

  /**
   * Notes memory of the program that was page-locked. What a file has is not looked at: it may
   * shrink.
   */
  public void registered(MemorySegment memory, CallTrace here) {
    if (memory.isMapped()) {
      allocated(memory.address(), memory.byteSize(), "memHostUnregister", here);
    } else {
      allocatedOnHost(memory, "memHostUnregister", here);
    }
  }

  /** Notes that the host sees a range somewhere. */
  public void viewed(MemorySegment view, long address) {
    views.add(view, address);
    KnownBlock block = blocks.liveAround(address);
    if (block != null) {
      block.seenAs(view, address);
    }
  }

  /** Notes memory that the driver gave; {@code freedBy} is the method that frees it. */
  public void allocated(long address, long bytes, String freedBy, CallTrace here) {
    add(new KnownBlock(address, bytes, freedBy, here));
  }

  /** Notes device memory that the driver gave, in order of no stream. */
  public void allocatedOnDevice(int device, long address, long bytes, CallTrace here) {
    add(new KnownBlock(address, bytes, "memFree", here).ofDevice(device));
  }

  /**
   * The device that a program waits for by freeing a block: one that it never used, since that the
   * driver waits is nothing to rely on otherwise. -1 for none.
   */
  public int waitsFor(long address) {
    KnownBlock block = blocks.liveAt(address);
    return block == null ? -1 : block.waitsFor();
  }

  private void add(KnownBlock block) {
    if (block.bytes > 0 && block.address != 0) {
      blocks.add(block);
    }
  }

  /** Notes memory of another process; a driver may give what it gave before once more. */
  public void imported(long address, long bytes, String freedBy, CallTrace here) {
    KnownBlock known = blocks.liveAt(address);
    if (known == null || known.bytes != bytes || !known.freedBy.equals(freedBy)) {
      KnownBlock block = new KnownBlock(address, bytes, freedBy, here);
      block.share();
      add(block);
    }
  }

  /**
   * Notes memory that the driver gave in order of a stream: other streams' use must come after.
   *
   * @param onDevice whether the host cannot touch it
   */
  public void allocatedInOrder(
      long address, long bytes, @Nullable Lane lane, boolean onDevice, CallTrace here) {
    KnownBlock block = new KnownBlock(address, bytes, FREE_IN_ORDER, here);
    if (lane != null && lane.capture() != null) {
      add(block.ofGraph(lane.capture()));
      return;
    }
    add(onDevice ? block.ofDevice() : block);
    if (lane != null) {
      use(lane, List.of(new Range(address, bytes, Kind.WRITE, false)), here, null);
      Clock _ = lane.known(); // a write that follows must be seen: the allocation writes nothing
    }
  }

  /** Notes memory that launches of a graph give. */
  public void allocatedInGraph(long address, long bytes, CallTrace here) {
    add(new KnownBlock(address, bytes, FREE_IN_ORDER, here).ofGraph(here));
  }

  /** The live block around an address that is no memory of a graph; null if there is none. */
  @Nullable KnownBlock outsideOfGraphs(long address) {
    KnownBlock block = blocks.liveAround(address);
    return block == null || block.graph != null ? null : block;
  }

  /** Whether a block is the live one at its address. */
  boolean isLive(KnownBlock block) {
    return blocks.liveAround(block.address) == block;
  }

  /** Checks a free in order of a stream, behind all uses; false if launches do it later. */
  public boolean checkFreeInOrder(long address, Lane lane, CallTrace here, Findings findings) {
    KnownBlock block = blocks.liveAt(address);
    if (block == null) {
      explainFree(blocks, address, here, findings);
      return true;
    }
    checkFreedBy(block, FREE_IN_ORDER, here, findings);
    if (lane.capture() != null && lane.capture() != block.graph) {
      return false;
    }
    Access use = block.uses.unordered(block.range(), lane, order);
    if (use != null) {
      inUse(block, use, here, findings);
    }
    return true;
  }

  /**
   * Notes memory of an allocator outside the driver. It may be a piece of a block known already,
   * and then stays one.
   */
  public void allocatedNatively(long address, long bytes, CallTrace here) {
    if (blocks.liveAround(address) == null) {
      allocated(address, bytes, "callFree", here);
    }
  }

  /** Whether an allocator outside the driver may free an address now; an unknown one it may. */
  public void checkFreeNatively(long address, CallTrace here, Findings findings) {
    KnownBlock live = blocks.liveAt(address);
    boolean known = live != null && live.freedBy.equals("callFree");
    if (known || (live == null && blocks.freedAt(address) != null)) {
      checkFree(address, "callFree", here, findings);
    }
  }

  /** Removes a block of an allocator outside the driver; null if it is not known. */
  public @Nullable KnownBlock freeNatively(long address, CallTrace here) {
    KnownBlock live = blocks.liveAt(address);
    return live != null && live.freedBy.equals("callFree") ? free(address, here) : null;
  }

  /** Whether a block may be freed now by this method. Freeing 0 is nothing. */
  public void checkFree(long address, String method, CallTrace here, Findings findings) {
    KnownBlock block = blocks.liveAt(address);
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

  private static void checkFreedBy(
      KnownBlock block, String method, CallTrace here, Findings findings) {
    boolean atOnce = block.freedBy.equals(FREE_IN_ORDER) && method.equals("memFree");
    if (!atOnce && !block.freedBy.equals(method)) {
      findings.add(
          Misuse.INVALID_FREE, here, block + " is freed by " + block.freedBy, block.allocated);
    }
  }

  /** Removes a block, before the driver may reuse its address. */
  public @Nullable KnownBlock free(long address, CallTrace here) {
    return blocks.free(address, here);
  }

  public void restore(KnownBlock block) {
    blocks.restore(block);
  }

  /** Whether an address is in a live block of the driver, whichever pool lends it. */
  public void checkAllocation(long address, CallTrace here, Findings findings) {
    if (blocks.liveAround(address) == null) {
      explainUse(blocks, new Range(address, 1, Kind.HOLD, false), here, findings);
    }
  }

  /**
   * What a kernel may use that is given a number which may be an address: from there to the end of
   * its block, or of what is mapped; null if it is none.
   */
  public @Nullable Range argument(long address) {
    KnownBlock block = blocks.liveAround(address);
    if (block == null) {
      return blocks.freedAround(address) == null ? null : new Range(address, 1, Kind.USE, false);
    }
    KnownBlock lent = block.lentAround(address);
    KnownBlock below = lent.parts() == null ? null : lent.parts().liveBefore(address);
    if (below != null && below.address + below.bytes == address) {
      return null; // where a buffer ends, as for a loop
    }
    long bytes = lent.parts() == null ? lent.address + lent.bytes - address : 1;
    long mapped = KnownMappings.isReserved(lent) ? mappings.mappedFrom(address, bytes) : bytes;
    return new Range(address, Math.max(mapped, 1), Kind.USE, false);
  }

  /** Notes that other processes may write a block from now on. */
  public void shared(long address) {
    KnownBlock block = blocks.liveAround(address);
    if (block != null) {
      block.share();
    }
  }

  /** Whether a range lies in one live block, and in one that is lent if a pool lends from it. */
  public void checkLive(Range range, CallTrace here, Findings findings) {
    if (range.bytes() == 0) {
      return;
    }
    BlockLedger ledger = blocks;
    while (ledger != null) {
      KnownBlock block = ledger.liveAround(range.address());
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
      if (KnownMappings.isReserved(block)) {
        mappings.check(range, here, findings);
      }
      ledger = block.parts();
    }
  }

  /**
   * Whether all earlier uses that matter to this one come before it. Work behind a gate that is
   * closed is looked at by {@link KnownLaunches} instead.
   */
  public void checkRace(Range range, Lane lane, CallTrace here, Findings findings) {
    KnownBlock block = blocks.liveAround(range.address());
    Access earlier = block == null ? null : block.uses.race(range, lane, order);
    if (block != null && earlier != null) {
      KnownBlock lent = block.lentAround(range.address());
      findings.add(
          Misuse.RACE,
          here,
          "%s (%s) is not ordered after the %s on %s"
              .formatted(range, lent, earlier.range().kind(), earlier.lane().name),
          earlier.site(),
          lent.allocated);
    }
  }

  /**
   * Notes that work may change memory of the host from now on: before the driver has it, since it
   * may be done, and looked at by another thread, before it is noted.
   */
  public void begins(Work work, Lane lane, Turn turn) {
    boolean isSeen = false;
    for (Range range : work.ranges()) {
      KnownBlock block = blocks.liveAround(range.address());
      if (block != null && (range.kind() == Kind.WRITE || range.kind() == Kind.USE)) {
        hostReads.written(block, range);
        isSeen |= block.isOfHost();
      }
    }
    if (isSeen && work.watcher() instanceof TouchedBytes touched) {
      telling.begins(touched, turn.work());
    }
  }

  /** Learns that work is done, and what the host may know from kernels. */
  public void finished(Clock work, Findings findings) {
    if (telling.haveTold()) {
      Clock told = telling.told();
      order.finish(told);
      hostReads.forget(told);
    }
    order.finish(work);
    hostReads.finished(findings);
    launches.finished(findings);
  }

  /** Notes the uses of a piece of work that was queued. */
  public void use(Lane lane, List<Range> ranges, CallTrace site, @Nullable LaunchWatcher watcher) {
    long number = lane.next();
    List<BooleanSupplier> closed = order.closedBefore(lane);
    ranges.forEach(range -> use(new Access(lane, number, range, site, watcher, closed)));
  }

  private void use(Access access) {
    KnownBlock block = blocks.liveAround(access.range().address());
    if (block != null && access.range().bytes() > 0) {
      KnownBlock lent = block.lentAround(access.range().address());
      hostReads.add(block, lent, access);
      Access kept = access.watcher() == null ? access : lent.widened(access);
      launches.used(kept, block.uses, lent);
      block.uses.add(kept, order);
    }
  }

  /**
   * Has later work of a stream come behind the work queued so far that may write a word, and behind
   * what the host learns before it writes it.
   *
   * @param isAwaited whether the stream still waits with that value there
   */
  public void awaitWord(long address, IntPredicate isAwaited, Lane lane) {
    Range word = new Range(address, Integer.BYTES, Kind.READ, false);
    KnownBlock block = blocks.liveAround(address);
    if (block == null) {
      return;
    }
    block.uses.writers(word, order, writer -> order.await(lane, writer));
    MemorySegment seen = block.seen(word);
    if (seen != null) {
      order.gate(
          lane, () -> isLive(block) && isAwaited.test(seen.get(ValueLayout.JAVA_INT_UNALIGNED, 0)));
    }
  }

  /** Whether the host may read or write a range now: no work that matters is pending. */
  public void checkHost(Range range, CallTrace here, Findings findings) {
    KnownBlock block = blocks.liveAround(range.address());
    Access use = block == null ? null : block.uses.besideHost(range, order);
    if (block != null && use != null) {
      KnownBlock lent = block.lentAround(range.address());
      findings.add(
          Misuse.HOST_RACE,
          here,
          "%s (%s) by the host may come before the %s on %s is done"
              .formatted(range, lent, use.range().kind(), use.lane().name),
          use.site(),
          lent.allocated);
    } else if (block != null) {
      launches.usedByHost(range, here, block.uses, block.lentAround(range.address()));
    }
  }

  public void leaks(Findings findings) {
    mappings.leaks(findings);
    blocks
        .live()
        .forEach(block -> {
          if (block.graph == null) { // whose bytes are there only if a launch has left them
            findings.leak(block.toString(), block.allocated);
          }
        });
  }

  private void checkIdle(KnownBlock block, CallTrace here, Findings findings) {
    Access use = block.uses.unfinished(block.range(), order);
    if (use != null) {
      inUse(block, use, here, findings);
    }
  }

  static void inUse(KnownBlock block, Access use, CallTrace here, Findings findings) {
    findings.add(
        Misuse.FREE_WHILE_IN_USE,
        here,
        "%s may still be used by work on %s".formatted(block, use.lane().name),
        use.site(),
        block.allocated);
  }

  static void outOfBounds(KnownBlock block, Range range, CallTrace here, Findings findings) {
    String rule =
        "%s begins %d bytes into %s".formatted(range, range.address() - block.address, block);
    findings.add(Misuse.OUT_OF_BOUNDS, here, rule, block.allocated);
  }

  private static void explainUse(
      BlockLedger blocks, Range range, CallTrace here, Findings findings) {
    KnownBlock freed = blocks.freedAround(range.address());
    if (freed != null && freed.freed() != null) {
      findings.add(
          Misuse.USE_AFTER_FREE, here, range + ": freed " + freed, freed.freed(), freed.allocated);
      return;
    }
    KnownBlock before = blocks.liveBefore(range.address());
    String nearest = before == null ? "" : "; the nearest below is " + before;
    findings.add(Misuse.UNKNOWN_ADDRESS, here, range + " is in no block" + nearest);
  }

  static void explainFree(BlockLedger blocks, long address, CallTrace here, Findings findings) {
    KnownBlock freed = blocks.freedAt(address);
    KnownBlock around = blocks.liveAround(address);
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
