package io.cuvette.testkit;

import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;

/**
 * What a {@link FaultSweep} did and found. Immutable.
 *
 * @param calls how many driver calls the use case makes when none fails
 * @param runs how often the use case ran
 * @param faults in how many runs a call was made to fail
 * @param findings what was wrong, in the order found
 */
public record SweepReport(long calls, long runs, long faults, List<SweepFinding> findings) {

  /** A report; the list is copied. */
  public SweepReport {
    Objects.requireNonNull(findings, "findings");
    findings = List.copyOf(findings);
  }

  /** {@return whether there are no findings} */
  public boolean isClean() {
    return findings.isEmpty();
  }

  /**
   * Throws if something was wrong.
   *
   * @return this report
   * @throws AssertionError with all findings as text
   */
  public SweepReport orThrow() {
    if (!isClean()) {
      throw new AssertionError(toString());
    }
    return this;
  }

  /** The numbers, and one paragraph for each finding. */
  @Override
  public String toString() {
    String head =
        "fault sweep: %d calls, %d runs, %d faults, %d findings"
            .formatted(calls, runs, faults, findings.size());
    return findings.stream().map(f -> "\n" + f).collect(Collectors.joining("", head, ""));
  }
}
