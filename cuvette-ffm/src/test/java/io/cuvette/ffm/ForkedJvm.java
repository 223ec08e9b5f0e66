package io.cuvette.ffm;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Runs a main class of the tests in a JVM of its own, on the class path. */
final class ForkedJvm {
  private static final int PATIENCE_SECONDS = 300;

  /** How it ended and all it printed. */
  record Result(int exitCode, String output) {}

  private ForkedJvm() {}

  static Result run(Class<?> main, Map<String, String> environment, String... options)
      throws IOException, InterruptedException {
    return run(main, List.of(), environment, options);
  }

  /** A JVM that does not end by itself is killed, and its exit code says so. */
  static Result run(
      Class<?> main, List<String> arguments, Map<String, String> environment, String... options)
      throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("--enable-native-access=ALL-UNNAMED");
    command.add("-XX:TieredStopAtLevel=1");
    command.add("-XX:+UseSerialGC");
    command.addAll(List.of(options));
    command.add("-cp");
    command.add(classPath());
    command.add(main.getName());
    command.addAll(arguments);
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().putAll(environment);
    Process process = builder.start();
    var _ =
        process
            .onExit()
            .orTimeout(PATIENCE_SECONDS, TimeUnit.SECONDS)
            .exceptionally(_ -> process.destroyForcibly());
    try (InputStream stream = process.getInputStream()) {
      String output = new String(stream.readAllBytes(), StandardCharsets.UTF_8);
      return new Result(process.waitFor(), output);
    }
  }

  private static String classPath() {
    return String.join(
        ":",
        location(FfmDriverProvider.class),
        location(ForkedJvm.class),
        location(io.cuvette.driver.CudaDriver.class));
  }

  private static String location(Class<?> type) {
    return Path.of(java.net.URI.create(source(type))).toString();
  }

  private static String source(Class<?> type) {
    return type.getProtectionDomain().getCodeSource().getLocation().toString();
  }
}
