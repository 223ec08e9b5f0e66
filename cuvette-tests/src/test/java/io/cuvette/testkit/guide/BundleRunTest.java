package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which classes the script of the bundle hands to JUnit. */
class BundleRunTest {
  private static final String OPTION = "--include-classname=";

  @TempDir private Path bundle;

  @Test
  void nameOfAClass_findsIt() throws Exception {
    assertThat(found("DriverDeviceTest", "io.cuvette.testkit.driver.DriverDeviceTest")).isTrue();
    assertThat(
            found(
                "io.cuvette.testkit.driver.DriverDeviceTest",
                "io.cuvette.testkit.driver.DriverDeviceTest"))
        .isTrue();
  }

  @Test
  void partOfAName_findsAllThatContainIt() throws Exception {
    assertThat(found("Device", "io.cuvette.testkit.driver.DriverDeviceTest")).isTrue();
    assertThat(found("Device", "io.cuvette.testkit.driver.DriverEventTest")).isFalse();
    assertThat(found("Device", "io.cuvette.testkit.DriverDeviceContract")).isFalse();
  }

  @Test
  void noName_findsAllTests() throws Exception {
    assertThat(found("", "io.cuvette.testkit.driver.DriverEventTest")).isTrue();
    assertThat(found("", "io.cuvette.testkit.support.Bytes")).isFalse();
  }

  @Test
  void nothingFound_isAFailure() throws Exception {
    assertThat(arguments("NoSuchTest")).contains("--fail-if-no-tests");
  }

  private boolean found(String name, String className) throws Exception {
    String option =
        arguments(name).stream().filter(word -> word.startsWith(OPTION)).findFirst().orElseThrow();
    return Pattern.matches(option.substring(OPTION.length()), className);
  }

  /** What the script runs its Java with; here that is a program that prints its arguments. */
  private List<String> arguments(String name) throws IOException, InterruptedException {
    Path run = bundle.resolve("run");
    Optional<Path> root = DocumentFiles.root();
    assumeTrue(root.isPresent(), "not in the repository");
    Path java = bundle.resolve("runtime/bin/java");
    if (!Files.exists(java)) {
      Files.createDirectories(java.getParent());
      Files.writeString(java, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n");
      Files.setPosixFilePermissions(java, PosixFilePermissions.fromString("rwx------"));
      Files.copy(root.orElseThrow().resolve("build/gpu-bundle/run"), run);
    }
    List<String> command =
        Stream.of("sh", run.toString(), "test", name).filter(word -> !word.isEmpty()).toList();
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes());
    assertThat(process.waitFor()).as(output).isZero();
    return output.lines().toList();
  }
}
