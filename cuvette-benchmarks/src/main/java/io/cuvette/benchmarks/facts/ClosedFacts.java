package io.cuvette.benchmarks.facts;

import io.cuvette.Buffer;
import io.cuvette.DriverPoolResource;
import io.cuvette.PoolAttributes;
import io.cuvette.benchmarks.facts.Ways.How;
import io.cuvette.benchmarks.facts.Ways.Kind;

/** A resource that is closed while one of its buffers lives. Not thread-safe. */
final class ClosedFacts {
  private final Ways ways;
  private final Recorder recorder;

  ClosedFacts(Ways ways, Recorder recorder) {
    this.ways = ways;
    this.recorder = recorder;
  }

  void run(Kind kind) {
    DriverPoolResource resource = ways.make(kind, How.OWN);
    PoolAttributes attributes = resource.attributes();
    Buffer live = resource.allocate(Ways.MIB, ways.stream());
    recorder.outcome(kind + ".closed.close_with_live_buffer", resource::close);
    recorder.fact(kind + ".closed.live_buffer_reads", () -> ways.filled(live));
    recorder.outcome(
        kind + ".closed.live_buffer_close",
        () -> {
          live.close();
          ways.stream().synchronize();
        });
    recorder.fact(kind + ".closed.attributes", () -> attributes.usedMemCurrent() >= 0);
    recorder.outcome(
        "error." + kind + ".closed.allocate", () -> resource.allocate(Ways.MIB, ways.stream()));
  }
}
