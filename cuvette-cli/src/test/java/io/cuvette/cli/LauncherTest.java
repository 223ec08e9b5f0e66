package io.cuvette.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The script {@code cuvette} in a checkout of its own that cannot be written, with a JDK that only
 * says what it was asked to run.
 */
class LauncherTest {
  private static final long PATIENCE_SECONDS = 60;

  @TempDir private Path folder;
  private Path root;
  private Path script;

  @BeforeEach
  void makeCheckout() throws IOException {
    Path source = Path.of(System.getProperty("cuvette.root", ".."), "cuvette");
    assumeTrue(Files.isRegularFile(source), "the script is not here");
    root = Files.createDirectories(folder.resolve("check out"));
    script = Files.copy(source, root.resolve("cuvette"));
    for (String module :
        new String[] {"cuvette-core", "cuvette-ffm", "cuvette-array", "cuvette-cli"}) {
      Files.createDirectories(root.resolve(module));
    }
    Files.createFile(root.resolve("target")); // so that not even root can make the folder
    executable(root.resolve("jdk/bin/java"), "printf '%s\\n' \"$@\"");
    executable(root.resolve("jdk/bin/javac"), "exit 9");
    Files.writeString(root.resolve("jdk/release"), "JAVA_VERSION=\"25.0.3\"\n");
  }

  private static void executable(Path file, String command) throws IOException {
    Files.createDirectories(file.getParent());
    Files.writeString(file, "#!/bin/sh\n" + command + "\n");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  private void build() throws IOException {
    Path libraries = Files.createDirectories(root.resolve("cuvette-cli/target/lib"));
    Files.createFile(libraries.resolve("cuvette-cli.jar"));
  }

  private Run run(Path command, String... arguments) throws IOException, InterruptedException {
    ProcessBuilder builder = new ProcessBuilder("sh", command.toString());
    builder.command().addAll(List.of(arguments));
    builder.environment().put("JAVA_HOME", root.resolve("jdk").toString());
    Path out = folder.resolve("out");
    Path err = folder.resolve("err");
    Process process = builder.redirectOutput(out.toFile()).redirectError(err.toFile()).start();
    try {
      assertThat(process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)).isTrue();
      return new Run(process.exitValue(), Files.readString(out), Files.readString(err));
    } finally {
      process.destroyForcibly();
    }
  }

  @Test
  void checkoutThatCannotBeWritten_runsWhatIsBuiltThere() throws Exception {
    build();
    Run run = run(script, "info", "--device", "gpu:1", "a b");
    assertThat(run.err()).isEmpty();
    assertThat(run.code()).isZero();
    assertThat(run.out().lines())
        .contains("--enable-native-access=io.cuvette.ffm")
        .contains(root.toRealPath().resolve("cuvette-cli/target/lib").toString())
        .endsWith("io.cuvette.cli/io.cuvette.cli.Main", "info", "--device", "gpu:1", "a b");
  }

  @Test
  void checkoutThatCannotBeWritten_andWhereNothingIsBuilt_isOneClearError() throws Exception {
    Run run = run(script, "info");
    assertThat(run.code()).isEqualTo(1);
    assertThat(run.out()).isEmpty();
    assertThat(run.err().lines()).hasSize(1);
    assertThat(run.err())
        .startsWith("cuvette: nothing is built in " + root.toRealPath())
        .contains("cannot be written to");
  }

  @Test
  void linkToTheScript_findsTheCheckout() throws Exception {
    build();
    Path first = Files.createSymbolicLink(folder.resolve("first"), script);
    Path second = Files.createSymbolicLink(folder.resolve("second"), first.getFileName());
    assertThat(run(second, "help").out()).endsWith("io.cuvette.cli.Main\nhelp\n");
  }
}
