package io.cuvette.instrument.internal.order;

import io.cuvette.internal.base.Locked;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * A function of the host that a stream or graphs run. Its runs are counted, whichever graph they
 * are of: so work may count as done too early, and fewer mistakes are found. Thread-safe.
 */
public final class HostFunction extends Beginnings implements Runnable {
  private final Runnable function;
  private final Consumer<Clock> finish;

  /** What is done once so many runs have begun. */
  private final NavigableMap<Long, Clock> before = new TreeMap<>();

  private long begun;

  /** How many runs were noted and are not over. */
  private final AtomicLong pending = new AtomicLong();

  private final Lock lock = new ReentrantLock();

  public HostFunction(Runnable function, Consumer<Clock> finish) {
    this.function = function;
    this.finish = finish;
  }

  /** Notes a run that comes behind work and another run, and gives its number. */
  public long expect(long last, Clock work) {
    pending.incrementAndGet();
    return Locked.get(
        lock,
        () -> {
          long run = Math.max(last, begun) + 1;
          before.computeIfAbsent(run, _ -> new Clock()).merge(work);
          return run;
        });
  }

  /** Whether a run that was noted is not over. */
  public boolean isPending() {
    return pending.get() > 0;
  }

  @Override
  public void run() {
    try {
      if (Locked.get(lock, before::isEmpty)) { // else the run is one that is noted
        haveBegun();
      }
      finish.accept(begin());
    } finally { // somebody may wait for it
      try {
        function.run();
      } finally {
        pending.updateAndGet(runs -> Math.max(runs - 1, 0)); // none if a refused launch has run
      }
    }
  }

  private Clock begin() {
    return Locked.get(
        lock,
        () -> {
          Clock done = new Clock();
          NavigableMap<Long, Clock> all = before.headMap(++begun, true);
          all.values().forEach(done::merge);
          all.clear();
          return done;
        });
  }
}
