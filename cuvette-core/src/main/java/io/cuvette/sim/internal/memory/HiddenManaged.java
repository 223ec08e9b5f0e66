package io.cuvette.sim.internal.memory;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.HeldMemory;
import io.cuvette.sim.internal.queue.SimOp;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/**
 * The managed memory that the host may not touch now, where it has no concurrent access: what
 * queued work uses, from when it is queued until the host knows that the work is done. What it
 * holds is not there meanwhile; a host that reads gets nonsense, and one that writes is found.
 * Guarded by the driver's lock.
 */
public final class HiddenManaged {
  private final boolean concurrent;
  private final List<HostBlock> hidden = new ArrayList<>();

  public HiddenManaged(SimulatedOptions options) {
    this.concurrent = options.concurrentManaged();
  }

  /** An operation is queued. */
  public void queued(SimOp op) {
    if (concurrent) {
      return;
    }
    for (HeldMemory held : op.held()) {
      HostBlock block = (HostBlock) held;
      if (!block.isHidden() && block.isLive()) {
        block.hide();
        hidden.add(block);
      }
      block.queued();
    }
  }

  /** The host knows of all that is done. */
  public void observed() {
    SimRefusal written = null;
    for (Iterator<HostBlock> all = hidden.iterator(); all.hasNext(); ) {
      HostBlock block = all.next();
      if (!block.isUsed()) {
        all.remove();
        if (!block.show() && block.isLive()) {
          written = writtenMeanwhile(block);
          block.device.fail(written);
        }
      }
    }
    if (written != null) {
      throw written;
    }
  }

  private static SimRefusal writtenMeanwhile(HostBlock block) {
    return new SimRefusal(
        CudaStatus.ILLEGAL_ADDRESS,
        "the host wrote managed memory, %s, before it knew that the device is done with it "
                .formatted(block)
            + "(there is no concurrent managed access)");
  }
}
