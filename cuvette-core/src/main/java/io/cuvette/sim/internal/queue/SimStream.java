package io.cuvette.sim.internal.queue;

import org.jspecify.annotations.Nullable;

/**
 * Operations that run in order, in a queue of its own or of several streams. Guarded by the
 * driver's lock.
 */
public final class SimStream {
  public static final int NON_BLOCKING = 1;

  /**
   * Of a stream that programs do not see: no call waits for room in its queue, which is its own.
   */
  public static final int HIDDEN = 1 << 16;

  public final SimDevice device;
  public final long id;
  public final int flags;
  public final int priority;

  /** Where its operations are queued, maybe among those of other streams. */
  public final SimQueue queue;

  /** The part of this stream in a capture, if it is captured. */
  public @Nullable StreamCapture capture;

  /** When its last finished operation ended. */
  public long nanos;

  private long appended;
  private long ended;
  private @Nullable SimOp tail;
  private @Nullable SimOp legacySeen;

  public SimStream(SimDevice device, long id, int flags, int priority) {
    this.device = device;
    this.id = id;
    this.flags = flags;
    this.priority = priority;
    this.queue = device.queueOf(this);
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
    tail = op;
  }

  /** Its oldest operation is done, or never will be. */
  public void ended() {
    ended++;
  }

  /** The number of operations that are queued and not done. */
  long pending() {
    return appended - ended;
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
