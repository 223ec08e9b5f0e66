package io.cuvette.mutations;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.pitest.mutationtest.engine.MutationDetails;

/**
 * Tries what lived in classes of the driver through FFM again, each change in a JVM of its own,
 * started with the changed class on its class path: some tests start programs with these classes.
 */
final class NewJvms {
  private static final System.Logger LOGGER = System.getLogger(NewJvms.class.getName());
  private static final long PATIENCE_SECONDS = 20;

  private final Path classes;
  private final Path tests;
  private final String excluded;
  private final Path work;
  private final Path changed;
  private final Changes changes;

  private NewJvms(Path classes, Path tests, String excluded, Changes changes, Path work) {
    this.classes = classes;
    this.tests = tests;
    this.excluded = excluded;
    this.work = work;
    this.changed = work.resolve("classes");
    this.changes = changes;
  }

  /**
   * Takes the folder of the classes, that of the tests, a regular expression of tests to leave out,
   * the kinds of changes by PIT's names, a folder to work in, the report of what lived, and the one
   * to write.
   */
  static void main(String[] args) throws Exception {
    Changes changes = new Changes(List.of(args[3].split(",", -1)));
    var jvms = new NewJvms(Path.of(args[0]), Path.of(args[1]), args[2], changes, Path.of(args[4]));
    Set<String> lived = Report.lived(Path.of(args[5]));
    List<MutationDetails> left =
        changes.in(jvms.classes, _ -> true).stream()
            .filter(change -> lived.contains(Changes.text(change.getId())))
            .toList();
    Report report = new Report();
    if (!left.isEmpty()) {
      jvms.tryAll(left, report);
    }
    report.write(Path.of(args[6]));
  }

  private void tryAll(List<MutationDetails> left, Report report) throws Exception {
    copyClasses();
    long start = System.nanoTime();
    if (run(Long.MAX_VALUE) != Report.Status.SURVIVED) {
      throw new IllegalStateException("the tests fail without a change: " + work);
    }
    long seconds = PATIENCE_SECONDS + 2 * TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start);
    for (MutationDetails change : left) {
      Path file = changed.resolve(change.getClassName().asInternalName() + ".class");
      byte[] before = Files.readAllBytes(file);
      Files.write(file, changes.make(change.getId()));
      Report.Status status = run(seconds);
      report.add(change, status, "");
      LOGGER.log(System.Logger.Level.INFO, status + " " + change);
      Files.write(file, before);
    }
  }

  private void copyClasses() throws IOException {
    clear(work);
    for (Path file : under(classes)) {
      Path copy = changed.resolve(classes.relativize(file).toString());
      if (Files.isDirectory(file)) {
        Files.createDirectories(copy);
      } else {
        Files.copy(file, copy);
      }
    }
  }

  private Report.Status run(long seconds) throws IOException, InterruptedException {
    Path temporary = Files.createDirectories(work.resolve("tmp"));
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-ea",
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "-Djava.io.tmpdir=" + temporary,
                "-Dcuvette.root=" + System.getProperty("cuvette.root"),
                "-cp",
                classPath(),
                Main.class.getName(),
                tests.toString(),
                excluded)
            .redirectErrorStream(true)
            .redirectOutput(work.resolve("output.txt").toFile())
            .start();
    try {
      if (!process.waitFor(seconds, TimeUnit.SECONDS)) {
        return Report.Status.TIMED_OUT;
      }
      return process.exitValue() == 0 ? Report.Status.SURVIVED : Report.Status.KILLED;
    } finally {
      process.descendants().forEach(ProcessHandle::destroyForcibly);
      process.destroyForcibly().waitFor();
      clear(temporary);
    }
  }

  private String classPath() {
    List<String> path = new ArrayList<>(List.of(changed.toString(), tests.toString()));
    for (String entry : System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
      if (!Path.of(entry).equals(classes)) {
        path.add(entry);
      }
    }
    return String.join(File.pathSeparator, path);
  }

  private static void clear(Path folder) throws IOException {
    if (Files.exists(folder)) {
      under(folder).reversed().forEach(NewJvms::delete);
    }
  }

  private static void delete(Path file) {
    try {
      Files.delete(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static List<Path> under(Path folder) throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      return all.sorted(Comparator.naturalOrder()).toList();
    }
  }
}
