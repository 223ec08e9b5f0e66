package io.cuvette.internal.graph;

import io.cuvette.internal.fence.Capture;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The captures whose memory a graph, or what was instantiated from it, keeps until its end.
 * Thread-safe, but for the end, which comes last.
 */
final class Retained {
  private final Set<Capture> captures = ConcurrentHashMap.newKeySet();

  /** Takes over what the caller holds. */
  void take(Capture held) {
    if (!captures.add(held)) {
      held.release();
    }
  }

  /** The same once more, for somebody whose end is another. For who keeps this from its end. */
  Retained copy() {
    Retained copy = new Retained();
    copy.addAll(this);
    return copy;
  }

  /** Keeps what another does, too; which the caller keeps from its end. */
  void addAll(Retained other) {
    for (Capture capture : other.captures) {
      capture.hold();
      take(capture);
    }
  }

  /** The end. */
  void release() {
    captures.removeIf(capture -> {
      capture.release();
      return true;
    });
  }
}
