package io.cuvette.benchmarks.facts;

import io.cuvette.DriverPoolResource;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLocation;
import io.cuvette.benchmarks.facts.Ways.How;
import io.cuvette.benchmarks.facts.Ways.Kind;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Advice on managed memory and prefetches, with what the driver reports of them. Not thread-safe.
 */
final class AdviceFacts {
  private static final long BYTES = 2 * Ways.MIB;

  private final Ways ways;
  private final Recorder recorder;

  AdviceFacts(Ways ways, Recorder recorder) {
    this.ways = ways;
    this.recorder = recorder;
  }

  void run() {
    recorder.outcome(
        "managed.plain.all",
        () -> {
          try (ManagedBuffer buffer = ways.cuda().allocateManaged(BYTES)) {
            advice("managed.plain", buffer);
          }
        });
    recorder.outcome(
        "managed.pooled.all",
        () -> {
          try (DriverPoolResource resource = ways.make(Kind.MANAGED, How.OWN);
              ManagedBuffer buffer = (ManagedBuffer) resource.allocate(BYTES, ways.stream())) {
            ways.stream().synchronize();
            advice("managed.pooled", buffer);
          }
        });
  }

  private void advice(String prefix, ManagedBuffer buffer) {
    recorder.fact(prefix + ".read_mostly.birth", buffer::isReadMostly);
    for (boolean value : new boolean[] {true, false}) {
      recorder.outcome(prefix + ".read_mostly.set_" + value, () -> buffer.setReadMostly(value));
      recorder.fact(prefix + ".read_mostly.after_" + value, buffer::isReadMostly);
    }
    preferred(prefix + ".preferred", buffer);
    accessedBy(prefix + ".accessed_by", buffer);
    prefetches(prefix + ".prefetch", buffer);
  }

  private Map<String, MemoryLocation> places() {
    Map<String, MemoryLocation> places = new LinkedHashMap<>();
    places.put("device", MemoryLocation.device(ways.device()));
    places.put("host", MemoryLocation.host());
    places.put("host_numa", MemoryLocation.hostNuma(0));
    return places;
  }

  private void preferred(String prefix, ManagedBuffer buffer) {
    recorder.fact(prefix + ".birth", () -> PreferredFacts.text(buffer.preferredLocation()));
    Map<String, Recorder.Step> steps = new LinkedHashMap<>();
    places().forEach((name, where) -> steps.put(name, () -> buffer.setPreferredLocation(where)));
    steps.put("none", buffer::clearPreferredLocation);
    steps.forEach((name, step) -> {
      recorder.outcome(prefix + ".set_" + name, step);
      recorder.fact(
          prefix + ".after_" + name, () -> PreferredFacts.text(buffer.preferredLocation()));
    });
  }

  private void accessedBy(String prefix, ManagedBuffer buffer) {
    Set<MemoryLocation> set = buffer.accessedBy();
    MemoryLocation device = MemoryLocation.device(ways.device());
    recorder.fact(prefix + ".birth", () -> texts(set));
    Map<String, Recorder.Step> steps = new LinkedHashMap<>();
    steps.put("add_device", () -> set.add(device));
    steps.put("add_host", () -> set.add(MemoryLocation.host()));
    steps.put("add_host_numa", () -> set.add(MemoryLocation.hostNuma(0)));
    steps.put("discard_device", () -> set.remove(device));
    steps.put("discard_again", () -> set.remove(device));
    steps.put("assign_device", () -> buffer.setAccessedBy(List.of(device)));
    steps.put("assign_none", () -> buffer.setAccessedBy(List.of()));
    steps.forEach((name, step) -> {
      recorder.outcome(prefix + "." + name, step);
      recorder.fact(prefix + "." + name + ".reads", () -> texts(set));
    });
  }

  private static List<String> texts(Set<MemoryLocation> set) {
    return set.stream().map(PreferredFacts::text).sorted().toList();
  }

  private void prefetches(String prefix, ManagedBuffer buffer) {
    recorder.fact(prefix + ".birth", () -> PreferredFacts.text(buffer.lastPrefetchLocation()));
    places()
        .forEach((name, where) -> {
          recorder.outcome(prefix + "." + name, () -> prefetch(buffer, where));
          recorder.fact(
              prefix + "." + name + ".last",
              () -> PreferredFacts.text(buffer.lastPrefetchLocation()));
        });
    recorder.outcome(
        prefix + ".no_such_node",
        () -> prefetch(buffer, MemoryLocation.hostNuma(Ways.NOT_A_DEVICE)));
  }

  private void prefetch(ManagedBuffer buffer, MemoryLocation where) {
    buffer.prefetch(where, ways.stream());
    ways.stream().synchronize();
  }
}
