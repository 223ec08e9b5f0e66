package io.cuvette.internal.clock;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.fence.EndedStreams;
import io.cuvette.internal.fence.MarkedStream;
import io.cuvette.internal.fence.WorkMarker;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Numbers the work of a stream of this library, and knows how much of it is done and which work of
 * others comes before what it does next. One event stands for all work that was queued before it;
 * it is recorded when somebody wants to know whether that is done. Thread-safe.
 *
 * <pre>
 *   work of the stream   a    b  │  c  │  d
 *   the clock shows      1    1  │  2  │  3
 *                        event 1 ┘     └ event 2: done once a, b and c are
 * </pre>
 *
 * <p>Work has two numbers. It is <i>noted</i> with what the clock shows when a thread that holds
 * the stream is about to queue it; so the next event covers it unless the thread was slower, which
 * is known from who else holds the stream. It is <i>queued</i> when a later number is read, such as
 * when its memory is closed: each event after that covers it.
 */
public final class StreamClock {
  /** Instead of a number for work that was not noted by who held the stream. */
  public static final long NOT_NOTED = Long.MAX_VALUE;

  /** So many events wait to be done; what is queued after them has the next once one is. */
  private static final int MOST_MARKS = 16;

  private static final AtomicLongFieldUpdater<StreamClock> NOW =
      AtomicLongFieldUpdater.newUpdater(StreamClock.class, "now");

  private final MarkedStream stream;
  private final IntSupplier holds;
  private final BooleanSupplier idle;
  private volatile long now = 1;

  /** All that was noted up to this number was queued. */
  private final AtomicLong settled = new AtomicLong();

  private final AtomicLong doneNoted = new AtomicLong();
  private final AtomicLong doneQueued = new AtomicLong();

  /** Grows with each wait for another stream. */
  private final AtomicReference<KnownWork> known = new AtomicReference<>(KnownWork.NONE);

  /** Events that were not done when last queried, first come, first done. */
  private final ConcurrentLinkedQueue<Mark> marks = new ConcurrentLinkedQueue<>();

  /** What the last of these covers. */
  private volatile long marked;

  /** Held by the one thread that talks to the driver; the others go on without an answer. */
  private final AtomicBoolean asking = new AtomicBoolean();

  /** Whether it had work to do when it was asked last. */
  private volatile boolean busy;

  /** Whether the stream is one of this library. */
  private volatile boolean runs;

  private record Mark(Moment moment, WorkMarker marker) {}

  /**
   * A clock for a stream without work.
   *
   * @param holds how many operations hold the stream
   * @param idle asks the driver whether it is idle
   */
  public StreamClock(MarkedStream stream, IntSupplier holds, BooleanSupplier idle) {
    this.stream = stream;
    this.holds = holds;
    this.idle = idle;
  }

  /** The stream is one of this library, without work. */
  public void begin() {
    stream.calm.begin();
    runs = true;
  }

  /** Whether nobody queues work who does not hold the stream: else its clock says nothing. */
  public boolean isRunning() {
    return runs && !stream.isExposed();
  }

  /** What it shows: the number of what is about to be queued by who holds the stream. */
  public long now() {
    return now;
  }

  /**
   * Takes what an event covers that is recorded after this.
   *
   * @param mine how often the caller holds the stream
   */
  public Moment moment(int mine) {
    long at = NOW.getAndIncrement(this); // first: who holds the stream later notes a later number
    if (holds.getAsInt() <= mine) {
      settled.accumulateAndGet(at, Math::max);
    }
    return new Moment(this, settled.get(), at, known.get());
  }

  /** The stream, which is held, waits for an event from now on. */
  public void follow(Moment moment) {
    try {
      KnownWork _ = known.updateAndGet(before -> before.with(moment, this));
    } catch (OutOfMemoryError _) {
      // the driver will be asked
    }
  }

  /** Whether work of another stream comes before what this one does next. */
  public boolean isAfter(StreamClock other, long noted, long queued) {
    return known.get().covers(other, noted, queued);
  }

