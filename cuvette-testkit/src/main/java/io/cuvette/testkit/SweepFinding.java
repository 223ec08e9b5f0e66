package io.cuvette.testkit;

import io.cuvette.instrument.FaultMode;
import java.util.Objects;

/**
 * Something wrong that {@link FaultSweep} found in one run of a use case. Immutable.
 *
 * @param problem the kind of problem
 * @param mode how long the fault of that run lasted
 * @param callNumber the call that was made to fail, from 1; 0 if the run had no fault
 * @param call that call with its arguments, {@code none} if the run had no fault
 * @param detail what was thrown, left, or where the run hung; may have many lines
 */
public record SweepFinding(
    Problem problem, FaultMode mode, long callNumber, String call, String detail) {
  /** Creates a finding. */
  public SweepFinding {
    Objects.requireNonNull(problem, "problem");
    Objects.requireNonNull(mode, "mode");
    Objects.requireNonNull(call, "call");
    Objects.requireNonNull(detail, "detail");
  }

  /** What can be wrong with a run. */
  public enum Problem {
    /** The use case fails although no call did. */
    FAILS_WITHOUT_FAULT,
    /** The use case ends as if nothing had failed. */
    SWALLOWED,
    /** The use case fails with an error of a type it should not throw. */
    WRONG_ERROR,
    /** The use case did not end in time. */
    HUNG,
    /** Memory or handles are left that the use case did not try to free. */
    LEFT_BEHIND,
    /** The sanitizer saw a mistake in the way memory, streams or events were used. */
    MISUSED,
    /** A call was not made again that the use case makes when nothing fails: it was not tried. */
    NOT_REACHED,
    /** The use case makes more calls than the sweep would follow. */
    NEVER_ENDS
  }

  /** The finding with its detail, which may have many lines. */
  @Override
  public String toString() {
    return "%s: %s, call %d %s: %s".formatted(problem, mode, callNumber, call, detail);
  }
}
