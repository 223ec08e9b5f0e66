package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.BlockListener;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import java.util.List;

/**
 * What the sanitizer learns from the library's pools: the blocks that are lent, and what the host
 * does with memory. Memory that no driver gave is passed over. Thread-safe.
 */
public final class LentBlocks implements BlockListener {
  private final SanitizerCore core;

  public LentBlocks(SanitizerCore core) {
    this.core = core;
  }

  @Override
  public void blockAllocated(Block block, int device, long stream) {
    CallTrace site =
        CallTrace.often(
            "allocate", "address", block.address(), "bytes", block.bytes(), "stream", stream);
    core.check(findings -> {
      Lane lane = core.streams.lane(device, stream, site, findings);
      core.memory.parts.lent(block, lane, site, findings);
    });
  }

  @Override
  public void blockAllocated(Block block) {
    CallTrace site =
        CallTrace.often("allocate", "address", block.address(), "bytes", block.bytes());
    core.check(findings -> core.memory.parts.lent(block, null, site, findings));
  }

  @Override
  public void leftByGraphs(Block block) {
    core.check(_ -> core.memory.parts.leftByGraphs(block));
  }

  @Override
  public void blockFreed(Block block) {
    CallTrace site = CallTrace.often("close", "address", block.address(), "bytes", block.bytes());
    core.check(findings -> core.memory.parts.cameBack(block, site, findings));
  }

  @Override
  public void usedElsewhere(long address, long bytes, int device, long stream) {
    CallTrace site =
        CallTrace.often("recordUse", "address", address, "bytes", bytes, "stream", stream);
    core.check(findings -> {
      Lane lane = core.streams.lane(device, stream, site, findings);
      Range range = new Range(address, bytes, Kind.HOLD, false);
      if (lane != null && lane.capture() == null) {
        core.memory.use(lane, List.of(range), site, null);
        core.memory.hostReads.unseen(lane, site);
      }
      core.memory.contents.written(range);
    });
  }

  @Override
  public void hostAccess(long address, long bytes, boolean writes) {
    CallTrace site =
        CallTrace.passing(writes ? "copyFrom" : "copyTo", "address", address, "bytes", bytes);
    Range range = new Range(address, bytes, writes ? Kind.WRITE : Kind.READ, false);
    core.askForShown();
    core.check(findings -> core.memory.checkHost(range, site, findings));
  }

  @Override
  public void hostCopy(long address, long bytes, long target) {
    CallTrace site = CallTrace.passing("copyTo", "address", address, "bytes", bytes);
    Range range = new Range(address, bytes, Kind.READ, false);
    core.check(findings -> core.memory.contents.checkCopyByHost(range, target, site, findings));
  }
}
