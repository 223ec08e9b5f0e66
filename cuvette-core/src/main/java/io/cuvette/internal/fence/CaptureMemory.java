package io.cuvette.internal.fence;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Whose memory captures take from caching pools: that of one capture, or of several whose graphs
 * never run at the same time. It is used again by work that is captured, and by nothing else, until
 * all its graphs are gone. Thread-safe.
 */
public final class CaptureMemory {
  private final Set<Capture> captures = ConcurrentHashMap.newKeySet();

  /** Whether more captures may come. */
  private volatile boolean open;

  private final @Nullable Object owner;

  private CaptureMemory(@Nullable Object owner) {
    this.owner = owner;
    this.open = owner != null;
  }

  /** What keeps several graphs from running at the same time; null for that of one capture. */
  public @Nullable Object owner() {
    return owner;
  }

  /** Whether captures may use again what another one used, whose graph is there. */
  boolean isOfSeveral() {
    return owner != null;
  }

  /** That of one capture. */
  static CaptureMemory ofOne() {
    return new CaptureMemory(null);
  }

  /**
   * That of several captures, until {@link #close}.
   *
   * @param owner keeps their graphs from running at the same time
   */
  public static CaptureMemory ofSeveral(Object owner) {
    return new CaptureMemory(owner);
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