  /** An event is done. */
  public static void done(Moment moment) {
    moment.clock().done(moment.noted(), moment.queued());
    moment.known().done();
  }

  void done(long noted, long queued) {
    raise(doneNoted, noted);
    raise(doneQueued, queued);
  }

  private static void raise(AtomicLong number, long to) {
    if (number.get() < to) {
      number.accumulateAndGet(to, Math::max);
    }
  }

  boolean isDoneTo(long noted, long queued) {
    return noted <= doneNoted.get() && queued <= doneQueued.get();
  }

  /** Whether work is known to be done, by either of its numbers. */
  public boolean isDone(long noted, long queued) {
    return noted <= doneNoted.get() || queued <= doneQueued.get() || isCalm();
  }

  private boolean isCalm() {
    return stream.calm.lasts() && isRunning();
  }

  /**
   * Asks the driver whether all is done, if it was when asked last: a stream that is idle most of
   * the time lets go of memory at once, and a busy one costs nothing.
   */
  public void askIfIdleBefore() {
    if (!busy && asking.compareAndSet(false, true)) {
      try {
        if (stream.isClosed()) {
          askClosed();
        } else if (marks.isEmpty()) {
          Moment _ = askIdle();
        }
      } finally {
        asking.set(false);
      }
    }
  }

  /**
   * Asks the driver what is done, and has it say so later of what is not.
   *
   * @param wanted the number that the clock showed when the last work of interest was queued
   */
  public void ask(long wanted) {
    if (asking.compareAndSet(false, true)) {
      try {
        askNow(wanted);
      } finally {
        asking.set(false);
      }
    }
  }

  private void askNow(long wanted) {
    if (stream.isClosed()) {
      askClosed();
      return;
    }
    Mark first = marks.peek();
    while (first != null && first.marker.isDone()) {
      done(first.moment);
      boolean _ = marks.remove(first);
      first = marks.peek();
      busy = first != null;
    }
    boolean asks = first == null ? wanted > doneQueued.get() : wanted > marked;
    if (asks && marks.size() < MOST_MARKS) {
      Moment moment = first == null ? askIdle() : moment(0);
      if (moment != null) {
        mark(moment);
      }
    }
  }

  private void askClosed() {
    busy = !stream.isLastWorkDone();
    if (!busy) {
      done(NOT_NOTED - 1, NOT_NOTED);
    }
  }

  /** Null if the stream is idle, which it takes note of; else what to mark. */
  private @Nullable Moment askIdle() {
    Moment moment = moment(0);
    busy = stream.isExposed() || !stream.calm.ask(holds, idle);
    if (busy) {
      return moment;
    }
    done(moment);
    return null;
  }

  /** What is in the queue is asked, and recorded then if it could not be now. */
  private void mark(Moment moment) {
    try {
      Mark mark = new Mark(moment, WorkMarker.oneOfMany(stream));
      marks.add(mark); // first: abandoned it would count as done
      marked = moment.queued();
      mark.marker.record();
    } catch (OutOfMemoryError _) {
      // whoever asks next tries again
    }
  }

  /**
   * Waits for work; returns at once if that cannot be waited for.
   *
   * @param wanted as for {@link #ask}
   */
  public void await(long wanted) {
    for (int i = 0; i < 2 && wanted > doneQueued.get(); i++) { // again for what had no event
      askInTurn(wanted);
      if (stream.isClosed()) {
        stream.awaitLastWork();
      } else {
        marks.forEach(mark -> mark.marker.await());
      }
    }
    askInTurn(wanted);
  }

  private void askInTurn(long wanted) {
    Await.until(() -> asking.compareAndSet(false, true));
    try {
      askNow(wanted);
    } finally {
      asking.set(false);
    }
  }

  /** The stream is closed and knows its last work: what is marked is known by that. */
  public void end(EndedStreams ended) {
    known.set(KnownWork.NONE);
    for (Mark mark = marks.poll(); mark != null; mark = marks.poll()) {
      ended.add(mark.marker);
    }
  }
}
