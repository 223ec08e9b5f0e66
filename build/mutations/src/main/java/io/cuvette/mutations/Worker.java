package io.cuvette.mutations;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.instrument.UnmodifiableClassException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.pitest.mutationtest.engine.MutationIdentifier;

/**
 * A JVM that runs tests for {@link Mutate}, which asks on its input and reads from its output. What
 * takes too long ends the JVM.
 */
final class Worker {
  /** Begins each answer, as native code may write to the same output. */
  static final String ANSWER = "::";

  /** Between the parts of a question or of an answer. */
  static final String BETWEEN = "\t";

  private static final long CLASS_MILLIS = 200_000;
  private static final long UNIT_MILLIS = 25_000;
  private static final long CHANGE_MILLIS = 20_000;

  private final PrintStream out;
  private final Launcher launcher = LauncherFactory.create();
  private final Changes changes;
  private final ScheduledExecutorService clock =
      Executors.newSingleThreadScheduledExecutor(Thread.ofPlatform().daemon().factory());

  private Worker(PrintStream out, List<String> mutators) {
    this.out = out;
    this.changes = new Changes(mutators);
  }

  /** Takes the kinds of changes. */
  static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
    PrintStream nowhere = new PrintStream(OutputStream.nullOutputStream(), true);
    System.setOut(nowhere);
    System.setErr(nowhere);
    System.setIn(new ByteArrayInputStream(new byte[0]));
    var input =
        new InputStreamReader(new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8);
    Worker worker = new Worker(out, List.of(args[0].split(",", -1)));
    try (BufferedReader questions = new BufferedReader(input)) {
      for (String each = questions.readLine(); each != null; each = questions.readLine()) {
        worker.answer(List.of(each.split(BETWEEN, -1)));
      }
    }
    Main.end(0);
  }

  private void answer(List<String> question) throws UnmodifiableClassException {
    if (question.getFirst().equals("cover")) {
      cover(question.get(1));
    } else {
      attempt(Changes.of(question.get(1)), question.subList(2, question.size()));
    }
  }

  private void say(String... parts) {
    out.println(ANSWER + String.join(BETWEEN, parts)); // at once, beside what others print
  }

  /** Ends the JVM if something takes longer. */
  private <T> T within(long millis, String what, Supplier<T> something) {
    ScheduledFuture<?> end =
        clock.schedule(
            () -> {
              say("late", what);
              Main.end(1);
            },
            millis,
            TimeUnit.MILLISECONDS);
    try {
      return something.get();
    } finally {
      end.cancel(false);
    }
  }

  /** Runs each test method of a class, and says which lines it reaches, or why it fails. */
  private void cover(String testClass) {
    DiscoverySelector all = DiscoverySelectors.selectClass(testClass);
    TestPlan plan = within(CLASS_MILLIS, testClass, () -> launcher.discover(request(all)));
    List<String> units = new ArrayList<>();
    collect(plan, plan.getRoots(), units);
    for (String unit : units) {
      Agent.installed().takeLines();
      long start = System.nanoTime();
      Outcome outcome = within(UNIT_MILLIS, unit, () -> run(unit));
      long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
      String lines = Agent.installed().takeLines();
      String failure = outcome.failure.get();
      if (failure != null) {
        say("unit", unit, testClass, "fails", failure);
      } else if (outcome.passed.get() > 0) {
        say("unit", unit, testClass, Long.toString(millis), lines);
      }
    }
    say("end");
  }

  private static void collect(TestPlan plan, Set<TestIdentifier> tests, List<String> to) {
    for (TestIdentifier test : tests) {
      if (test.getSource().orElse(null) instanceof MethodSource) {
        to.add(test.getUniqueId());
      } else {
        collect(plan, plan.getChildren(test), to);
      }
    }
  }

  /**
   * Makes a change, runs tests until one fails, takes the change back, and runs that one again.
   *
   * @param tests each with the milliseconds that it takes without the change, alternating
   */
  private void attempt(MutationIdentifier change, List<String> tests)
      throws UnmodifiableClassException {
    String name = change.getClassName().asInternalName();
    try {
      Agent.installed().change(name, changes.make(change));
    } catch (LinkageError | UnsupportedOperationException e) {
      Agent.installed().restore();
      say("impossible", e.toString());
      return;
    }
    @Nullable String failure = null;
    int i = 0;
    for (; i < tests.size() && failure == null; i += 2) {
      String unit = tests.get(i);
      long patience = 5000 + 5 * Long.parseLong(tests.get(i + 1));
      failure = within(patience, unit, () -> run(unit)).failure.get();
    }
    Agent.installed().restore();
    if (failure == null) {
      say("lived");
      return;
    }
    String killer = tests.get(i - 2);
    boolean isSpoilt = within(CHANGE_MILLIS, killer, () -> run(killer)).failure.get() != null;
    say(isSpoilt ? "spoilt" : "killed", failure);
  }

  private Outcome run(String unit) {
    Outcome outcome = new Outcome();
    launcher.execute(request(DiscoverySelectors.selectUniqueId(unit)), outcome);
    return outcome;
  }

  private static LauncherDiscoveryRequest request(DiscoverySelector selector) {
    return LauncherDiscoveryRequestBuilder.request()
        .selectors(selector)
        .configurationParameter("junit.jupiter.execution.parallel.enabled", "false")
        .build();
  }

  /** What became of the tests of one run. */
  private static final class Outcome implements TestExecutionListener {
    private final AtomicInteger passed = new AtomicInteger();
    private final AtomicReference<@Nullable String> failure = new AtomicReference<>();

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
      if (test.isTest() && result.getStatus() == TestExecutionResult.Status.SUCCESSFUL) {
        passed.incrementAndGet();
      }
      if (result.getStatus() == TestExecutionResult.Status.FAILED) {
        String error = result.getThrowable().map(Throwable::toString).orElse("");
        String text = (test.getUniqueId() + ": " + error).replaceAll("\\s+", " ");
        boolean _ = failure.compareAndSet(null, text); // the first one counts
      }
    }
  }
}
