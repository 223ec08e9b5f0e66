package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.cuvette.testkit.support.PeerCommand;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A simulated driver whose host memory has no room: an error, and never the end of the JVM. */
class FullDiskTest {

  /** A disk of 8 MiB, for which one must be root or may be in a name space of one's own. */
  @Test
  void fullFileSystem_isOutOfMemory_andWhatWasAllocatedCanBeTouched(@TempDir Path directory)
      throws IOException, InterruptedException {
    String mount = "mount -t tmpfs -o size=8m none '" + directory + "'";
    List<String> inside = List.of("unshare", "--user", "--map-root-user", "--mount", "sh", "-c");
    assumeThat(succeeds(inside, mount)).as("a file system of its own can be mounted").isTrue();
    assertThat(output(inside, mount + " && exec \"$@\"", directory)).isEqualTo("fine\n");
  }

  @Test
  void fullQuota_isOutOfMemory_andWhatWasAllocatedCanBeTouched(@TempDir Path directory)
      throws IOException, InterruptedException {
    List<String> shell = List.of("sh", "-c");
    assumeThat(succeeds(shell, "ulimit -f 16384")).as("files can be limited").isTrue();
    assertThat(output(shell, "ulimit -f 16384 && exec \"$@\"", directory)).isEqualTo("fine\n");
    assertThat(directory).isEmptyDirectory();
  }

  private static boolean succeeds(List<String> prefix, String script) throws InterruptedException {
    List<String> command = new ArrayList<>(prefix);
    command.add(script);
    try {
      return new ProcessBuilder(command).start().waitFor() == 0;
    } catch (IOException e) {
      return false; // there is no such program here
    }
  }

  private static String output(List<String> prefix, String script, Path directory)
      throws IOException, InterruptedException {
    List<String> command = new ArrayList<>(prefix);
    command.addAll(List.of(script, "sh"));
    command.addAll(PeerCommand.of(FullDiskProgram.class));
    command.add(directory.toString());
    Path output = Files.createTempFile("cuvette", "output");
    try {
      Process process =
          new ProcessBuilder(command)
              .redirectErrorStream(true)
              .redirectOutput(output.toFile())
              .start();
      if (!process.waitFor(40, TimeUnit.SECONDS)) {
        process.destroyForcibly().waitFor();
      }
      return Files.readString(output, StandardCharsets.UTF_8);
    } finally {
      Files.delete(output);
    }
  }
}
