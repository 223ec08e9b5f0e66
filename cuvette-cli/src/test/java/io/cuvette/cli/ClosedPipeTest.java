package io.cuvette.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A command whose reader has seen enough, as with {@code | head -1}, ends and says nothing. */
@EnabledOnOs(OS.LINUX)
class ClosedPipeTest {
  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(
      strings = {
        "info --device sim:devices=32 --attributes",
        "demo --device sim --json",
        "bench pools driver launch --quick --device sim --json",
        "help info"
      })
  void nothingIsSaid(String command) throws Exception {
    for (boolean first : new boolean[] {false, true}) { // with and without having read a line
      Path err = folder.resolve("err-" + first);
      Process process =
          JvmRun.jvm(Main.class, command.split(" ")).redirectError(err.toFile()).start();
      try (InputStream out = process.getInputStream()) {
        if (first) {
          readLine(out);
        }
      }
      try {
        assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
      } finally {
        process.destroyForcibly();
      }
      assertThat(Files.readString(err)).isEmpty();
      assertThat(process.exitValue()).isZero();
    }
  }

  private static void readLine(InputStream out) throws IOException {
    BufferedReader reader = new BufferedReader(new InputStreamReader(out, StandardCharsets.UTF_8));
    assertThat(reader.readLine()).isNotBlank();
  }
}
