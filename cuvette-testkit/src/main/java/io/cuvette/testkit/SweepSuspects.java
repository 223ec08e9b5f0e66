package io.cuvette.testkit;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Runs that had threads or descriptors when they were over. They are judged later, since most need
 * a moment alone, and descriptors may be those of others: a run has left some if it leaves some
 * each time that it is repeated. Not thread-safe.
 */
final class SweepSuspects {
  /** A thread that was told to end does so in its own time. */
  private static final Duration PATIENCE = Duration.ofSeconds(10);

  /** How often a run is repeated. */
  private static final int REPEATS = 3;

  /** Of each kind, and then the others are not judged: each takes its time. */
  private static final int MOST_FINDINGS = 3;

  private final List<Suspect> suspects = new ArrayList<>();
  private final Duration patience;

  /** With the patience that is usual where null is given. */
  SweepSuspects(@Nullable Duration patience) {
    this.patience = patience == null ? PATIENCE : patience;
  }

  private record Suspect(SweepRun.Place place, LeftInProcess left) {}

  /** Does a run once more. */
  interface Repeat {
    /** Returns what it left. */
    LeftInProcess run(SweepRun.Place place) throws InterruptedException;
  }

  void add(SweepRun run) {
    suspects.removeIf(each -> !each.left.isThere());
    if (run.left().isThere()) {
      suspects.add(new Suspect(run.place(), run.left()));
    }
  }

  /** Returns what is found, and forgets all runs. */
  List<SweepFinding> judge(Repeat repeat) throws InterruptedException {
    List<SweepFinding> threads = new ArrayList<>();
    List<SweepFinding> files = new ArrayList<>();
    for (Suspect suspect : suspects) {
      if (threads.size() < MOST_FINDINGS) {
        for (String name : suspect.left.threadsThatStay(patience)) {
          threads.add(suspect.place.left("thread '%s' is alive after the run".formatted(name)));
        }
      }
      if (files.size() < MOST_FINDINGS && hasLeftFiles(suspect, repeat)) {
        files.add(
            suspect.place.left("files open after the run, by descriptor: " + suspect.left.files()));
      }
    }
    suspects.clear();
    threads.addAll(files);
    return threads;
  }

  private boolean hasLeftFiles(Suspect suspect, Repeat repeat) throws InterruptedException {
    List<LeftInProcess> each = new ArrayList<>(List.of(suspect.left));
    for (int i = 0; i < REPEATS && each.getLast().hasOpenFiles(); i++) {
      each.add(repeat.run(suspect.place));
    }
    for (LeftInProcess left : each.reversed()) {
      if (!left.keepsFiles(patience)) {
        return false;
      }
    }
    return true;
  }
}
