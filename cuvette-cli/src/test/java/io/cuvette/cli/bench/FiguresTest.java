package io.cuvette.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.cli.Run;
import java.util.List;
import org.junit.jupiter.api.Test;

class FiguresTest {
  @Test
  void smallFigures_haveTwoDigitsThatCount() {
    Run run = Run.of("bench", "arrays", "--device", "sim", "--quick");
    assertThat(run.code()).as(run.err()).isZero();
    List<String> figures =
        run.out()
            .lines()
            .filter(line -> line.contains("TFLOP/s") || line.contains("GB/s"))
            .map(line -> line.strip().split(" +")[1])
            .toList();
    assertThat(figures).hasSize(9).allMatch(figure -> figure.matches(".*[1-9].*"));
  }
}
