package io.cuvette.instrument;

import io.cuvette.driver.BlockListener;
import io.cuvette.instrument.Access.Kind;
import io.cuvette.instrument.Access.Range;

/**
 * What the sanitizer learns from the library's pools: the blocks that are lent, and what the host
 * does with memory. Memory that no driver gave is passed over. Thread-safe.
 */
final class LentBlocks implements BlockListener {
  private final SanitizerCore core;

  LentBlocks(SanitizerCore core) {
    this.core = core;
  }

  @Override
  public void blockAllocated(Block block, int device, long stream) {
    Site site =
        Site.often(
            "allocate", "address", block.address(), "bytes", block.bytes(), "stream", stream);
    core.check(findings -> {
      Lane lane = core.streams.lane(device, stream, site, findings);
      if (lane != null) {
        core.streams.order.join(lane);
      }
      core.memory.parts.lent(block, lane, site, findings);
    });
  }

  @Override
  public void blockAllocated(Block block) {
    Site site = Site.often("allocate", "address", block.address(), "bytes", block.bytes());
    core.check(findings -> core.memory.parts.lent(block, null, site, findings));
  }

  @Override
  public void blockFreed(Block block) {
    Site site = Site.often("close", "address", block.address(), "bytes", block.bytes());
    core.check(findings -> core.memory.parts.cameBack(block, site, findings));
  }

  @Override
  public void usedElsewhere(long address, long bytes, int device, long stream) {
    Site site = Site.often("recordUse", "address", address, "bytes", bytes, "stream", stream);
    core.check(findings -> {
      Lane lane = core.streams.lane(device, stream, site, findings);
      if (lane != null && lane.capture() == null) {
        Range range = new Range(address, bytes, Kind.HOLD, false);
        core.memory.use(new Access(lane, lane.next(), range, site));
      }
      core.memory.written(address, bytes);
    });
  }

  @Override
  public void hostAccess(long address, long bytes, boolean writes) {
    Site site = Site.passing(writes ? "copyFrom" : "copyTo", "address", address, "bytes", bytes);
    Range range = new Range(address, bytes, writes ? Kind.WRITE : Kind.READ, false);
    core.check(findings -> core.memory.checkHost(range, site, findings));
  }
}
