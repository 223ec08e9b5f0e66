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
            "driver", "device", "device", "library", "library", "library", "library", "library",
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
