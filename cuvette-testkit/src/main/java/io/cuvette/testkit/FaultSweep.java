package io.cuvette.testkit;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.FaultMode;
import io.cuvette.instrument.Faults;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.testkit.SweepFinding.Problem;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.BiPredicate;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Runs a use case again and again and makes driver call 1, 2, 3 … fail, until the use case ends
 * before the fault is reached; once for each {@link FaultMode}.
 *
 * <p>A call fails with what it most often fails with, and, once for each place of the library from
 * which it is called, with every other error that the driver documents for it.
 *
 * <p>Each run has a new driver, watched by a {@link SanitizerDriver}. A run with a fault must end
 * in time, throw a {@link CudaException} or another allowed type, and leave no memory, handle,
 * thread of the library or open descriptor; what it tried to free while the fault refused does not
 * count as left. Threads and descriptors are looked at when all runs are over: a run left one if it
 * lives on, and a descriptor if each repetition of the run leaves one too. Closing the driver it is
 * given does nothing. Not thread-safe.
 *
 * <pre>{@code
 * FaultSweep.over(() -> newDriver())
 *     .recoveringFrom("memAlloc")
 *     .run(driver -> useTheLibrary(driver))
 *     .orThrow();
 * }</pre>
 */
public final class FaultSweep {
  /** How often a call is waited for that was made without a fault. */
  private static final int TRIES = 3;

  /** One in so many calls may be made in one run and not in the next. */
  private static final int DIFFERENT_PART = 8;

  private final Supplier<? extends CudaDriver> drivers;
  private BiPredicate<Throwable, Faults.Fault> allowed =
      (error, _) -> error instanceof CudaException;
  private final Set<Misuse> ignored = EnumSet.noneOf(Misuse.class);
  private Predicate<Faults.Fault> recoverable = _ -> false;
  private Leftovers leftovers = _ -> List.of();
  private Duration timeLimit = Duration.ofSeconds(30);
  private WatchedRun.Patience patience = Thread::join;
  private @Nullable Duration settling;
  private long maximumCalls = 10_000;
  private @Nullable CudaStatus status;
  private OpenFiles files = new OpenFiles();
  private boolean everyError = true;
  private long first = 1;
  private int step = 1;

  private FaultSweep(Supplier<? extends CudaDriver> drivers) {
    this.drivers = Objects.requireNonNull(drivers, "drivers");
  }

  /** What is swept: it uses the driver, and closes what it opened, also when it fails. */
  @FunctionalInterface
  public interface UseCase {
    /**
     * Runs once, on a {@link SweptDriver}.
     *
     * @param driver the driver under test
     * @throws Exception what the use case fails with
     */
    void run(CudaDriver driver) throws Exception;
  }

  /** Looks for what a run left, beyond the memory and handles that the sweep itself finds. */
  @FunctionalInterface
  public interface Leftovers {
    /**
     * What is left, one text for each thing; empty if nothing is. The driver has no faults.
     *
     * @param driver the driver under test
     * @return one text for each thing left; empty if nothing is
     * @throws Exception if the search fails, which is a finding
     */
    List<String> find(CudaDriver driver) throws Exception;
  }

  /**
   * Creates a sweep in which each run has a new driver, which the sweep closes.
   *
   * @param drivers opens a new driver at each call
   * @return a sweep with the default settings
   */
  public static FaultSweep over(Supplier<? extends CudaDriver> drivers) {
    return new FaultSweep(drivers);
  }

  /**
   * Allows errors of another type than {@link CudaException} too.
   *
   * @param type the type of error
   * @return this sweep
   */
  public FaultSweep allowing(Class<? extends Throwable> type) {
    Objects.requireNonNull(type, "type");
    allowed = allowed.or((error, _) -> type.isInstance(error));
    return this;
  }

  /**
   * Allows errors of another type too where a call failed with this status.
   *
   * @param status the error of the call
   * @param type the type of error
   * @return this sweep
   */
  public FaultSweep allowing(CudaStatus status, Class<? extends Throwable> type) {
    Objects.requireNonNull(status, "status");
    Objects.requireNonNull(type, "type");
    allowed = allowed.or((error, fault) -> fault.status() == status && type.isInstance(error));
    return this;
  }

  /**
   * Allows the use case to succeed although one of these methods failed. Elsewhere an error that
   * does not reach the caller is a finding.
   *
   * @param methodNames names of calls, such as {@code memAlloc}, at least one
   * @return this sweep
   * @throws IllegalArgumentException if there is no name, or one is not that of a call that can
   *     fail
   */
  public FaultSweep recoveringFrom(String... methodNames) {
    Objects.requireNonNull(methodNames, "methodNames");
    return recoveringFrom(Faults.requireFallible("methodNames", methodNames)::contains);
  }

  /**
   * Allows the use case to succeed although a method with such a name failed.
   *
   * @param methodName accepts names of calls
   * @return this sweep
   */
  public FaultSweep recoveringFrom(Predicate<String> methodName) {
    Objects.requireNonNull(methodName, "methodName");
    recoverable = recoverable.or(fault -> methodName.test(fault.method()));
    return this;
  }

