package io.cuvette.internal.lifetime;

import io.cuvette.LeakLevel;
import io.cuvette.LeakReport;
import io.cuvette.OpenObject;
import io.cuvette.internal.base.Failures;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Finds forgotten objects of one {@code Cuda}. There is no thread: the queue is drained whenever
 * memory is short, statistics are read or something is made that costs a driver call anyway.
 * Thread-safe.
 */
public final class LeakTracker {
  private static final int SAMPLE = 64;

  /** Where collected objects come; null at level OFF, when nothing is ever put there. */
  public final @Nullable ReferenceQueue<Object> queue;

  private final LeakLevel level;
  private final boolean remembersSites;
  private final Consumer<LeakReport> listener;

  /** Forgotten memory whose view is in use at the moment: it comes back with a later drain. */
  private final LeftForLater inUse = new LeftForLater();

  /** What was closed and could not be released: it is tried again with each drain. */
  private final LeftForLater unreleased = new LeftForLater();

  private final AtomicLong found = new AtomicLong();
  private final AtomicInteger takingBack = new AtomicInteger();
  private final ConcurrentLinkedQueue<LeakReport> reports = new ConcurrentLinkedQueue<>();
  private final AtomicBoolean reporting = new AtomicBoolean();
  private final OpenObjects open = new OpenObjects();

  /** What else comes back at the same moments. */
  private final Runnable others;

  public LeakTracker(LeakLevel level, Consumer<LeakReport> listener, Runnable others) {
    this.others = others;
    this.level = level;
    this.remembersSites = level.compareTo(LeakLevel.SAMPLED) >= 0;
    this.listener = listener;
    this.queue = level == LeakLevel.OFF ? null : new ReferenceQueue<>();
  }

  /** The stack of the caller, if this allocation is one of those that remember it. */
  public OpenObjects.@Nullable Site site() {
    boolean wanted =
        level == LeakLevel.FULL
            || (level == LeakLevel.SAMPLED && ThreadLocalRandom.current().nextInt(SAMPLE) == 0);
    return wanted ? open.site() : null;
  }

  /** Whether {@link #site} could give anything; keeps the common levels free of the question. */
  public boolean remembersSites() {
    return remembersSites;
  }

  /** The open objects that remember where they were made. */
  public List<OpenObject> open() {
    return open.list();
  }

  /** Lists something without a {@link Ending} as open, if it remembers where it was made. */
  public void opened(Object key, Supplier<String> what) {
    OpenObjects.Site site = site();
    if (site != null) {
      site.opened(key, at -> new OpenObject(what.get(), 0, at));
    }
  }

  public void closed(Object key) {
    open.close(key);
  }

  public long found() {
    return found.get();
  }

  /** Has something released that was closed and could not be: later, since it just failed. */
  public void failed(Ending ending) {
    unreleased.leave(ending);
  }

  /**
   * Takes back everything the collector has found, and gives the number of objects. Releases what
   * could not be released when it was closed.
   */
  public int drain() {
    others.run();
    unreleased.drain(ending -> {
      ending.releaseAgain();
      return true;
    });
    ReferenceQueue<Object> from = queue;
    if (from == null) {
      return 0;
    }
    int taken = inUse.drain(this::found);
    for (var reference = from.poll(); reference != null; reference = from.poll()) {
      if (found(reference)) {
        taken++;
      }
    }
    return taken;
  }

  /** Takes back one object that came out of the queue; false if somebody did already. */
  public boolean found(Reference<?> reference) {
    if (!(reference instanceof Ending ending) || ending.ended()) {
      return false;
    }
    Throwable failure = takeBack(ending);
    if (!ending.ended()) {
      inUse.leave(ending);
    }
    Failures failures = new Failures();
    if (failure != null) {
      failures.add(failure);
    }
    if (ending.ended() && ending.isLeak()) {
      found.incrementAndGet();
      reports.add(ending.report());
      failures.run(this::report);
    }
    failures.throwFirst();
    return ending.ended();
  }

  private @Nullable Throwable takeBack(Ending ending) {
    takingBack.incrementAndGet();
    try {
      boolean _ = ending.reclaim();
      return null;
    } catch (RuntimeException | Error e) {
      return e;
    } finally {
      takingBack.decrementAndGet();
    }
  }

  /** Whether threads are taking back what was found: it is not there to be allocated yet. */
  public boolean isTakingBack() {
    return takingBack.get() > 0;
  }

  /**
   * Tells the listener, on one thread at a time: what a listener that allocates finds on the way is
   * reported after it has returned.
   */
  private void report() {
    while (!reports.isEmpty() && reporting.compareAndSet(false, true)) {
      try {
        for (LeakReport next = reports.poll(); next != null; next = reports.poll()) {
          listener.accept(next);
        }
      } finally {
        reporting.set(false);
      }
    }
  }
}
