package io.cuvette.instrument.internal.report;

import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.SanitizerReport;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

/** The mistakes found in one step, reported once the step's lock is free. Not thread-safe. */
public final class Findings {
  private final List<SanitizerReport> reports = new ArrayList<>();

  /** Notes that this call is a mistake: the message is the call and what is wrong with it. */
  public void add(Misuse misuse, CallTrace here, String rule, CallTrace... related) {
    here.takeStack();
    addLate(misuse, here, rule, related);
  }

  /** Notes that an earlier call was one. */
  public void addLate(Misuse misuse, CallTrace here, String rule, CallTrace... related) {
    List<CallTrace> sites = new ArrayList<>(List.of(related));
    sites.addFirst(here);
    reports.add(
        new SanitizerReport(
            misuse, here.call() + ": " + rule, sites.stream().map(CallTrace::site).toList()));
  }

  /** Notes what was never freed. */
  public void leak(String what, CallTrace made) {
    reports.add(
        new SanitizerReport(
            Misuse.LEAK, what + " is never freed; made by " + made.call(), List.of(made.site())));
  }

  /** Takes over what others found. */
  public void takeAll(Findings others) {
    reports.addAll(others.reports);
    others.reports.clear();
  }

  public boolean isEmpty() {
    return reports.isEmpty();
  }

  public List<SanitizerReport> reports() {
    return List.copyOf(reports);
  }

  /** Passes everything to the consumer, also if it throws; throws the first of what it threw. */
  public void deliver(Consumer<? super SanitizerReport> consumer, Set<Misuse> ignored) {
    RuntimeException first = null;
    for (SanitizerReport report : reports) {
      try {
        if (!ignored.contains(report.misuse())) {
          consumer.accept(report);
        }
      } catch (RuntimeException e) {
        if (first == null) {
          first = e;
        } else {
          first.addSuppressed(e);
        }
      }
    }
    if (first != null) {
      throw first;
    }
  }
}
