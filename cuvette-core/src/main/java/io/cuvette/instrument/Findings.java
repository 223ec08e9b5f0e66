package io.cuvette.instrument;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

/** The mistakes found in one step, told once the step's lock is free. Not thread-safe. */
final class Findings {
  private final List<SanitizerReport> reports = new ArrayList<>();

  /** Notes that this call is a mistake: the message is the call and what is wrong with it. */
  void add(Misuse misuse, Site here, String rule, Site... related) {
    here.isMistakeHere();
    addLate(misuse, here, rule, related);
  }

  /** Notes that an earlier call was one. */
  void addLate(Misuse misuse, Site here, String rule, Site... related) {
    List<Site> sites = new ArrayList<>(List.of(related));
    sites.addFirst(here);
    sites.forEach(Site::isOfInterest);
    reports.add(new SanitizerReport(misuse, here.call() + ": " + rule, sites));
  }

  /** Notes what was never freed. */
  void leak(String what, Site made) {
    reports.add(
        new SanitizerReport(
            Misuse.LEAK, what + " is never freed; made by " + made.call(), List.of(made)));
  }

  boolean isEmpty() {
    return reports.isEmpty();
  }

  List<SanitizerReport> reports() {
    return List.copyOf(reports);
  }

  /** Tells the consumer everything, also if it throws; throws the first of what it threw. */
  void deliver(Consumer<? super SanitizerReport> consumer, Set<Misuse> ignored) {
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
