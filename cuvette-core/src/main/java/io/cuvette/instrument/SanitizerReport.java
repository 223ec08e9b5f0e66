package io.cuvette.instrument;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Objects;

/**
 * A mistake that {@link SanitizerDriver} found. Immutable.
 *
 * @param misuse the kind of mistake
 * @param message what is wrong, with the addresses and sizes
 * @param sites where it happened, newest first: the call that is wrong, then what it conflicts
 *     with, such as the call that freed and the call that allocated; of a leak, the allocation
 *     alone
 */
public record SanitizerReport(Misuse misuse, String message, List<Site> sites) {

  /** A report; the list is copied. */
  public SanitizerReport {
    Objects.requireNonNull(misuse, "misuse");
    Objects.requireNonNull(message, "message");
    Objects.requireNonNull(sites, "sites");
    sites = List.copyOf(sites);
  }

  /** {@return the report with the stacks of all sites, over many lines} */
  public String describe() {
    StringWriter text = new StringWriter();
    PrintWriter out = new PrintWriter(text);
    out.println(this);
    sites.forEach(site -> site.printStackTrace(out));
    return text.toString();
  }

  /** The kind of mistake and the message, on one line. */
  @Override
  public String toString() {
    return misuse + ": " + message;
  }
}
