package io.cuvette.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class TableTest {
  @Test
  void columnsAreAligned() {
    Table table = new Table(1, "trace", "ratio", "n");
    table.add("a", "1.25", "1000");
    table.add("longer name", "10.5", "1");
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    table.print(new PrintStream(bytes, true, StandardCharsets.UTF_8));
    assertThat(bytes.toString(StandardCharsets.UTF_8).lines())
        .containsExactly(
            "trace        ratio     n", "a             1.25  1000", "longer name   10.5     1");
  }

  @Test
  void rowsThatAreTooWide_takeTwoLines_andLongNamesAreCut() {
    Table table = new Table(2, "trace", "device", "n", "ratio");
    table.add("t".repeat(100), "d".repeat(20), "1".repeat(40), "1.25");
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    table.print(new PrintStream(bytes, true, StandardCharsets.UTF_8));
    assertThat(bytes.toString(StandardCharsets.UTF_8).lines())
        .allSatisfy(line -> assertThat(line.length()).isLessThanOrEqualTo(80))
        .containsExactly(
            "trace" + " ".repeat(55) + "device",
            " ".repeat(41) + "n  ratio",
            "t".repeat(55) + "...  " + "d".repeat(20),
            "  " + "1".repeat(40) + "   1.25");
  }

  @Test
  void rowOfAnotherLength_isRefused() {
    Table table = new Table(1, "a", "b");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> table.add("only one"))
        .withMessage("cells: 1 (expected: 2)");
  }
}
