package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

/** The program of README.md. */
class FirstProgramTest {
  @Test
  void firstProgram_printsWhatTheReadmeSays() {
    PrintStream before = System.out;
    ByteArrayOutputStream printed = new ByteArrayOutputStream();
    System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
    try {
      FirstProgram.main(new String[0]);
    } finally {
      System.setOut(before);
    }
    assertThat(printed.toString(StandardCharsets.UTF_8).lines())
        .containsExactly(
            "7 from Simulated H200 (NVIDIA H200 figures)",
            "used 0 B in 0 blocks, free 4.00 KiB in 1 block (largest 4.00 KiB), held 4.00 KiB in 1"
                + " chunk, limit none");
  }
}
