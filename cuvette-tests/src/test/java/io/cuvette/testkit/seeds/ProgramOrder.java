package io.cuvette.testkit.seeds;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Which work of a program comes before which, by the rules of CUDA: the order of a stream, waits,
 * and the default stream, which takes turns with blocking streams. Not thread-safe.
 */
final class ProgramOrder {
  final List<ProgramStream> streams = new ArrayList<>();
  final ProgramStream legacy;
  private final List<ProgramStream> closed = new ArrayList<>();

  /** What the host knows to be done. */
  private final Map<ProgramStream, Integer> done = new HashMap<>();

  /** With a default stream. */
  ProgramOrder(long legacy) {
    this.legacy = new ProgramStream(legacy, true, -1);
    streams.add(this.legacy);
  }

  /** Notes work that was queued, and gives its number. */
  int queued(ProgramStream stream) {
    takeTurns(stream);
    return ++stream.queued;
  }

  private void takeTurns(ProgramStream stream) {
    if (stream.isLegacy()) {
      streams.stream()
          .filter(each -> each.isBlocking)
          .forEach(each -> stream.follow(each.reached()));
    } else if (stream.isBlocking) {
      stream.follow(legacy.reached());
    }
  }

  /** What is done once a stream is. */
  Map<ProgramStream, Integer> awaited(ProgramStream stream) {
    if (stream.isLegacy()) {
      takeTurns(stream);
    }
    return stream.reached();
  }

  /** The host has waited. */
  void done(Map<ProgramStream, Integer> clock) {
    ProgramStream.merge(done, clock);
  }

  /** The host has waited for the device. */
  void allDone() {
    streams.forEach(stream -> done(stream.reached()));
    closed.forEach(stream -> done(stream.reached()));
    closed.clear();
  }

  /** A stream was destroyed; its work goes on. */
  void closed(ProgramStream stream) {
    streams.remove(stream);
    closed.add(stream);
  }

  boolean isDone(ProgramStream stream, int number) {
    return done.getOrDefault(stream, 0) >= number;
  }

  /** Whether work comes before what is reached elsewhere. */
  boolean isIn(Map<ProgramStream, Integer> clock, ProgramStream stream, int number) {
    return isDone(stream, number) || clock.getOrDefault(stream, 0) >= number;
  }

  /** Whether work comes before what another stream is given next. */
  boolean isBefore(ProgramStream stream, int number, ProgramStream next) {
    boolean isBehind = stream == next || isIn(next.before, stream, number);
    if (isBehind || !next.isBlocking) {
      return isBehind;
    }
    return next.isLegacy() // nothing is queued by asking, so no stream takes turns yet
        ? streams.stream().anyMatch(each -> each.isBlocking && isIn(each.reached(), stream, number))
        : isIn(legacy.reached(), stream, number);
  }
}
