package io.cuvette.instrument;

import org.jspecify.annotations.Nullable;

/**
 * One stream as the sanitizer sees it. Its identity outlives the handle, which a driver may give to
 * another stream. Not thread-safe.
 */
final class Lane {
  final int device;
  final String name;
  final boolean blocking;

  /** What is ordered before the next work of this stream, the stream's own work included. */
  final Clock seen = new Clock();

  private long count;

  /** The last work that is known to be finished: asked for each use of each byte. */
  private long finished;

  /** Whether somebody knows how far the stream is: what comes next is behind that. */
  private boolean isKnown = true;

  /** How much of what is seen the legacy default stream came behind last. */
  private long seenByLegacy;

  private @Nullable Capture capture;
  private boolean destroyed;
  private boolean retired;

  /** A stream; {@code blocking} if it and the legacy default stream wait for each other. */
  Lane(int device, String name, boolean blocking) {
    this.device = device;
    this.name = name;
    this.blocking = blocking;
  }

  /** Queues a piece of work and gives its number. */
  long next() {
    if (isKnown) {
      seen.raise(this, ++count);
      isKnown = false;
    }
    return count;
  }

  /** What is queued so far and before it, for somebody else. */
  Clock known() {
    isKnown = true;
    return seen;
  }

  /** Has the legacy default stream come behind all that is queued here, if that is not so yet. */
  void comeBefore(Lane legacy) {
    if (blocking && seenByLegacy != seen.changes()) {
      legacy.seen.merge(known());
      seenByLegacy = seen.changes();
    }
  }

  /** Learns from all that is known to be finished. */
  void finish(Clock known) {
    finished = Math.max(finished, known.last(this));
  }

  /** Whether all that is queued so far is finished. */
  boolean isFinished() {
    return finished >= count;
  }

  /** Whether a piece of work is known to be finished. */
  boolean isFinished(long number) {
    return retired || finished >= number;
  }

  /** What is being captured instead of run, if the stream is part of a capture. */
  @Nullable Capture capture() {
    return capture != null && capture.isOpen() ? capture : null;
  }

  void join(@Nullable Capture capture) {
    this.capture = capture;
  }

  void destroy() {
    destroyed = true;
  }

  boolean isDestroyed() {
    return destroyed;
  }

  /** Says that the stream is gone and all its work done: nobody needs to remember it. */
  void retire() {
    retired = true;
  }

  boolean isRetired() {
    return retired;
  }
}
