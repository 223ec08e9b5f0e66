package io.cuvette.instrument.internal.memory;

import io.cuvette.driver.BlockListener;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.HappensBefore;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import org.jspecify.annotations.Nullable;

/** The smaller blocks that pools lend of the blocks that the driver gave. Not thread-safe. */
public final class PoolParts {
  private final BlockLedger blocks;
  private final HappensBefore order;

  PoolParts(BlockLedger blocks, HappensBefore order) {
    this.blocks = blocks;
    this.order = order;
  }

  /**
   * Notes a block that a pool lends: in order of a stream, or to anybody if that is null. Whoever
   * had the memory before must have come to an end with it.
   */
  public void lent(
      BlockListener.Block lent, @Nullable Lane lane, CallTrace here, Findings findings) {
    KnownBlock whole = blocks.liveAround(lent.address());
    KnownBlock part = new KnownBlock(lent.address(), lent.bytes(), "close", here);
    KnownBlock around = around(lent);
    if (whole == null || around == null || !around.holds(part.range())) {
      return;
    }
    KnownBlock other = around.divide(order.launches.get()).liveOverlapping(part);
    if (other != null) {
      String rule = "%s is lent while %s is".formatted(part, other);
      findings.add(Misuse.LENT_TWICE, here, rule, other.allocated);
    }
    Access use = earlierUse(whole, part, lane);
    if (use != null) {
      findings.add(
          Misuse.RACE,
          here,
          "%s is lent before the %s on %s".formatted(part, use.range(), use.lane().name),
          use.site());
    }
    around.divide(order.launches.get()).add(part);
    whole.handedOver(part);
    if (lane == null && other == null && use == null) {
      whole.markUnwritten(part.range());
    }
  }

  /** What the new user may not be ordered after; for captured work that is seen at its launch. */
  private @Nullable Access earlierUse(KnownBlock whole, KnownBlock part, @Nullable Lane lane) {
    if (lane == null) {
      return whole.uses.unfinished(part.range(), order);
    }
    return lane.capture() == null ? whole.uses.unordered(part.range(), lane, order) : null;
  }

  /** Notes that the user of a block closed it. */
  public void cameBack(BlockListener.Block lent, CallTrace here, Findings findings) {
    KnownBlock around = around(lent);
    BlockLedger parts = around == null ? null : around.parts();
    KnownBlock part = parts == null ? null : parts.free(lent.address(), here);
    if (around != null && part != null) {
      around.cameBack.set(part.address, part.bytes, order.launches.get());
    } else if (parts != null) {
      KnownMemory.explainFree(parts, lent.address(), here, findings);
    }
  }

  /** Notes that no graph keeps a block which is about to come back. */
  public void leftByGraphs(BlockListener.Block lent) {
    KnownBlock around = around(lent);
    KnownBlock part = around == null ? null : around.lentAround(lent.address());
    if (part != null) {
      part.isLeftByGraphs = true;
    }
  }

  /** The memory that a pool lends a block from: the driver's, or a block of another pool. */
  private @Nullable KnownBlock around(BlockListener.Block lent) {
    KnownBlock around = blocks.liveAround(lent.address());
    for (int depth = 1; around != null && depth < lent.depth(); depth++) {
      BlockLedger parts = around.parts();
      around = parts == null ? null : parts.liveAround(lent.address());
    }
    return around;
  }

  /** Notes a smaller block that a pool gave out of one of its own. */
  public void partAllocated(long address, long bytes, CallTrace here, Findings findings) {
    KnownBlock whole = blocks.liveAround(address);
    if (whole == null) {
      findings.add(Misuse.UNKNOWN_ADDRESS, here, "the pool holds no block there");
      return;
    }
    KnownBlock part = new KnownBlock(address, bytes, "blockFreed", here);
    if (!whole.holds(part.range())) {
      KnownMemory.outOfBounds(whole, part.range(), here, findings);
    }
    whole.divide(order.launches.get()).add(part);
    whole.handedOver(part);
  }

  /** Takes a smaller block back that later work of a stream may get. */
  public void partFreed(long address, Lane lane, CallTrace here, Findings findings) {
    KnownBlock whole = blocks.liveAround(address);
    BlockLedger parts = whole == null ? null : whole.parts();
    KnownBlock part = parts == null ? null : parts.liveAt(address);
    if (whole == null || parts == null || part == null) {
      KnownMemory.explainFree(parts == null ? blocks : parts, address, here, findings);
      return;
    }
    Access use = whole.uses.unordered(part.range(), lane, order);
    if (use != null) {
      KnownMemory.inUse(part, use, here, findings);
    }
    whole.cameBack.set(address, part.bytes, order.launches.get());
    parts.free(address, here);
  }
}
