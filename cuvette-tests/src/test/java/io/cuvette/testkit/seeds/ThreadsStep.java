package io.cuvette.testkit.seeds;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** What one thread of a {@link ThreadsPlan} does, and what that waits for. Immutable. */
final class ThreadsStep {
  /** What waits, and for what. */
  enum Kind {
    /** Nothing waits: work that is queued, or what the host does itself. */
    PLAIN,
    /** The host frees memory at once. */
    FREE,
    /** Work that orders streams by being queued, and does nothing else. */
    TURN,
    /** The record of an event. */
    RECORD,
    /** The host waits for a step of another thread. */
    HOST_FOR_STEP,
    /** The host waits for a function, or for a word that a kernel writes. */
    HOST_FOR_WORK,
    /** The host waits for an event. */
    HOST_FOR_EVENT,
    /** The host waits for a stream; without one, for the device. */
    HOST_FOR_STREAM,
    STREAM_FOR_EVENT,
    /** A stream waits for a word that other work writes. */
    STREAM_FOR_WORD,
    /** A stream waits for a later step of the host. */
    STREAM_FOR_STEP
  }

  /** What is done with the words of a cell; of two that are the same, only writes conflict. */
  enum Use {
    READ,
    WRITE,
    ADD;

    boolean conflictsWith(Use other) {
      return this == WRITE || this != other;
    }
  }

  /** A stream that has a number; {@code owner} is the only thread that can use it, or -1. */
  record Lane(int number, boolean isLegacy, boolean isBlocking, int owner) {
    boolean canBeUsedBy(int thread) {
      return owner < 0 || owner == thread;
    }
  }

  /** What a run does at a step. */
  interface Action {
    void run(ThreadsRun run) throws Exception;
  }

  final int number;
  final int thread;
  final @Nullable ThreadsStep previous;
  final Kind kind;

  /** The stream that is given work, or that the host waits for. */
  final @Nullable Lane lane;

  final Map<Integer, Use> uses;

  /** Steps whose results are needed for the call, whatever else is left out. */
  final List<ThreadsStep> data;

  final Action action;

  /** What is waited for. */
  @Nullable ThreadsStep from;

  /** Whether a wrong twin may leave it out, or, of a record, have it too early. */
  boolean canBeWrong;

  ThreadsStep(
      int number,
      int thread,
      @Nullable ThreadsStep previous,
      Kind kind,
      @Nullable Lane lane,
      Map<Integer, Use> uses,
      List<ThreadsStep> data,
      Action action) {
    this.number = number;
    this.thread = thread;
    this.previous = previous;
    this.kind = kind;
    this.lane = lane;
    this.uses = Map.copyOf(uses);
    this.data = List.copyOf(data);
    this.action = action;
  }

  /** Waits for another one. */
  ThreadsStep waitingFor(ThreadsStep other) {
    from = other;
    return this;
  }

  ThreadsStep thatCanBeWrong() {
    canBeWrong = true;
    return this;
  }

  /** Whether a stream is given something. */
  boolean isQueued() {
    return lane != null && kind != Kind.HOST_FOR_STREAM;
  }

  boolean conflictsWith(ThreadsStep other) {
    return uses.keySet().stream()
        .filter(other.uses::containsKey)
        .anyMatch(cell -> use(cell).conflictsWith(other.use(cell)));
  }

  /** Whether one of two that use a cell writes it: beside a read, an addition may be meant. */
  boolean mustNotMeet(ThreadsStep other) {
    return uses.keySet().stream()
        .filter(other.uses::containsKey)
        .anyMatch(cell -> use(cell) == Use.WRITE || other.use(cell) == Use.WRITE);
  }

  private Use use(int cell) {
    return Objects.requireNonNull(uses.get(cell));
  }

  @Override
  public String toString() {
    return "step %d of thread %d: %s%s %s"
        .formatted(number, thread, kind, lane == null ? "" : " on stream " + lane.number, uses);
  }
}
