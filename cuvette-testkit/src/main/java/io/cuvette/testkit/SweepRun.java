package io.cuvette.testkit;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.FaultMode;
import io.cuvette.instrument.Faults;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.instrument.SanitizerReport;
import io.cuvette.testkit.FaultSweep.Leftovers;
import io.cuvette.testkit.FaultSweep.UseCase;
import io.cuvette.testkit.SweepFinding.Problem;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.BiPredicate;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** One run of a swept use case: a driver, a fault, and what came of it. Not thread-safe. */
final class SweepRun {
  /** How many callers a finding names. */
  private static final int CALLERS = 6;

  /** The calls that come back when all streams are done with what they free. */
  private static final Set<String> WAITING_FREES =
      Set.of("memFree", "memFreeHost", "ipcCloseMemHandle");

  private final CudaDriver base;
  private final ExportedFiles exported = new ExportedFiles();
  private final SanitizerDriver sanitizer;
  private final Faults faults;
  private final FaultMode mode;
  private final long number;
  private final Set<Misuse> ignored;
  private final Queue<SanitizerReport> misuses = new ConcurrentLinkedQueue<>();
  private final List<SweepFinding> findings = new ArrayList<>();
  private final @Nullable CudaStatus status;
  private final ThreadGroup threads = new ThreadGroup("fault-sweep");
  private final OpenFiles files;
  private WatchedRun.Outcome outcome = new WatchedRun.Outcome(null, null);
  private LeftInProcess left = LeftInProcess.NOTHING;

  /**
   * Where a run had its fault. Immutable.
   *
   * @param mode how long the fault lasts
   * @param number the call that fails, 0 for none
   * @param status what it fails with, null for the usual
   * @param call the call that failed
   * @param fired whether one did
   */
  record Place(
      FaultMode mode, long number, @Nullable CudaStatus status, String call, boolean fired) {
    SweepFinding left(String detail) {
      return new SweepFinding(Problem.LEFT_BEHIND, mode, fired ? number : 0, call, detail);
    }
  }

  /** A run on a new driver that fails call {@code number}, or none for 0. */
  SweepRun(
      Supplier<? extends CudaDriver> drivers,
      FaultMode mode,
      long number,
      @Nullable CudaStatus status,
      Set<Misuse> ignored,
      OpenFiles files) {
    this.files = files;
    base = Objects.requireNonNull(drivers.get(), "drivers.get()");
    this.mode = mode;
    this.number = number;
    this.status = status;
    this.ignored = ignored;
    sanitizer = SanitizerDriver.reporting(exported.over(base), misuses::add);
    faults = number == 0 ? Faults.none(sanitizer) : Faults.of(sanitizer, number, mode, status);
  }

  boolean fired() {
    return faults.fired();
  }

  /** The call that failed, if one did. */
  Optional<Faults.Fault> fault() {
    return faults.fault();
  }

  boolean hung() {
    return outcome.hung() != null;
  }

  long calls() {
    return faults.calls();
  }

  List<SweepFinding> findings() {
    return findings;
  }

  void run(UseCase useCase, Duration limit, WatchedRun.Patience patience)
      throws InterruptedException {
    CudaDriver shielded = new SweptDriver(faults.driver(), faults);
    outcome = WatchedRun.of(() -> useCase.run(shielded), threads, limit, patience);
  }

  /** Finds what is wrong with the run, and closes the driver unless the run still has it. */
  void judge(
      BiPredicate<Throwable, Faults.Fault> allowed,
      Predicate<Faults.Fault> recoverable,
      Leftovers leftovers) {
    if (outcome.hung() != null) {
      add(Problem.HUNG, outcome.hung());
      return;
    }
    judgeError(allowed, recoverable);
    judgeLeftovers(leftovers);
    judgeMisuses();
    close();
    judgeProcess();
  }

  /** Descriptors that were exported belong to this run; whose others are, nobody knows here. */
  private void judgeProcess() {
    List<Throwable> open = exported.open();
    for (Throwable site : open) {
      add(Problem.LEFT_BEHIND, "%s is open\n%s".formatted(site.getMessage(), stack(site)));
    }
    LeftInProcess all = LeftInProcess.of(threads, files);
    left = open.isEmpty() ? all : all.withoutFiles();
  }

  /** What it had in the process when it was over. */
  LeftInProcess left() {
    return left;
  }

  Place place() {
    return new Place(mode, number, status, call(), fired());
  }

  private String call() {
    return fault().map(one -> one.call() + " with " + one.status()).orElse("none");
  }

  private void close() {
    try {
      base.close();
    } catch (RuntimeException e) {
      add(Problem.LEFT_BEHIND, "the driver does not close: " + stack(e));
    }
  }

  private void judgeError(
      BiPredicate<Throwable, Faults.Fault> allowed, Predicate<Faults.Fault> recoverable) {
    Throwable thrown = outcome.thrown();
    if (!fired() && thrown != null) {
      add(Problem.FAILS_WITHOUT_FAULT, stack(thrown));
    } else if (thrown != null && fault().filter(one -> allowed.test(thrown, one)).isEmpty()) {
      add(Problem.WRONG_ERROR, stack(thrown));
    } else if (thrown == null) {
      fault().filter(recoverable.negate()).ifPresent(this::addSwallowed);
    }
  }

  private void addSwallowed(Faults.Fault fault) {
    List<String> callers = fault.callers();
    String shown = String.join(", ", callers.subList(0, Math.min(CALLERS, callers.size())));
    add(Problem.SWALLOWED, "the use case ended as if the call had worked; called by " + shown);
  }

  private void judgeLeftovers(Leftovers leftovers) {
    try {
      faults.freeRefused();
      for (SanitizerReport leak : sanitizer.leaks()) {
        add(Problem.LEFT_BEHIND, leak.describe());
      }
      leftovers.find(sanitizer).forEach(left -> add(Problem.LEFT_BEHIND, left));
    } catch (Exception e) {
      add(Problem.LEFT_BEHIND, "the search for leftovers failed: " + stack(e));
    }
  }

  private void judgeMisuses() {
    for (SanitizerReport misuse : misuses) {
      if (!ignored.contains(misuse.misuse()) && !isConsequence(misuse)) {
        add(Problem.MISUSED, misuse.describe());
      }
    }
  }

  /**
   * Who could not wait because of the fault may free all the same where the driver waits then, and
   * on a driver that fails from then on, where nothing can be waited for.
   */
  private boolean isConsequence(SanitizerReport misuse) {
    String call = misuse.sites().getFirst().call();
    return fired()
        && misuse.misuse() == Misuse.FREE_WHILE_IN_USE
        && (mode == FaultMode.FROM_THEN_ON
            || WAITING_FREES.contains(call.substring(0, call.indexOf('('))));
  }

  private void add(Problem problem, String detail) {
    findings.add(new SweepFinding(problem, mode, fired() ? number : 0, call(), detail));
  }

  private static String stack(Throwable thrown) {
    StringWriter text = new StringWriter();
    thrown.printStackTrace(new PrintWriter(text, true));
    return text.toString();
  }
}
