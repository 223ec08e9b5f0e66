package io.cuvette.sim.internal.queue;

import java.util.ArrayDeque;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Operations that run one after the other: those of one stream, or of all streams that share a
 * queue of the hardware, in the order in which the host queued them. So a wait is behind what it
 * waits for, in whichever queue that is, and no two queues wait for each other unless something
 * outside of the driver does. Guarded by the driver's lock.
 */
public final class SimQueue {
  /** What a schedule knows it by; a number for life. */
  public final long id;

  /** Position among the ready queues, -1 if it is not one of them. */
  public int readyIndex = -1;

  /** What the first operation waits for, if it does. */
  public @Nullable SimOp blockedBy;

  /** An operation that was first for long while the queue was full. */
  public @Nullable SimOp stalled;

  /** The number of threads that wait for room. */
  public int waiting;

  private final String name;

  /** How many operations it has before who queues one more waits too. */
  private final int length;

  /** What is queued and not done, oldest first. */
  private final ArrayDeque<SimOp> ops = new ArrayDeque<>();

  SimQueue(long id, String name, int length) {
    this.id = id;
    this.name = name;
    this.length = length;
  }

  /** The operation that is next; null if there is none. */
  public @Nullable SimOp peek() {
    return ops.peek();
  }

  public SimOp first() {
    return ops.element();
  }

  /** Adds an operation; true if it is the only one. */
  public boolean add(SimOp op) {
    ops.add(op);
    return ops.size() == 1;
  }

  public SimOp remove() {
    return ops.remove();
  }

  public boolean isEmpty() {
    return ops.isEmpty();
  }

  public boolean isOverfull() {
    return ops.size() > length;
  }

  /** Whether work of other streams, or a thread, waits for the first operation. */
  public boolean holdsUpOthers() {
    return waiting > 0 || (!isEmpty() && !othersBehind().isEmpty());
  }

  private String othersBehind() {
    SimStream first = first().stream;
    return ops.stream()
        .map(op -> op.stream)
        .filter(stream -> stream != first)
        .map(s -> Long.toString(s.id))
        .distinct()
        .collect(Collectors.joining(", "));
  }

  /** What is first, and what waits for it. */
  public String describe() {
    SimOp first = first();
    String others = othersBehind();
    String behind = others.isEmpty() ? "" : ", also of the streams of ID " + others;
    String threads = waiting == 0 ? "" : "; threads that wait for room in it: " + waiting;
    return "%s: first in it is %s, in the stream of ID %d, and behind that %d operations%s%s"
        .formatted(name, first.describe(), first.stream.id, ops.size() - 1, behind, threads);
  }
}
