package io.cuvette.sim.internal.schedule;

import io.cuvette.sim.internal.pace.Order;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimQueue;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntToLongFunction;

/** Queues whose first operation waits for nothing. Guarded by the driver's lock. */
final class ReadyQueues {
  private final List<SimQueue> ready = new ArrayList<>();
  private final IntToLongFunction ids = this::id;

  private long id(int index) {
    return ready.get(index).id;
  }

  boolean isEmpty() {
    return ready.isEmpty();
  }

  void add(SimQueue queue) {
    queue.readyIndex = ready.size();
    ready.add(queue);
  }

  /** Removes a queue if it is one of them. */
  void remove(SimQueue queue) {
    if (queue.readyIndex >= 0) {
      SimQueue last = ready.removeLast();
      if (last != queue) {
        ready.set(queue.readyIndex, last);
        last.readyIndex = queue.readyIndex;
      }
      queue.readyIndex = -1;
    }
  }

  /** The operation that is next in an order; there is one. */
  SimOp next(Order order) {
    return ready.get(order.next(ready.size(), ids)).first();
  }
}
