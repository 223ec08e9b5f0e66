package io.cuvette.instrument.internal.order;

import org.jspecify.annotations.Nullable;

/**
 * One stream as the sanitizer sees it. Its identity outlives the handle, which a driver may give to
 * another stream. Not thread-safe.
 */
public final class Lane {
  final int device;
  public final String name;
  final boolean blocking;

  /** The stream that it stands in for; else itself. */
  final Lane of;

  final Place place;

  /** What is ordered before the next work of this stream, the stream's own work included. */
  public final Clock seen = new Clock();

  private long count;

  /** The last work that is known to be finished: read at each use of each byte. */
  private long finished;

  /** Whether the position of the stream was read: what comes next is behind that. */
  private boolean isKnown = true;

  /** What the legacy default stream came behind last of what is seen. */
  Clock seenByLegacy = new Clock();

  private @Nullable KnownCapture capture;

  private boolean retired;

  /**
   * Where clocks have the number of a stream. Immutable.
   *
   * @param last the number of the last work of the stream that had the place before, with which its
   *     own go on: so what clocks still know of that one is finished, and before all of this
   */
  record Place(int index, long last) {}

  /** A stream; {@code blocking} if it and the legacy default stream wait for each other. */
  Lane(int device, String name, boolean blocking, Place place) {
    this(device, name, blocking, null, place);
  }

  /** A stand-in for a stream. */
  Lane(Lane of, Place place) {
    this(of.device, of.name, of.blocking, of, place);
  }

  private Lane(int device, String name, boolean blocking, @Nullable Lane of, Place place) {
    this.device = device;
    this.name = name;
    this.blocking = blocking;
    this.of = of == null ? this : of;
    this.place = place;
    this.count = place.last;
    this.finished = place.last;
  }

  /** Queues a piece of work and gives its number. */
  public long next() {
    // A program may destroy it meanwhile, and its place be that of another one.
    if (isKnown && !retired) {
      seen.raise(this, ++count);
      isKnown = false;
    }
    return count;
  }

  /** Returns what is queued so far and before it; what comes next is not like it. */
  public Clock known() {
    isKnown = true;
    return seen;
  }

  /** Learns that a piece of work is finished; whether that is new. */
  boolean finish(long number) {
    boolean isNew = number > finished;
    finished = Math.max(finished, number);
    return isNew;
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
  public @Nullable KnownCapture capture() {
    return capture != null && capture.isOpen() ? capture : null;
  }

  void join(@Nullable KnownCapture other) {
    capture = other;
  }

  /** Notes that the stream is destroyed and all its work complete: it can be forgotten. */
  void retire() {
    retired = true;
  }

  /** Its place as it leaves it to another stream. */
  Place left() {
    return new Place(place.index, count);
  }

  boolean isRetired() {
    return retired;
  }
}
