package io.cuvette.testkit.seeds;

import io.cuvette.driver.StreamHandle;
import java.util.HashMap;
import java.util.Map;

/** A stream, and what comes before its next work: of each stream, how much. Not thread-safe. */
final class ProgramStream {
  final long handle;
  final boolean isBlocking;

  /** The only thread that can use it; -1 if any can. */
  final int thread;

  final Map<ProgramStream, Integer> before = new HashMap<>();
  int queued;

  ProgramStream(long handle, boolean isBlocking, int thread) {
    this.handle = handle;
    this.isBlocking = isBlocking;
    this.thread = thread;
  }

  boolean isLegacy() {
    return StreamHandle.isLegacy(handle);
  }

  /** Its own work and all that comes before that. */
  Map<ProgramStream, Integer> reached() {
    Map<ProgramStream, Integer> all = new HashMap<>(before);
    all.put(this, queued);
    return all;
  }

  /** Comes behind what is reached elsewhere. */
  void follow(Map<ProgramStream, Integer> clock) {
    merge(before, clock);
  }

  static void merge(Map<ProgramStream, Integer> into, Map<ProgramStream, Integer> clock) {
    clock.forEach((stream, number) -> into.merge(stream, number, Math::max));
  }

  @Override
  public String toString() {
    return StreamHandle.name(handle);
  }
}