  /**
   * Allows the use case to succeed although one of these methods failed with this status.
   *
   * @param status the error of the call
   * @param methodNames names of calls, such as {@code memAlloc}, at least one
   * @return this sweep
   * @throws IllegalArgumentException if there is no name, or one is not that of a call that can
   *     fail
   */
  public FaultSweep recoveringFrom(CudaStatus status, String... methodNames) {
    Objects.requireNonNull(status, "status");
    Objects.requireNonNull(methodNames, "methodNames");
    Set<String> methods = Faults.requireFallible("methodNames", methodNames);
    recoverable =
        recoverable.or(fault -> fault.status() == status && methods.contains(fault.method()));
    return this;
  }

  /**
   * Allows the use case to succeed although one of these methods failed, if a certain method of the
   * library called it, directly or through others: what the library asks for itself may recover
   * where the same call for the program must fail.
   *
   * @param caller the method of the library, as in {@code DriverStream.isIdle}
   * @param methodNames names of calls, such as {@code memAlloc}, at least one
   * @return this sweep
   * @throws IllegalArgumentException if there is no name, or one is not that of a call that can
   *     fail
   */
  public FaultSweep recoveringWithin(String caller, String... methodNames) {
    Objects.requireNonNull(caller, "caller");
    Objects.requireNonNull(methodNames, "methodNames");
    Set<String> methods = Faults.requireFallible("methodNames", methodNames);
    recoverable =
        recoverable.or(
            fault -> methods.contains(fault.method()) && fault.callers().contains(caller));
    return this;
  }

  /**
   * Looks for leftovers of another kind too, after each run.
   *
   * @param leftovers finds what is left
   * @return this sweep
   */
  public FaultSweep checking(Leftovers leftovers) {
    this.leftovers = Objects.requireNonNull(leftovers, "leftovers");
    return this;
  }

  /**
   * Does not count these mistakes, which the sanitizer sees.
   *
   * @param misuses the mistakes
   * @return this sweep
   */
  public FaultSweep ignoring(Misuse... misuses) {
    Objects.requireNonNull(misuses, "misuses");
    ignored.addAll(Arrays.asList(misuses));
    return this;
  }

  /**
   * Fails every call with this status alone, in all modes.
   *
   * @param status the error of every call
   * @return this sweep
   */
  public FaultSweep failingWith(CudaStatus status) {
    this.status = Objects.requireNonNull(status, "status");
    if (status == CudaStatus.SUCCESS) {
      throw new IllegalArgumentException("status: SUCCESS (expected: an error)");
    }
    return this;
  }

  /**
   * Fails each call only with the error that it most often fails with: a third of the runs.
   *
   * @return this sweep
   */
  public FaultSweep failingAsUsual() {
    everyError = false;
    return this;
  }

  /**
   * Fails one of so many calls alone, in all modes; each of them if not set. Other seeds fail other
   * calls: so many seeds in a row fail all.
   *
   * @param oneOf one of how many calls fails, >= 1
   * @param seed which ones
   * @return this sweep
   */
  public FaultSweep sampling(int oneOf, long seed) {
    if (oneOf < 1) {
      throw new IllegalArgumentException("oneOf: " + oneOf + " (expected: >= 1)");
    }
    first = 1L + Math.floorMod(seed, oneOf);
    step = oneOf;
    return this;
  }

  /**
   * Sets how long one run may take before it counts as hung; 30 seconds if not set.
   *
   * @param limit the time of one run, > 0
   * @return this sweep
   */
  public FaultSweep timeLimit(Duration limit) {
    Objects.requireNonNull(limit, "limit");
    if (!limit.isPositive()) {
      throw new IllegalArgumentException("timeLimit: " + limit + " (expected: > 0)");
    }
    timeLimit = limit;
    return this;
  }

  /** Replaces the clock that decides whether a run hangs. */
  FaultSweep patience(WatchedRun.Patience other) {
    patience = other;
    return this;
  }

  /** Replaces how long a thread or a descriptor may need after a run. */
  FaultSweep settling(Duration time) {
    settling = time;
    return this;
  }

  /**
   * Sets the call at which the sweep stops; 10,000 if not set.
   *
   * @param calls the number of the call at which the sweep stops, >= 1
   * @return this sweep
   */
  public FaultSweep maximumCalls(long calls) {
    if (calls < 1) {
      throw new IllegalArgumentException("maximumCalls: " + calls + " (expected: >= 1)");
    }
    maximumCalls = calls;
    return this;
  }

