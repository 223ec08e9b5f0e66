package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class EnvironmentTest {
  private static final String OWN = "CUVETTE_GPU_MEMORY_LIMIT";
  private static final String CUPY = "CUPY_GPU_MEMORY_LIMIT";

  @Test
  void deviceVariableSetToNothing_isNotSet() {
    assumeTrue(System.getProperty("cuvette.device") == null);
    assertThat(Environment.device(_ -> null)).isEqualTo("gpu");
    assertThat(Environment.device(_ -> "")).isEqualTo("gpu");
    assertThat(Environment.device(_ -> " ")).isEqualTo("gpu");
    assertThat(Environment.device(_ -> "sim:devices=2")).isEqualTo("sim:devices=2");
  }

  @Test
  void wrongDevice_namesTheVariable_unlessTheProgramGaveIt() {
    assumeTrue(System.getProperty("cuvette.device") == null);
    var failure = new IllegalArgumentException("device: 'x' (expected: gpu)");
    assertThat(Environment.withOrigin("x", failure, Map.of("CUVETTE_DEVICE", "x")::get))
        .hasMessage("CUVETTE_DEVICE: device: 'x' (expected: gpu)")
        .hasCause(failure);
    assertThat(Environment.withOrigin("x", failure, Map.of("CUVETTE_DEVICE", "sim")::get))
        .isSameAs(failure);
    var named = new IllegalArgumentException("-Dcuvette.sim.x: '7' (expected: less)");
    assertThat(Environment.withOrigin("x", named, Map.of("CUVETTE_DEVICE", "x")::get))
        .as("which names its own setting")
        .isSameAs(named);
    System.setProperty("cuvette.device", "nonsense");
    try {
      assertThatThrownBy(() -> Cuda.open(CudaOptions.DEFAULTS.withDevice("nonsense")))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageStartingWith("-Dcuvette.device: device: 'nonsense' (expected: gpu, sim");
    } finally {
      System.clearProperty("cuvette.device");
    }
  }

  @Test
  void wrongLimit_tellsOfPercent_asWellAsOfSizes() {
    for (String text : List.of("0.5", "lots", "-1")) {
      assertThatThrownBy(() -> MemoryLimit.parse("limit", text)).hasMessageContaining("50%");
    }
  }

  @Test
  void bothLimitVariables_areReadAsLimitsAre() {
    for (String name : List.of(OWN, CUPY)) {
      for (String text : List.of("0", "0%", "1", "1.5GiB", "8 GB", "50%", " 4K ")) {
        assertThat(Environment.memoryLimit(Map.of(name, text)::get))
            .isEqualTo(MemoryLimit.parse(name, text));
      }
      for (String text : List.of("0.5", "0.9B", "-1", "-0%", "1e9", "150%", "NaN", "lots")) {
        assertThatThrownBy(() -> Environment.memoryLimit(Map.of(name, text)::get))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageStartingWith("%s: '%s' (expected: ", name, text);
      }
    }
  }

  @Test
  void ownLimitVariable_isLookedAtFirst_andBlankIsNotSet() {
    assertThat(limit("50%", "0")).isEqualTo(MemoryLimit.ofFraction(0.5));
    assertThat(limit("0", "50%")).isEqualTo(MemoryLimit.none());
    assertThat(limit(" ", "50%")).isEqualTo(MemoryLimit.ofFraction(0.5));
    assertThat(limit("", "")).isEqualTo(MemoryLimit.none());
  }

  private static MemoryLimit limit(String own, String cupy) {
    return Environment.memoryLimit(Map.of(OWN, own, CUPY, cupy)::get);
  }
}
