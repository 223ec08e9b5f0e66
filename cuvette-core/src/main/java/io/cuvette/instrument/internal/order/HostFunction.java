package io.cuvette.instrument.internal.order;

import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.function.Consumer;

/**
 * A function of the host that a stream or graphs run. Its runs are counted, whichever graph they
 * are of: so work may count as done too early, and fewer mistakes are found. Thread-safe.
 */
public final class HostFunction implements Runnable {
  private final Runnable function;
  private final Consumer<Clock> finish;

  /** What is done once so many runs have begun. */
  private final NavigableMap<Long, Clock> before = new TreeMap<>();

  private long expected;
  private long begun;
  private long ended;

  public HostFunction(Runnable function, Consumer<Clock> finish) {
    this.function = function;
    this.finish = finish;
  }

  /** Notes a run that comes behind work and another run, and gives its number. */
  public synchronized long expect(long last, Clock work) {
    long run = Math.max(last, begun) + 1;
    before.computeIfAbsent(run, _ -> new Clock()).merge(work);
    expected++;
    return run;
  }

  /** Whether a run that was noted is not over. */
  public synchronized boolean isPending() {
    return ended < expected;
  }

  @Override
  public void run() {
    try {
      finish.accept(begin());
    } finally { // somebody may wait for it
      try {
        function.run();
      } finally {
        end();
      }
    }
  }

  private synchronized Clock begin() {
    Clock done = new Clock();
    NavigableMap<Long, Clock> all = before.headMap(++begun, true);
    all.values().forEach(done::merge);
    all.clear();
    return done;
  }

  private synchronized void end() {
    ended++;
  }

  /** Notes that a run will not come. */
  public synchronized void skip() {
    Clock _ = begin();
    end();
  }
}
