package io.cuvette.benchmarks.facts;

import io.cuvette.Buffer;
import io.cuvette.DriverPoolResource;
import io.cuvette.ManagedBuffer;
import io.cuvette.benchmarks.facts.Ways.How;
import io.cuvette.benchmarks.facts.Ways.Kind;

/** What a buffer of each kind of resource reports, also after it was closed. Not thread-safe. */
final class BufferFacts {
  private static final int ODD_BYTES = 1000;

  private final Ways ways;
  private final Recorder recorder;

  BufferFacts(Ways ways, Recorder recorder) {
    this.ways = ways;
    this.recorder = recorder;
  }

  void run() {
    for (Kind kind : Kind.values()) {
      recorder.outcome(
          kind + ".buffer.all",
          () -> {
            try (DriverPoolResource resource = ways.make(kind, How.OWN)) {
              buffer(kind + ".buffer", resource);
              zero(kind + ".zero", resource);
              deallocate(kind + ".deallocate", resource);
            }
          });
    }
  }

  private void buffer(String prefix, DriverPoolResource resource) {
    Buffer buffer = resource.allocate(ODD_BYTES, ways.stream());
    recorder.fact(prefix + ".size", buffer::byteSize);
    recorder.fact(prefix + ".handle_is_set", () -> buffer.address() != 0);
    recorder.fact(prefix + ".device_id", () -> buffer.device().id());
    recorder.fact(prefix + ".is_host_accessible", buffer::isHostAccessible);
    recorder.fact(prefix + ".is_managed", () -> buffer instanceof ManagedBuffer);
    recorder.fact(prefix + ".is_mapped", buffer::isMapped);
    recorder.fact(prefix + ".range_size", () -> ways.rangeSize(buffer));
    recorder.fact(prefix + ".fill_reads", () -> ways.filled(buffer));
    recorder.outcome(prefix + ".descriptor", buffer::descriptor);
    recorder.outcome(prefix + ".close", buffer::close);
    recorder.fact(prefix + ".closed.size", buffer::byteSize);
    recorder.fact(prefix + ".closed.handle_is_set", () -> buffer.address() != 0);
    recorder.outcome(prefix + ".close_again", buffer::close);
  }

  private void zero(String prefix, DriverPoolResource resource) {
    Buffer buffer = recorder.made(prefix + ".allocate", () -> resource.allocate(0, ways.stream()));
    if (buffer != null) {
      recorder.fact(prefix + ".size", buffer::byteSize);
      recorder.fact(prefix + ".handle_is_set", () -> buffer.address() != 0);
      recorder.fact(prefix + ".used_mem_current", () -> used(resource));
      recorder.outcome(prefix + ".close", buffer::close);
    }
  }

  private void deallocate(String prefix, DriverPoolResource resource) {
    Buffer buffer = resource.allocate(Ways.MIB, ways.stream());
    recorder.fact(prefix + ".before", () -> used(resource));
    recorder.outcome(prefix, () -> resource.deallocate(buffer.address(), Ways.MIB, ways.stream()));
    recorder.fact(prefix + ".after", () -> used(resource));
  }

  private long used(DriverPoolResource resource) {
    return ways.settled(resource.attributes()::usedMemCurrent);
  }
}
