package io.cuvette.sim.internal.schedule;

import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/** A queue of operations that run in order. Guarded by the driver's lock. */
public final class SimStream {
  public static final int NON_BLOCKING = 1;

  /** Of a stream that programs do not see: no call waits for room in it. */
  public static final int HIDDEN = 1 << 16;

  public final SimDevice device;
  public final long id;
  public final int flags;
  public final int priority;

  /** What is queued and not done, oldest first. */
  public final ArrayDeque<SimOp> queue = new ArrayDeque<>();

  /** The part of this stream in a capture, if it is captured. */
  public @Nullable StreamCapture capture;

  /** Position among the ready streams, -1 if it is not one of them. */
  public int readyIndex = -1;

  /** What the first operation waits for, if it does. */
  public @Nullable SimOp blockedBy;

  /** An operation that was first for long while the queue was full. */
  public @Nullable SimOp stalled;

  /** When its last finished operation ended. */
  public long nanos;

  private long appended;
  private @Nullable SimOp tail;
  private @Nullable SimOp legacySeen;

  public SimStream(SimDevice device, long id, int flags, int priority) {
    this.device = device;
    this.id = id;
    this.flags = flags;
    this.priority = priority;
  }

  public boolean isLegacy() {
    return device.legacy() == this;
  }

  /** Whether the stream and the legacy stream wait for each other. */
  public boolean isBlocking() {
    return (flags & NON_BLOCKING) == 0 && !isLegacy();
  }

  public void append(SimOp op) {
    op.number(++appended);
    queue.add(op);
    tail = op;
  }

  /** The number of the last operation queued so far, 0 if there was none. */
  public long lastNumber() {
    return appended;
  }

  /** The last operation, if it is not done. */
  public @Nullable SimOp pendingTail() {
    return tail == null || tail.isDone() ? null : tail;
  }

  /** The end of the legacy stream's work, if this stream does not wait for it yet. */
  public @Nullable SimOp legacyToWaitFor() {
    SimOp legacy = isBlocking() ? device.legacy().pendingTail() : null;
    if (legacy == null || legacy == legacySeen) {
      return null;
    }
    legacySeen = legacy;
    return legacy;
  }
}
