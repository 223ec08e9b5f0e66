package io.cuvette.sim.internal.machine;

import io.cuvette.sim.internal.schedule.SimOp;
import io.cuvette.sim.internal.schedule.SimStream;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a graph was instantiated to. Its operations run one after the other in the stream of the
 * launch, in an order that the graph allows. Guarded by the driver's lock.
 */
public final class SimExecutable {
  private final List<SimOp> operations;
  private final List<SimUserObject> objects;
  private @Nullable SimOp last;
  private boolean destroyed;

  /** Takes over one reference to each of the objects. */
  public SimExecutable(List<SimOp> operations, List<SimUserObject> objects) {
    this.operations = operations;
    this.objects = List.copyOf(objects);
  }

  /** Queues the operations behind those of the launch before, or captures them. */
  public void launch(SimMachine machine, SimStream stream) {
    long now = machine.hostNanos();
    CaptureBranch branch = CaptureBranch.of(stream);
    if (branch == null && last != null && !last.isDone()) {
      machine.queue(SimOp.waiting(stream, last, now));
    }
    operations.forEach(operation -> machine.queue(operation.again(stream, now)));
    if (branch == null) {
      SimOp end = machine.queue(SimOp.point(stream, now));
      last = end;
      end.whenDone(() -> ended(end));
    } else {
      objects.forEach(SimUserObject::retain);
      objects.forEach(branch.capture.graph::retain);
    }
  }

  private void ended(SimOp end) {
    if (destroyed && end == last) {
      release();
    }
  }

  /** The objects stay as long as a launch runs. */
  public void destroy() {
    destroyed = true;
    if (last == null || last.isDone()) {
      release();
    }
  }

  private void release() {
    objects.forEach(SimUserObject::release);
  }
}
