package io.cuvette.mutations;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.pitest.bytecode.analysis.ClassTree;
import org.pitest.classinfo.ClassName;
import org.pitest.mutationtest.EngineArguments;
import org.pitest.mutationtest.build.InterceptorParameters;
import org.pitest.mutationtest.build.MutationInterceptorFactory;
import org.pitest.mutationtest.config.ReportOptions;
import org.pitest.mutationtest.engine.Mutater;
import org.pitest.mutationtest.engine.MutationDetails;
import org.pitest.mutationtest.engine.gregor.config.GregorEngineFactory;

/**
 * Tries each mutation in a JVM of its own, started with the changed class on its class path: for
 * classes that tests load anew or start programs with, of which PIT changes the loaded one alone.
 */
final class NewJvms {
  private static final System.Logger LOGGER = System.getLogger(NewJvms.class.getName());
  private static final long PATIENCE_SECONDS = 20;

  private final Path classes;
  private final Path tests;
  private final String excluded;
  private final Path work;
  private final Path changed;
  private final Mutater mutater;

  private NewJvms(Path classes, Path tests, String excluded, List<String> mutators, Path work) {
    this.classes = classes;
    this.tests = tests;
    this.excluded = excluded;
    this.work = work;
    this.changed = work.resolve("classes");
    this.mutater =
        new GregorEngineFactory()
            .createEngine(EngineArguments.arguments().withMutators(mutators))
            .createMutator(NewJvms::bytes);
  }

  /**
   * Takes the folder of the classes, that of the tests, a regular expression of classes to change,
   * one of tests to leave out, the size and the seed of the sample, the kinds of changes by PIT's
   * names, a folder to work in, and the report to write, which has the form of PIT's.
   */
  static void main(String[] args) throws Exception {
    List<String> mutators = List.of(args[6].split(",", -1));
    var jvms = new NewJvms(Path.of(args[0]), Path.of(args[1]), args[3], mutators, Path.of(args[7]));
    Sample sample = new Sample(Integer.parseInt(args[4]), Integer.parseInt(args[5]), _ -> true);
    List<MutationDetails> mutations = jvms.find(args[2], sample);
    List<String> report = new ArrayList<>();
    if (!mutations.isEmpty()) {
      long start = System.nanoTime();
      if (!jvms.run(Long.MAX_VALUE).equals("SURVIVED")) {
        throw new IllegalStateException("the tests fail without a mutation: " + jvms.work);
      }
      long seconds =
          PATIENCE_SECONDS + 2 * TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start);
      for (MutationDetails mutation : mutations) {
        report.add(jvms.tried(mutation, seconds));
        LOGGER.log(System.Logger.Level.INFO, report.getLast());
      }
    }
    report.addFirst("<mutations>");
    report.add("</mutations>");
    Files.write(Path.of(args[8]), report);
  }

  /** What is to be tried; leaves the classes as they are in the folder to work in. */
  private List<MutationDetails> find(String pattern, Sample sample) throws IOException {
    List<MutationDetails> found = new ArrayList<>();
    clear(work);
    for (Path file : under(classes)) {
      Path copy = changed.resolve(classes.relativize(file).toString());
      if (Files.isDirectory(file)) {
        Files.createDirectories(copy);
        continue;
      }
      Files.copy(file, copy);
      String name = classes.relativize(file).toString().replace('/', '.').replace(".class", "");
      if (name.matches(pattern)) {
        found.addAll(sample.intercept(filtered(name, Files.readAllBytes(file)), mutater));
      }
    }
    return found;
  }

  /** A class of the library, or of the JDK, to which it refers. */
  private static Optional<byte[]> bytes(String name) {
    String file = name.replace('.', '/') + ".class";
    try (InputStream in = ClassLoader.getSystemResourceAsStream(file)) {
      return in == null ? Optional.empty() : Optional.of(in.readAllBytes());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The mutations of a class but those of code that the compiler writes. */
  private Collection<MutationDetails> filtered(String name, byte[] bytes) {
    Collection<MutationDetails> all = mutater.findMutations(ClassName.fromString(name));
    ReportOptions options = new ReportOptions();
    options.setDetectInlinedCode(true);
    var parameters = new InterceptorParameters(null, options, null, null, null, null, null);
    for (var factory : ServiceLoader.load(MutationInterceptorFactory.class)) {
      if (factory.getClass().getPackageName().endsWith(".javafeatures")) {
        var filter = factory.createInterceptor(parameters);
        filter.begin(ClassTree.fromBytes(bytes));
        all = filter.intercept(all, mutater);
        filter.end();
      }
    }
    return all;
  }

  private String tried(MutationDetails mutation, long seconds) throws Exception {
    Path file = changed.resolve(mutation.getClassName().asInternalName() + ".class");
    byte[] before = Files.readAllBytes(file);
    Files.write(file, mutater.getMutation(mutation.getId()).getBytes());
    try {
      return element(mutation, run(seconds));
    } finally {
      Files.write(file, before);
    }
  }

  /** What became of the tests, in PIT's words. */
  private String run(long seconds) throws IOException, InterruptedException {
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
        return "TIMED_OUT";
      }
      return process.exitValue() == 0 ? "SURVIVED" : "KILLED";
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

  private static String element(MutationDetails mutation, String status) {
    return ("<mutation status='%s'><mutatedClass>%s</mutatedClass><mutatedMethod>%s</mutatedMethod>"
            + "<lineNumber>%d</lineNumber><description>%s</description></mutation>")
        .formatted(
            status,
            mutation.getClassName().asJavaName(),
            escaped(mutation.getMethod()),
            mutation.getLineNumber(),
            escaped(mutation.getDescription()));
  }

  private static String escaped(String text) {
    return text.replace("&", "&amp;").replace("<", "&lt;");
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
