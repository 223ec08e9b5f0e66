package io.cuvette.cli;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Runs a command in a JVM of its own, for what belongs to a whole process. Stateless. */
public final class JvmRun {
  private static final long PATIENCE_SECONDS = 60;

  private JvmRun() {}

  /**
   * Runs a command.
   *
   * @param variables the environment's settings of Cuvette; others of it are not set
   * @param out where standard output goes; null if it is to be read
   */
  public static Run of(Map<String, String> variables, File out, String... arguments)
      throws IOException, InterruptedException {
    Path read = Files.createTempFile("cuvette-run", ".out");
    Path err = Files.createTempFile("cuvette-run", ".err");
    try {
      ProcessBuilder builder = jvm(Main.class, arguments);
      builder.environment().putAll(variables);
      builder.redirectOutput(out == null ? read.toFile() : out).redirectError(err.toFile());
      int code = end(builder.start());
      return new Run(code, Files.readString(read), Files.readString(err));
    } finally {
      Files.delete(read);
      Files.delete(err);
    }
  }

  private static int end(Process process) throws InterruptedException {
    try {
      if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        throw new AssertionError("the command does not end: " + process.info());
      }
      return process.exitValue();
    } finally {
      process.destroyForcibly();
    }
  }

  /** A JVM like this one, without the environment's settings of Cuvette. */
  public static ProcessBuilder jvm(Class<?> main, String... arguments) {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                classPath(),
                main.getName()));
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().keySet().removeIf(name -> name.matches("(CUVETTE|CUPY)_.*"));
    return builder;
  }

  /** All that this JVM has, on whichever of its paths. */
  private static String classPath() {
    String own = Main.class.getProtectionDomain().getCodeSource().getLocation().getPath();
    return Stream.of(
            own, System.getProperty("java.class.path"), System.getProperty("jdk.module.path"))
        .filter(path -> path != null && !path.isEmpty())
        .collect(Collectors.joining(File.pathSeparator));
  }
}
