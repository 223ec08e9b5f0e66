package io.cuvette.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The tests of the comparison's scripts, where there is a Python that is new enough. */
class CompareScriptTest {

  @Test
  void theScripts_passTheirOwnTests() throws InterruptedException {
    String root = System.getProperty("cuvette.root");
    assumeTrue(root != null, "the sources are not here");
    assumeTrue(
        exitStatusOf(List.of("-c", "import sys; sys.exit(sys.version_info < (3, 10))")) == 0,
        "no Python 3.10");
    String folder = Path.of(String.valueOf(root), "cuvette-benchmarks", "compare").toString();

    assertThat(exitStatusOf(List.of("-B", "-m", "unittest", "discover", "-s", folder))).isZero();
  }

  /** 127, as of a shell, if there is no Python. */
  private static int exitStatusOf(List<String> arguments) throws InterruptedException {
    List<String> command = new ArrayList<>(List.of("python3"));
    command.addAll(arguments);
    try {
      Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
      String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      int status = process.waitFor();
      if (status != 0) {
        System.err.println(output);
      }
      return status;
    } catch (IOException e) {
      return 127;
    }
  }
}