  /**
   * Sweeps a use case: first without a fault, then, if that worked, through its calls in all modes.
   * After a run that hung, the rest of its mode is not tried.
   *
   * @param useCase the use case, run many times
   * @return what the sweep did and found
   * @throws InterruptedException if this thread is interrupted; the run in progress goes on
   */
  public SweepReport run(UseCase useCase) throws InterruptedException {
    Objects.requireNonNull(useCase, "useCase");
    files = new OpenFiles();
    SweepTally tally = new SweepTally(settling);
    SweepRun plain = plain(useCase, tally);
    judgeProcess(useCase, tally);
    if (tally.findings.isEmpty()) {
      for (FaultMode mode : FaultMode.values()) {
        sweep(useCase, mode, plain.calls(), tally);
      }
      judgeProcess(useCase, tally);
    }
    return tally.report(plain.calls());
  }

  private void judgeProcess(UseCase useCase, SweepTally tally) throws InterruptedException {
    tally.findings.addAll(
        tally.suspects.judge(place -> {
          tally.runs++;
          return attempt(useCase, place.mode(), place.number(), place.status()).left();
        }));
  }

  private SweepRun plain(UseCase useCase, SweepTally tally) throws InterruptedException {
    return runOnce(useCase, FaultMode.ONCE, 0, null, tally);
  }

  private void sweep(UseCase useCase, FaultMode mode, long calls, SweepTally tally)
      throws InterruptedException {
    Set<List<String>> places = new HashSet<>();
    // Those that have an effect are a part of the calls, of unknown number.
    long known = mode == FaultMode.AFTER_EFFECT ? 0 : calls;
    for (long number = first; number <= maximumCalls; number += step) {
      SweepRun run = reach(useCase, mode, number, number <= known ? TRIES : 1, tally);
      if (!run.fired() || run.hung()) {
        return;
      }
      Faults.Fault fault = run.fault().orElseThrow();
      if (everyError && mode == FaultMode.ONCE && status == null && places.add(place(fault))) {
        failWithTheRest(useCase, number, fault, tally);
      }
    }
    tally.findings.add(
        new SweepFinding(
            Problem.NEVER_ENDS, mode, maximumCalls, "none", "more calls than maximumCalls"));
  }

  private static List<String> place(Faults.Fault fault) {
    List<String> place = new ArrayList<>(fault.place().isEmpty() ? fault.callers() : fault.place());
    place.add(fault.method());
    return place;
  }

  /**
   * Threads of the library call when they come to it, so that runs differ by some calls: one of the
   * last may be made in none of a few runs, one before them is.
   */
  private SweepRun reach(UseCase useCase, FaultMode mode, long number, int tries, SweepTally tally)
      throws InterruptedException {
    for (int i = 1; ; i++) {
      SweepRun run = runOnce(useCase, mode, number, status, tally);
      if (run.fired() || run.hung() || i == tries) {
        if (!run.fired() && !run.hung() && tries > 1 && isMostlyMade(number, useCase, tally)) {
          String detail = "not reached, although the use case makes that call without a fault";
          tally.findings.add(new SweepFinding(Problem.NOT_REACHED, mode, number, "none", detail));
        }
        return run;
      }
    }
  }

  private boolean isMostlyMade(long number, UseCase useCase, SweepTally tally)
      throws InterruptedException {
    for (int i = 0; i < TRIES; i++) {
      long calls = plain(useCase, tally).calls();
      if (number > calls - calls / DIFFERENT_PART) {
        return false;
      }
    }
    return true;
  }

  /** Makes a call fail with everything else that is documented for it. */
  private void failWithTheRest(UseCase useCase, long number, Faults.Fault fault, SweepTally tally)
      throws InterruptedException {
    for (CudaStatus other : DocumentedErrors.of(fault.method())) {
      if (other != fault.status()) {
        SweepRun run = attempt(useCase, FaultMode.ONCE, number, other);
        if (run.fault().filter(one -> one.method().equals(fault.method())).isPresent()) {
          tally.add(run); // else threads came in another order, and it is not that call's status
        }
      }
    }
  }

  private SweepRun runOnce(
      UseCase useCase, FaultMode mode, long number, @Nullable CudaStatus status, SweepTally tally)
      throws InterruptedException {
    SweepRun run = attempt(useCase, mode, number, status);
    tally.add(run);
    return run;
  }

  private SweepRun attempt(
      UseCase useCase, FaultMode mode, long number, @Nullable CudaStatus status)
      throws InterruptedException {
    SweepRun run = new SweepRun(drivers, mode, number, status, ignored, files);
    run.run(useCase, timeLimit, patience);
    run.judge(allowed, recoverable, leftovers);
    return run;
  }

  /** Counts runs. */
  private static final class SweepTally {
    private final List<SweepFinding> findings = new ArrayList<>();
    private long runs;
    private final SweepSuspects suspects;
    private long faults;

    SweepTally(@Nullable Duration settling) {
      suspects = new SweepSuspects(settling);
    }

    void add(SweepRun run) {
      runs++;
      faults += run.fired() ? 1 : 0;
      findings.addAll(run.findings());
      suspects.add(run);
    }

    SweepReport report(long calls) {
      return new SweepReport(calls, runs, faults, findings);
    }
  }
}
