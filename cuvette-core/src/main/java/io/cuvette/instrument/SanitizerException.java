package io.cuvette.instrument;

import java.util.Objects;

/**
 * {@link SanitizerDriver} found a mistake. The sites of the report follow in the stack trace as
 * suppressed exceptions. Immutable.
 */
public final class SanitizerException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final transient SanitizerReport report;

  /**
   * An exception with the report's text and sites.
   *
   * @param report the mistake
   */
  public SanitizerException(SanitizerReport report) {
    super(Objects.requireNonNull(report, "report").toString());
    this.report = report;
    report.sites().forEach(this::addSuppressed);
  }

  /** {@return the mistake} */
  public SanitizerReport report() {
    return report;
  }
}
