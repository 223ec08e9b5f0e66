package io.cuvette.mutations;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.pitest.mutationtest.engine.MutationDetails;

/**
 * Changes the compiled library in one place at a time, and runs the tests that reach the place. The
 * changes are those of PIT's engine, made in running JVMs, of which each core has one; what a
 * change may cost is bounded, so that a sample of all takes minutes.
 */
final class Mutate {
  private static final System.Logger LOGGER = System.getLogger(Mutate.class.getName());

  /** What a JVM tries before another takes its place: tests leave threads and classes behind. */
  private static final int OF_A_JVM = 400;

  private final Options options;
  private final Coverage coverage = new Coverage();
  private final Report report = new Report();
  private final AtomicInteger tried = new AtomicInteger();

  /**
   * What the command was given.
   *
   * @param classes the folders of the library's classes
   * @param tests the folders of the tests
   * @param changed the names of the classes to change
   * @param run the names of the test classes to run
   * @param skipped the names of those to leave out
   * @param sample which of the changes to try
   * @param again an earlier report, of which what lived is tried, or "none"
   * @param mutators the kinds of changes
   * @param threads how many JVMs
   * @param millis what the tests of one change may take
   * @param report the file to write
   */
  record Options(
      List<Path> classes,
      List<Path> tests,
      Predicate<String> changed,
      Predicate<String> run,
      Predicate<String> skipped,
      Sample sample,
      String again,
      String mutators,
      int threads,
      long millis,
      Path report) {
    static Options ofProperties() {
      int threads = Integer.parseInt(property("threads"));
      return new Options(
          paths("classes"),
          paths("test.classes"),
          names("of.classes"),
          names("tests"),
          names("tests.not"),
          new Sample(Integer.parseInt(property("of")), Integer.parseInt(property("seed"))),
          property("again"),
          property("mutators"),
          threads > 0 ? threads : Runtime.getRuntime().availableProcessors(),
          TimeUnit.SECONDS.toMillis(Integer.parseInt(property("seconds"))),
          Path.of(property("report")));
    }

    private static String property(String name) {
      String value = System.getProperty("cuvette.mutations." + name);
      if (value == null) {
        throw new IllegalArgumentException("cuvette.mutations." + name + " is not set");
      }
      return value;
    }

    private static List<Path> paths(String name) {
      return Stream.of(property(name).split(File.pathSeparator, -1)).map(Path::of).toList();
    }

    /** Names with commas, and {@code *} for any part of one. */
    private static Predicate<String> names(String name) {
      return Pattern.compile(
              Stream.of(property(name).split(",", -1))
                  .map(each -> "\\Q" + each.strip().replace("*", "\\E.*\\Q") + "\\E")
                  .collect(Collectors.joining("|")))
          .asMatchPredicate();
    }
  }

  private Mutate(Options options) {
    this.options = options;
  }

  /** Takes system properties: see the module's pom. */
  static void main(String[] args) throws Exception {
    Options options = Options.ofProperties();
    new Mutate(options).run();
  }

  private void run() throws IOException, InterruptedException {
    TestJvm.writeAgent(folder());
    List<MutationDetails> changes = choose();
    LOGGER.log(System.Logger.Level.INFO, changes.size() + " changes to try");
    if (!changes.isEmpty()) {
      Queue<String> testClasses = new ConcurrentLinkedQueue<>();
      for (Path folder : options.tests()) {
        Changes.classNames(folder).stream()
            .filter(name -> name.matches("[^$]*Tests?"))
            .filter(options.run().and(options.skipped().negate()))
            .forEach(testClasses::add);
      }
      inParallel(number -> cover(number, testClasses));
      LOGGER.log(System.Logger.Level.INFO, coverage.toString());
      Queue<MutationDetails> queue = new ConcurrentLinkedQueue<>(changes);
      inParallel(number -> attempt(number, queue));
    }
    report.write(options.report());
  }

  private Path folder() {
    return options.report().toAbsolutePath().resolveSibling("jvms");
  }

