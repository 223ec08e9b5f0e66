package io.cuvette.internal.fence;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Whose memory captures take from caching pools: that of one capture, or of several whose graphs
 * never run at the same time. It is used again by work that is captured, and by nothing else, until
 * all its graphs are gone. Thread-safe.
 */
public final class CaptureMemory {
  private final Set<Capture> captures = ConcurrentHashMap.newKeySet();

  /** Whether more captures may come. */
  private volatile boolean open;

  private final boolean isOfSeveral;

  private CaptureMemory(boolean isOfSeveral) {
    this.isOfSeveral = isOfSeveral;
    this.open = isOfSeveral;
  }

  /** Whether captures may use again what another one used, whose graph is there. */
  boolean isOfSeveral() {
    return isOfSeveral;
  }

  /** That of one capture. */
  static CaptureMemory ofOne() {
    return new CaptureMemory(false);
  }

  /** That of several captures, until {@link #close}. */
  public static CaptureMemory ofSeveral() {
    return new CaptureMemory(true);
  }

  void add(Capture capture) {
    captures.add(capture);
  }

  /** No more captures come. */
  public void close() {
    open = false;
  }

  /** Whether no graph can use it any more, and none will come. */
  public boolean isDone() {
    captures.removeIf(Capture::isDone);
    return !open && captures.isEmpty();
  }
}
