package io.cuvette.instrument;

import io.cuvette.driver.BlockListener;
import org.jspecify.annotations.Nullable;

/** The smaller blocks that pools lend of the blocks that the driver gave. Not thread-safe. */
final class PoolParts {
  private final BlockLedger blocks;
  private final StreamOrder order;

  PoolParts(BlockLedger blocks, StreamOrder order) {
    this.blocks = blocks;
    this.order = order;
  }

  /**
   * Notes a block that a pool lends: in order of a stream, or to anybody if that is null. Whoever
   * had the memory before must have come to an end with it.
   */
  void lent(BlockListener.Block lent, @Nullable Lane lane, Site here, Findings findings) {
    Block whole = blocks.liveAround(lent.address());
    Block part = new Block(lent.address(), lent.bytes(), "close", here);
    Block around = around(lent);
    if (whole == null || around == null || !around.holds(part.range())) {
      return;
    }
    Block other = around.divide().liveOverlapping(part);
    if (other != null) {
      String rule = "%s is lent while %s is".formatted(part, other);
      findings.add(Misuse.LENT_TWICE, here, rule, other.allocated);
    }
    Access use =
        lane == null
            ? whole.uses.unfinished(part.range(), order)
            : whole.uses.unordered(part.range(), lane, order);
    if (use != null) {
      findings.add(
          Misuse.RACE,
          here,
          "%s is lent before the %s on %s".formatted(part, use.range(), use.lane().name),
          use.site());
    }
    around.divide().add(part);
    whole.handedOver(part);
  }

  /** Notes that the user of a block closed it. */
  void cameBack(BlockListener.Block lent, Site here, Findings findings) {
    Block around = around(lent);
    BlockLedger parts = around == null ? null : around.parts();
    if (parts != null && parts.free(lent.address(), here) == null) {
      MemoryState.explainFree(parts, lent.address(), here, findings);
    }
  }

  /** The memory that a pool lends a block from: the driver's, or a block of another pool. */
  private @Nullable Block around(BlockListener.Block lent) {
    Block around = blocks.liveAround(lent.address());
    for (int depth = 1; around != null && depth < lent.depth(); depth++) {
      BlockLedger parts = around.parts();
      around = parts == null ? null : parts.liveAround(lent.address());
    }
    return around;
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
      MemoryState.outOfBounds(whole, part.range(), here, findings);
    }
    whole.divide().add(part);
    whole.handedOver(part);
  }

  /** Takes a smaller block back that later work of a stream may get. */
  void partFreed(long address, Lane lane, Site here, Findings findings) {
    Block whole = blocks.liveAround(address);
    BlockLedger parts = whole == null ? null : whole.parts();
    Block part = parts == null ? null : parts.liveAt(address);
    if (whole == null || parts == null || part == null) {
      MemoryState.explainFree(parts == null ? blocks : parts, address, here, findings);
      return;
    }
    Access use = whole.uses.unordered(part.range(), lane, order);
    if (use != null) {
      MemoryState.inUse(part, use, here, findings);
    }
    parts.free(address, here);
  }
}
