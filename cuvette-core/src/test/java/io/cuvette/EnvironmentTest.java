package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.junit.jupiter.api.Test;

class EnvironmentTest {
  @Test
  void deviceVariableSetToNothing_isNotSet() {
    assumeTrue(System.getProperty("cuvette.device") == null);
    assertThat(Environment.device(_ -> null)).isEqualTo("gpu");
    assertThat(Environment.device(_ -> "")).isEqualTo("gpu");
    assertThat(Environment.device(_ -> " ")).isEqualTo("gpu");
    assertThat(Environment.device(_ -> "sim:devices=2")).isEqualTo("sim:devices=2");
  }
}
