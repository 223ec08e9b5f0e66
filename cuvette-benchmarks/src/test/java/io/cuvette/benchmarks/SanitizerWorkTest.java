package io.cuvette.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class SanitizerWorkTest {
  @Test
  void correctPrograms_areMeasured_andFoundToBeCorrect() {
    ByteArrayOutputStream out = new ByteArrayOutputStream();

    new SanitizerWork(new Lines("test", out), 200, 1).run();

    assertThat(out.toString(StandardCharsets.UTF_8).lines().filter(l -> l.contains("timesAsLong")))
        .hasSize(14);
  }
}