  private List<MutationDetails> choose() throws IOException {
    Predicate<String> isChosen = options.sample();
    if (!options.again().equals("none")) {
      Set<String> lived = Report.lived(Path.of(options.again()));
      isChosen = isChosen.and(lived::contains);
    }
    Changes changes = new Changes(List.of(options.mutators().split(",", -1)));
    List<MutationDetails> chosen = new ArrayList<>();
    for (Path folder : options.classes()) {
      for (MutationDetails change : changes.in(folder, options.changed())) {
        if (isChosen.test(Changes.text(change.getId()))) {
          chosen.add(change);
        }
      }
    }
    Collections.shuffle(chosen, new Random(options.sample().seed())); // slow ones not at the end
    return chosen;
  }

  /** What each of the threads does. */
  private interface Part {
    void run(int number) throws IOException;
  }

  private void inParallel(Part part) throws IOException, InterruptedException {
    try (ExecutorService threads = Executors.newFixedThreadPool(options.threads())) {
      List<Future<?>> parts = new ArrayList<>();
      for (int i = 0; i < options.threads(); i++) {
        int number = i;
        parts.add(
            threads.submit(() -> {
              part.run(number);
              return number;
            }));
      }
      for (Future<?> each : parts) {
        each.get();
      }
    } catch (ExecutionException e) {
      throw new IOException("a thread of the command failed", e.getCause());
    }
  }

  private TestJvm jvm(int number, List<String> more) throws IOException {
    Path own = folder().resolve(Integer.toString(number));
    return new TestJvm(Files.createDirectories(own), options.tests(), options.mutators(), more);
  }

  private void cover(int number, Queue<String> testClasses) throws IOException {
    String folders =
        options.classes().stream()
            .map(Path::toString)
            .collect(Collectors.joining(File.pathSeparator));
    try (TestJvm jvm = jvm(number, List.of("-D" + Agent.LINES_OF + "=" + folders))) {
      for (String each = testClasses.poll(); each != null; each = testClasses.poll()) {
        List<String> last = jvm.ask(List.of("cover", each), "unit", this::cover);
        if (!last.getFirst().equals("end")) {
          LOGGER.log(System.Logger.Level.WARNING, each + " is left out: " + last);
          jvm.restart();
        }
      }
    }
  }

  private void cover(List<String> unit) {
    if (unit.get(3).equals("fails")) {
      LOGGER.log(System.Logger.Level.WARNING, "left out, as it fails without a change: " + unit);
    } else {
      coverage.add(unit.get(1), unit.get(2), Long.parseLong(unit.get(3)), unit.get(4));
    }
  }

  private void attempt(int number, Queue<MutationDetails> queue) throws IOException {
    try (TestJvm jvm = jvm(number, List.of())) {
      int ofJvm = 0;
      for (MutationDetails each = queue.poll(); each != null; each = queue.poll()) {
        List<Coverage.Unit> tests =
            coverage.nearest(
                each.getClassName().asInternalName(), each.getLineNumber(), options.millis());
        if (tests.isEmpty()) {
          report.add(each, Report.Status.NO_COVERAGE, "");
          continue;
        }
        List<String> question = new ArrayList<>(List.of("try", Changes.text(each.getId())));
        tests.forEach(test -> question.addAll(List.of(test.id(), Long.toString(test.millis()))));
        List<String> answer = jvm.ask(question, "", _ -> {});
        if (!isSure(answer)) {
          jvm.restart();
          ofJvm = 0;
          answer = jvm.ask(question, "", _ -> {}); // in one that nothing else was tried in
        }
        report.add(each, status(answer), String.join(" ", answer.subList(1, answer.size())));
        if (!isSure(answer) || status(answer) == Report.Status.TIMED_OUT || ++ofJvm == OF_A_JVM) {
          jvm.restart();
          ofJvm = 0;
        }
        if (tried.incrementAndGet() % 100 == 0) {
          LOGGER.log(System.Logger.Level.INFO, tried + " tried, " + queue.size() + " left");
          report.write(options.report());
        }
      }
    }
  }

  /** Whether it is certain that the change is what did it: the JVM goes on, and the test passes. */
  private static boolean isSure(List<String> answer) {
    return !answer.getFirst().equals("spoilt") && !answer.getFirst().equals("ended");
  }

  private static Report.Status status(List<String> answer) {
    return switch (answer.getFirst()) {
      case "killed", "spoilt", "ended" -> Report.Status.KILLED;
      case "late" -> Report.Status.TIMED_OUT;
      case "lived" -> Report.Status.SURVIVED;
      case "impossible" -> Report.Status.NON_VIABLE;
      default -> throw new IllegalStateException("answer: " + answer);
    };
  }
}
