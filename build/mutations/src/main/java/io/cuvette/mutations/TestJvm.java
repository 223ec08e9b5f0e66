package io.cuvette.mutations;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;

/** A process with a {@link Worker}, and another one once that has ended. Thread-confined. */
final class TestJvm implements AutoCloseable {
  /** For a JVM that does not even end itself. */
  private static final long STUCK_SECONDS = 240;

  private static final ScheduledExecutorService CLOCK =
      Executors.newSingleThreadScheduledExecutor(Thread.ofPlatform().daemon().factory());

  private final List<String> command;
  private final Path folder;

  private Process process;
  private BufferedReader answers;
  private PrintWriter questions;

  /**
   * Starts a JVM.
   *
   * @param folder for its temporary files; the agent lies beside it
   * @param tests the folders of the tests
   * @param mutators the kinds of changes
   * @param options further options of the JVM
   */
  TestJvm(Path folder, List<Path> tests, String mutators, List<String> options) throws IOException {
    this.folder = Files.createDirectories(folder);
    this.command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(
        List.of(
            "-ea",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-Xmx1500m",
            "-Djava.awt.headless=true",
            "--enable-native-access=ALL-UNNAMED",
            "--add-opens=java.base/java.nio=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow",
            "-Djava.io.tmpdir=" + folder,
            "-Dcuvette.root=" + System.getProperty("cuvette.root"),
            "-javaagent:" + folder.resolveSibling("agent.jar")));
    command.addAll(options);
    List<String> path = new ArrayList<>(tests.stream().map(Path::toString).toList());
    path.add(System.getProperty("java.class.path"));
    command.addAll(List.of("-cp", String.join(File.pathSeparator, path)));
    command.addAll(List.of(Worker.class.getName(), mutators));
    start();
  }

  private void start() throws IOException {
    process =
        new ProcessBuilder(command)
            .directory(Path.of(System.getProperty("cuvette.root"), "cuvette-tests").toFile())
            .redirectError(folder.resolve("errors.txt").toFile())
            .start();
    answers = process.inputReader(StandardCharsets.UTF_8);
    questions = new PrintWriter(process.outputWriter(StandardCharsets.UTF_8), true);
  }

  /**
   * Asks, and hands each answer on until one has another first part.
   *
   * @param more the first part of an answer that others follow
   * @return the parts of the last answer; "ended" if the JVM ended in place of it
   */
  List<String> ask(List<String> question, String more, Consumer<List<String>> each)
      throws IOException {
    ScheduledFuture<?> end = CLOCK.schedule(this::kill, STUCK_SECONDS, TimeUnit.SECONDS);
    try {
      questions.println(String.join(Worker.BETWEEN, question));
      for (String line = answers.readLine(); line != null; line = answers.readLine()) {
        int at = line.indexOf(Worker.ANSWER);
        if (at >= 0) {
          var answer = List.of(line.substring(at + 2).split(Worker.BETWEEN, -1));
          if (!answer.getFirst().equals(more)) {
            return answer;
          }
          each.accept(answer);
        }
      }
      return List.of("ended");
    } finally {
      end.cancel(false);
    }
  }

  /** Ends the JVM, and starts another. */
  void restart() throws IOException {
    kill();
    start();
  }

  @Override
  public void close() {
    kill();
  }

  private void kill() {
    process.descendants().forEach(ProcessHandle::destroyForcibly);
    process.destroyForcibly();
  }

  /** Writes what each JVM is started with: the agent, and the class that the first loader has. */
  static void writeAgent(Path folder) throws IOException {
    Files.createDirectories(folder);
    Attributes probe = new Attributes();
    Path first = folder.resolve("probe.jar");
    String name = Probe.class.getName().replace('.', '/') + ".class";
    try (JarOutputStream jar = jar(first, probe);
        var in = Probe.class.getResourceAsStream("Probe.class")) {
      jar.putNextEntry(new JarEntry(name));
      in.transferTo(jar);
    }
    Attributes agent = new Attributes();
    agent.putValue("Premain-Class", Agent.class.getName());
    agent.putValue("Boot-Class-Path", first.getFileName().toString());
    agent.putValue("Can-Retransform-Classes", "true");
    jar(folder.resolve("agent.jar"), agent).close(); // the class itself is on the class path
  }

  private static JarOutputStream jar(Path file, Attributes attributes) throws IOException {
    Manifest manifest = new Manifest();
    manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
    manifest.getMainAttributes().putAll(attributes);
    return new JarOutputStream(Files.newOutputStream(file), manifest);
  }
}
