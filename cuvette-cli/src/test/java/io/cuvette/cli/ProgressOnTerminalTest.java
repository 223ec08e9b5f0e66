package io.cuvette.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class ProgressOnTerminalTest {
  /** So it needs neither UTF-8 nor colours, and NO_COLOR has nothing to switch off. */
  @Test
  void bar_isPlainText() {
    ByteArrayOutputStream shown = new ByteArrayOutputStream();
    PrintStream out = new PrintStream(shown, true, StandardCharsets.UTF_8);
    try (Progress progress = new ProgressOnTerminal("replay", 2, out)) {
      progress.step();
      progress.step();
    }
    assertThat(shown.toString(StandardCharsets.UTF_8))
        .contains("replay", "100%", "2/2")
        .matches("[\\r\\n\\x20-\\x7e]*");
  }
}
