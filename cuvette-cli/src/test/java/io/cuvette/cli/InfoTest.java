package io.cuvette.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class InfoTest {
  @Test
  void json_hasTheDriverTheDevicesAndTheLibraries() {
    Run run = Run.of("info", "--device", "sim:devices=2,memory=8GiB,peers=none", "--json");
    assertThat(run.code()).isZero();
    assertThat(run.err()).isEmpty();
    List<Map<String, Object>> lines = run.json();
    assertThat(lines)
        .extracting(line -> line.get("kind"))
        .containsExactly(
            "driver", "device", "device", "pool", "pool", "pool", "pool", "pool", "pool", "pool",
            "pool", "numa", "library", "library", "library", "library", "library", "library",
            "library");
    assertThat(lines.get(0)).containsEntry("simulated", true).containsEntry("devices", 2L);
    assertThat(lines.get(2))
        .containsEntry("id", 1L)
        .containsEntry("simulated", true)
        .containsEntry("totalBytes", 8L << 30)
        .containsEntry("computeCapability", "9.0")
        .containsEntry("greatestPriority", -5L)
        .containsEntry("peers", List.of())
        .containsKeys("name", "uuid", "pciBusId", "freeBytes", "capabilities")
        .doesNotContainKey("attributes");
  }

  @Test
  void pools_areThoseThatCanBeMade_withTheirHandleTypes() {
    Run run = Run.of("info", "--device", "sim:devices=2,numaNodes=2", "--json");
    List<Map<String, Object>> pools = ofKind(run, "pool");
    assertThat(pools).allSatisfy(line -> assertThat(line).containsEntry("available", true));
    assertThat(pools)
        .extracting(line -> line.get("pool") + " " + line.get("location"))
        .containsExactly(
            "device device 0",
            "device device 1",
            "host host",
            "host-numa NUMA node 0",
            "host-numa NUMA node 1",
            "managed none",
            "managed device 0",
            "managed host",
            "managed NUMA node 0",
            "managed NUMA node 1");
    assertThat(pools)
        .filteredOn(line -> line.get("pool").equals("host") || line.get("pool").equals("managed"))
        .allSatisfy(line -> assertThat(line).containsEntry("handleTypes", List.of("none")));
    assertThat(pools.getFirst())
        .containsEntry("handleTypes", List.of("none", "file-descriptor"))
        .containsEntry("error", null);
    assertThat(ofKind(run, "numa"))
        .singleElement()
        .satisfies(line ->
            assertThat(line)
                .containsEntry("nodes", List.of(0L, 1L))
                .containsEntry("nearestToDevice", List.of(0L, 1L)));
    assertThat(Run.of("info", "--device", "sim").out())
        .containsPattern("device 0 +yes; handle types: none, file descriptor\n")
        .containsPattern("host NUMA node 0 +yes; handle types: none, file descriptor\n")
        .containsPattern("NUMA nodes of the host +node 0\n");
    assertThat(Run.of("info", "--device", "sim:numaNodes=3").out())
        .containsPattern("NUMA nodes of the host +nodes 0, 1, 2\n");
  }

  @Test
  void poolsThatOldDriversLack_areShownWithTheReason() {
    List<Map<String, Object>> pools =
        ofKind(Run.of("info", "--device", "sim:driver=11000", "--json"), "pool");
    assertThat(pools)
        .isNotEmpty()
        .allSatisfy(line ->
            assertThat(line)
                .containsEntry("available", false)
                .containsEntry("handleTypes", List.of())
                .containsEntry("error", "CALL_REQUIRES_NEWER_DRIVER"));
    assertThat(Run.of("info", "--device", "sim:driver=12080").out())
        .containsPattern("managed +no, not supported\n")
        .containsPattern("device 0 +yes");
  }

  private static List<Map<String, Object>> ofKind(Run run, String kind) {
    assertThat(run.code()).as(run.err()).isZero();
    return run.json().stream().filter(line -> kind.equals(line.get("kind"))).toList();
  }

  @Test
  void peers_areThoseThatTheDeviceCanAddress() {
    List<Map<String, Object>> lines =
        Run.of("info", "--device", "sim:devices=3,peers=0-2", "--json").json();
    assertThat(lines.subList(1, 4))
        .extracting(line -> line.get("peers"))
        .containsExactly(List.of(2L), List.of(), List.of(0L));
  }

  @Test
  void attributes_areAllListedWhenAskedFor() {
    Map<String, Object> device =
        Run.of("info", "--device", "sim", "--json", "--attributes").json().get(1);
    Map<?, ?> attributes = (Map<?, ?>) device.get("attributes");
    assertThat(attributes.size()).isGreaterThan(100);
    assertThat(attributes.get("WARP_SIZE")).isEqualTo(32L);
    assertThat(Run.of("info", "--device", "sim", "--attributes").out())
        .containsPattern("WARP_SIZE +32");
  }

  @Test
  void text_saysWhatIsSimulatedAndWhatIsMissing() {
    Run run = Run.of("info", "--device", "sim");
    assertThat(run.code()).isZero();
    assertThat(run.out())
        .contains("Driver sim (simulated), CUDA 13.0")
        .contains("Device 0: ")
        .contains("Optional libraries")
        .contains("cuSOLVER");
  }
}
