package io.cuvette.benchmarks.facts;

import io.cuvette.Buffer;
import io.cuvette.DriverPoolResource;
import io.cuvette.PoolAttributes;
import io.cuvette.benchmarks.facts.Ways.How;
import io.cuvette.benchmarks.facts.Ways.Kind;

/**
 * The same allocations and frees on a fresh pool, and all its numbers after each step. Not
 * thread-safe.
 */
final class SequenceFacts {
  private final Ways ways;
  private final Recorder recorder;

  SequenceFacts(Ways ways, Recorder recorder) {
    this.ways = ways;
    this.recorder = recorder;
  }

  void run() {
    for (Kind kind : Kind.values()) {
      recorder.outcome(
          kind + ".sequence.keep", () -> sequence(kind + ".sequence.keep", kind, Long.MAX_VALUE));
      recorder.outcome(
          kind + ".sequence.release", () -> sequence(kind + ".sequence.release", kind, 0));
      recorder.outcome(kind + ".own.set.all", () -> switches(kind));
    }
  }

  private void switches(Kind kind) {
    try (DriverPoolResource resource = ways.make(kind, How.OWN)) {
      switches(kind + ".own.set.reuse_", resource.attributes());
    }
  }

  private void switches(String prefix, PoolAttributes pool) {
    recorder.outcome(
        prefix + "follow_event_dependencies", () -> pool.setReuseFollowEventDependencies(false));
    recorder.fact(prefix + "follow_event_dependencies.reads", pool::reuseFollowEventDependencies);
    recorder.outcome(prefix + "allow_opportunistic", () -> pool.setReuseAllowOpportunistic(false));
    recorder.fact(prefix + "allow_opportunistic.reads", pool::reuseAllowOpportunistic);
    recorder.outcome(
        prefix + "allow_internal_dependencies",
        () -> pool.setReuseAllowInternalDependencies(false));
    recorder.fact(
        prefix + "allow_internal_dependencies.reads", pool::reuseAllowInternalDependencies);
  }

  private void sequence(String prefix, Kind kind, long keepBytes) {
    try (DriverPoolResource resource = ways.make(kind, How.OWN)) {
      PoolAttributes pool = resource.attributes();
      pool.setReleaseThreshold(keepBytes);
      recorder.fact(prefix + ".release_threshold", () -> threshold(pool.releaseThreshold()));
      Buffer first = resource.allocate(Ways.MIB, ways.stream());
      look(prefix + ".one", pool);
      Buffer second = resource.allocate(3 * Ways.MIB + 1, ways.stream());
      look(prefix + ".two", pool);
      first.close();
      look(prefix + ".one_closed", pool);
      second.close();
      look(prefix + ".both_closed", pool);
      recorder.outcome(prefix + ".trim", () -> resource.trimTo(0));
      look(prefix + ".trimmed", pool);
      recorder.outcome(
          prefix + ".reset_highs",
          () -> {
            pool.resetReservedMemHigh();
            pool.resetUsedMemHigh();
          });
      look(prefix + ".reset", pool);
    }
  }

  private void look(String prefix, PoolAttributes pool) {
    ways.stream().synchronize();
    bytes(recorder, prefix, pool);
  }

  private static void bytes(Recorder recorder, String prefix, PoolAttributes pool) {
    recorder.fact(prefix + ".reserved_mem_current", pool::reservedMemCurrent);
    recorder.fact(prefix + ".reserved_mem_high", pool::reservedMemHigh);
    recorder.fact(prefix + ".used_mem_current", pool::usedMemCurrent);
    recorder.fact(prefix + ".used_mem_high", pool::usedMemHigh);
  }

  /** All eight attributes. */
  static void birth(Recorder recorder, String prefix, PoolAttributes pool) {
    recorder.fact(prefix + ".reuse_follow_event_dependencies", pool::reuseFollowEventDependencies);
    recorder.fact(prefix + ".reuse_allow_opportunistic", pool::reuseAllowOpportunistic);
    recorder.fact(
        prefix + ".reuse_allow_internal_dependencies", pool::reuseAllowInternalDependencies);
    recorder.fact(prefix + ".release_threshold", () -> threshold(pool.releaseThreshold()));
    bytes(recorder, prefix, pool);
  }

  /** A threshold or limit as all programs write it. */
  static Object threshold(long bytes) {
    return bytes == Long.MAX_VALUE ? "all" : bytes;
  }
}
