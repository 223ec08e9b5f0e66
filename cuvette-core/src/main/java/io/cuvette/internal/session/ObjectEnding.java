package io.cuvette.internal.session;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.lifetime.Ending;
import java.lang.ref.ReferenceQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Ends what belongs to an object of users, such as a stream, an event or a pool: when the object is
 * closed, when the collector finds it forgotten, or when its {@link Session} ends. It does not keep
 * the object reachable.
 *
 * <p>Threads may hold it while they wait for work of a device. Nobody who closes it waits for
 * these, for that may be what they wait for: the last of them to return ends it. Thread-safe.
 */
public final class ObjectEnding extends Ending {
  /** What ends with an object and does not refer to it; its text names it in messages. */
  public interface Ended {
    /**
     * Ends it for whoever closed its object or found it forgotten. Can come again after a failure.
     *
     * @param ending the caller, to be notified when nothing is left to end
     */
    void end(ObjectEnding ending);

    /** Ends it with its session, when no other thread uses it. Can come again after a failure. */
    default void endNow(ObjectEnding ending) {
      end(ending);
    }

    /** The bytes that this releases, for reports. */
    default long bytes() {
      return 0;
    }

    /** Whether forgetting the object is worth a report. */
    default boolean isLeak() {
      return true;
    }
  }

  /** How long a thread takes to come into the driver that is about to wait there. */
  private static final long ENTRY_NANOS = 10_000_000;

  /** The same where that is the first wait of the process, on a machine that has much to do. */
  private static final long FIRST_ENTRY_NANOS = 1_000_000_000;

  private final Session session;
  private final Ended ended;

  /** The same object each time, to be found again among the children. */
  private final Runnable end = this::endByOwner;

  private final AtomicInteger waiting = new AtomicInteger();
  private final AtomicInteger lent = new AtomicInteger();

  /** How often those hold it that wait for the others, and not for each other. */
  private final AtomicInteger expecting = new AtomicInteger();

  /** The end of an object that the session looks after, once it is {@link #listed}. */
  public ObjectEnding(Object of, Session session, Ended ended) {
    super(of, session.leaks().queue, session.leaks().site());
    this.session = session;
    this.ended = ended;
  }

  /**
   * The end of an object that the session does not look after.
   *
   * @param queue where the object comes once it is forgotten; null if nobody looks for it
   */
  public ObjectEnding(
      Object of, Session session, Ended ended, @Nullable ReferenceQueue<Object> queue) {
    super(of, queue, null);
    this.session = session;
    this.ended = ended;
  }

  /**
   * The end of an object by one step, which is listed and complete.
   *
   * @param text names the object in messages
   * @param isLeak whether forgetting the object is worth a report
   * @param step tries all that is to be done before it throws, and can come again
   */
  public static ObjectEnding of(
      Object of, Session session, String text, boolean isLeak, Runnable step) {
    ObjectEnding ending = new ObjectEnding(of, session, new Step(text, isLeak, step));
    ending.listed();
    return ending;
  }

  private record Step(String text, boolean isLeak, Runnable step) implements Ended {
    @Override
    public void end(ObjectEnding ending) {
      try {
        step.run();
      } finally {
        ending.forget();
      }
    }

    @Override
    public String toString() {
      return text;
    }
  }

  /** Has the session look after the object, which is complete. All or nothing without Java heap. */
  public void listed() {
    try {
      session.children().add(end);
      opened();
    } catch (OutOfMemoryError e) {
      discard();
      throw e;
    }
  }

  /** Its object was not made, for want of Java heap; the caller ends what was to belong to it. */
  public void discard() {
    clear();
    forget();
  }

  /** Nothing is left that the session has to end. */
  public void forget() {
    session.children().remove(end);
  }

  /** What the session does at its end, for a pool that lists it itself. */
  public Runnable atEndOfSession() {
    return end;
  }

  private void endByOwner() {
    takeOver();
    ended.endNow(this);
  }

  @Override
  public String describe() {
    return ended.toString();
  }

  @Override
  public void release() {
    ended.end(this);
  }

  @Override
  public void failed() {
    session.leaks().failed(this);
  }

  @Override
  public long bytes() {
    return ended.bytes();
  }

  @Override
  public boolean isLeak() {
    return ended.isLeak();
  }

  /** Marks a holding thread as one that waits for work of the device, as long as that lasts. */
  public void await(Runnable wait) {
    waiting.incrementAndGet();
    try {
      wait.run();
    } finally {
      waiting.decrementAndGet();
    }
  }

  /**
   * Waits for the operations of others that hold it, a second at most; not for those that wait for
   * work of the device, which may take long, but for them to be inside the driver.
   *
   * @param mine how often the caller holds it
   */
  public void awaitOperations(int mine) {
    awaitOperations(mine, ENTRY_NANOS, PATIENCE_NANOS);
  }

  /**
   * The same with more time for those that are about to wait in the driver, whom a capture must not
   * meet there: once in the life of a stream.
   */
  public void awaitEntries(int mine) {
    awaitOperations(mine, FIRST_ENTRY_NANOS, PATIENCE_NANOS);
  }

  /** The same, but for a moment at most, and beside those that wait. */
  public void awaitCalls(int mine) {
    awaitOperations(mine, 0, ENTRY_NANOS);
  }

  private void awaitOperations(int mine, long entryNanos, long patienceNanos) {
    expecting.addAndGet(mine);
    try {
      if (!Await.until(() -> holds() <= expecting.get(), entryNanos)) {
        boolean _ = Await.until(() -> holds() - waiting() <= expecting.get(), patienceNanos);
      }
    } finally {
      expecting.addAndGet(-mine);
    }
  }

  /** Waits for the operations of others that hold it, but not for those that wait for work. */
  public void awaitQueueing() {
    Await.until(() -> holds() <= waiting());
  }

  /**
   * Keeps it until {@link #returned}, for what lets go of it at its own end: nobody waits for it.
   */
  public void lend() {
    hold();
    lent.incrementAndGet();
  }

  public void returned() {
    lent.decrementAndGet();
    unhold();
  }

  @Override
  public int lenders() {
    return lent.get();
  }

  @Override
  public int waiting() {
    return waiting.get();
  }
}
