package io.cuvette.testkit.seeds;

import io.cuvette.instrument.Misuse;
import io.cuvette.testkit.seeds.ThreadsPlan.Wrong;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A random program of several threads that make calls of the driver at once: streams and events of
 * all, memory of the device and page-locked memory, kernels, graphs and functions of the host. Each
 * use of a cell is ordered behind all that conflicts with it, which a model of its own says, so the
 * sanitizer finds nothing and all values are right. It has wrong twins: without one wait, or with
 * one record too early, there is one race, which is found in each run, or in one of some runs where
 * the threads may happen to do the same in an order in which nobody can see it.
 */
final class ThreadsProgram {
  private static final Set<Misuse> RACES =
      Set.of(
          Misuse.RACE,
          Misuse.HOST_RACE,
          Misuse.FREE_WHILE_IN_USE,
          Misuse.USE_AFTER_FREE,
          Misuse.UNINITIALIZED_READ);

  private final long seed;
  private final ThreadsPlan plan;

  ThreadsProgram(long seed) {
    this.seed = seed;
    this.plan = new ThreadsPlan(seed);
  }

  /** The right program. */
  void run() throws Exception {
    new ThreadsRun(plan, null, seed).run();
  }

  /** Its wrong twins, or only those that have to be found in each run. */
  List<Wrong> wrongs(boolean areCertain) {
    return plan.wrongs().stream().filter(wrong -> wrong.isCertain() || !areCertain).toList();
  }

  /**
   * Runs a wrong twin until it is found.
   *
   * @return what was found, or null if nothing was in so many runs
   */
  @Nullable String find(Wrong wrong, int runs) throws Exception {
    for (int i = 0; i < runs; i++) {
      try {
        new ThreadsRun(plan, wrong, seed + 1_000_003L * i).run();
      } catch (ThreadsRun.Found e) {
        if (!RACES.contains(e.report.misuse())) {
          throw e;
        }
        return "in run %d: %s".formatted(i, e.report);
      } catch (AssertionError e) {
        if (!String.valueOf(e.getMessage()).startsWith("word ")) {
          throw e;
        }
        return "in run %d: %s".formatted(i, e.getMessage());
      }
    }
    return null;
  }
}
