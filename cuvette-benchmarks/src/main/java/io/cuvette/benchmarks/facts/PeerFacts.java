package io.cuvette.benchmarks.facts;

import io.cuvette.CudaDevice;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.benchmarks.facts.Ways.How;
import java.util.List;
import java.util.Set;

/** The set of devices that can access a pool. Not thread-safe. */
final class PeerFacts {
  private final Ways ways;
  private final Recorder recorder;

  PeerFacts(Ways ways, Recorder recorder) {
    this.ways = ways;
    this.recorder = recorder;
  }

  void run() {
    for (How how : List.of(How.CURRENT, How.OWN)) {
      try (DeviceMemoryResource resource = ways.device(how)) {
        peers("device." + how + ".peers", resource.peerAccessibleBy());
      }
    }
  }

  private void peers(String prefix, Set<CudaDevice> peers) {
    CudaDevice owner = ways.device();
    recorder.fact(prefix, () -> numbers(peers));
    recorder.outcome(prefix + ".add_owner", () -> peers.add(owner));
    recorder.fact(prefix + ".after_owner", () -> numbers(peers));
    recorder.outcome(prefix + ".discard_owner", () -> peers.remove(owner));
    recorder.outcome(
        prefix + ".add_no_such_device", () -> peers.add(ways.cuda().device(Ways.NOT_A_DEVICE)));
    recorder.outcome(prefix + ".add_negative", () -> peers.add(ways.cuda().device(-1)));
    if (ways.cuda().deviceCount() > 1) {
      CudaDevice other = ways.cuda().device(1);
      recorder.outcome(prefix + ".add_1", () -> peers.add(other));
      recorder.fact(prefix + ".with_1", () -> numbers(peers));
      recorder.outcome(prefix + ".discard_1", () -> peers.remove(other));
      recorder.fact(prefix + ".without_1", () -> numbers(peers));
    }
  }

  private static List<Integer> numbers(Set<CudaDevice> peers) {
    return peers.stream().map(CudaDevice::id).sorted().toList();
  }
}
