package io.cuvette.sim.internal.graph;

import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The streams that the branches of a launch run in, which the next launch uses again: it comes
 * later. Guarded by the driver's lock.
 */
final class Lanes {
  private final Map<SimDevice, List<SimStream>> all = new HashMap<>();
  private final Map<SimDevice, Integer> taken = new HashMap<>();

  /** The last operation of each stream, if more can follow it. */
  private final Map<SimStream, SimOp> ends = new HashMap<>();

  /** All of them are free again. */
  void reset() {
    taken.clear();
    ends.clear();
  }

  /** The stream that ends with one of some operations; another one if there is none. */
  SimStream after(List<SimOp> operations, SimDevice device, LaunchQueue queue) {
    for (SimOp each : operations) {
      if (each.stream.device == device && ends.get(each.stream) == each) {
        return each.stream;
      }
    }
    List<SimStream> known = all.computeIfAbsent(device, _ -> new ArrayList<>());
    int next = taken.merge(device, 1, Integer::sum) - 1;
    if (next == known.size()) {
      known.add(queue.lane(device));
    }
    return known.get(next);
  }

  /** An operation is the last of its stream. */
  SimOp ends(SimOp operation) {
    ends.put(operation.stream, operation);
    return operation;
  }

  /** Nothing more can be queued in a stream. */
  void close(SimStream stream) {
    ends.remove(stream);
  }
}
