package io.cuvette.internal.lifetime;

import io.cuvette.LeakReport;
import io.cuvette.OpenObject;
import io.cuvette.internal.base.Await;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import org.jspecify.annotations.Nullable;

/**
 * Ends something once, whoever comes first, the user's {@code close()}, the collector or the
 * owner's {@code close()}, and never while the library uses it. An operation holds what it uses as
 * long as it is inside a call of the driver or copies bytes. Who closes it meanwhile waits a short
 * time; if it is held still, the last to let go of it ends it. Thread-safe.
 */
public abstract class Ending extends PhantomReference<Object> {
  /** How long a closing thread waits for operations of others. */
  public static final long PATIENCE_NANOS = 1_000_000_000;

  /** Stands for an object that is not looked for: the collector has nothing to do for it. */
  private static final Object NOT_LOOKED_FOR = new Object();

  private static final VarHandle STATE;

  static {
    try {
      STATE = MethodHandles.lookup().findVarHandle(Ending.class, "state", int.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** See {@link Holds}. */
  private volatile int state;

  private final @Nullable Throwable site;

  /** The next one in a list that this is in: of what is left for later, or of what comes back. */
  public @Nullable Ending next;

  /**
   * For an object.
   *
   * @param queue where it comes once the object is collected; null if nobody looks for the object
   */
  @SuppressWarnings("NullAway") // PhantomReference takes a null queue: it is then never enqueued
  public Ending(Object of, @Nullable ReferenceQueue<Object> queue, @Nullable Throwable site) {
    super(queue == null ? NOT_LOOKED_FOR : of, queue);
    this.site = site;
  }

  /**
   * Lists it among the open objects, if it remembers where it was made: it is complete. Without
   * Java heap it is not listed.
   */
  public final void opened() {
    if (site instanceof OpenObjects.Site made) {
      try {
        made.opened(this, at -> new OpenObject(describe(), bytes(), at));
      } catch (OutOfMemoryError e) {
        made.closed(this);
      }
    }
  }

  /** Part of each way in which it ends: it is no longer found by the collector, nor listed. */
  @Override
  public final void clear() {
    super.clear();
    unlist();
  }

  /** Takes it off the open objects. */
  public final void unlist() {
    if (site instanceof OpenObjects.Site made) {
      made.closed(this);
    }
  }

  /** Whether the collector has found the object, if it looks, and nobody has ended this yet. */
  public final boolean isForgotten() {
    return refersTo(null) && !ended();
  }

  /** What it is, for messages: {@code buffer of 512 bytes at 0x7f…}. */
  public abstract String describe();

  /** Gives the thing back; called once. */
  public abstract void release();

  /** Whether forgetting it is worth a report. */
  public boolean isLeak() {
    return true;
  }

  /** The bytes that {@link #release} frees. */
  public long bytes() {
    return 0;
  }

  /**
   * Keeps it from being released until {@link #unhold}.
   *
   * @throws IllegalStateException if it is closed
   */
  public final void hold() {
    if (!tryHold()) {
      throw closed();
    }
  }

  /** As {@link #hold}; false if it is closed. */
  public final boolean tryHold() {
    return Holds.tryHold(STATE, this);
  }

  /** The same for a step that can also be part of what a thread does that holds it. */
  public final boolean tryHoldAgain() {
    return Holds.tryHoldAgain(STATE, this);
  }

  public final void unhold() {
    if (Holds.unhold(STATE, this)) {
      finishLeft();
    }
  }

  /** For who ends it: steps of its own can hold it again, until {@link #endAlone}. */
  public final void beginAlone() {
    Holds.holdAlone(STATE, this);
  }

  /** Waits for steps that came in meanwhile. */
  public final void endAlone() {
    boolean _ = Holds.unhold(STATE, this);
    awaitUnheld();
  }

  /** How many of those that hold it wait for work of a device: nobody waits for them. */
  public int waiting() {
    return 0;
  }

  /** How many of those that hold it are pools, which let go of it at the latest when they end. */
  public int lenders() {
    return 0;
  }

  /** Whether code outside of Java uses it, at the address that it has now. */
  public boolean isOut() {
    return false;
  }

  /** How often it is held now. */
  public final int holds() {
    return Holds.count(state);
  }

  public final boolean ended() {
    return Holds.isClaimed(state);
  }

  /** True for the one caller that may release; nobody holds it then. */
  public final boolean end() {
    return Holds.claimUnheld(STATE, this);
  }

  /** Undoes {@link #end} when the release was refused before it changed anything. */
  public final void resume() {
    Holds.reopen(STATE, this);
  }

  /**
   * Ends it if nobody did; true if it was this call. Waits at most {@link #PATIENCE_NANOS} for
   * operations that use it, and for no pool that lends from it: that gives it back later.
   *
   * @param of its object, which the collector does not find forgotten meanwhile
   */
  public final boolean close(Object of) {
    try {
      if (end()) {
        finish();
        return true;
      }
      if (!Holds.claim(STATE, this)) {
        return false;
      }
      awaitAndFinish();
      return true;
    } finally {
      Reference.reachabilityFence(of);
    }
  }

  /** {@link #close} for one who holds it, and does not any more. */
  public final void closeHeld() {
    if (!Holds.claim(STATE, this)) {
      unhold();
      return;
    }
    boolean _ = Holds.unhold(STATE, this);
    awaitAndFinish();
  }

  private void awaitAndFinish() {
    Await.until(() -> Holds.count(state) <= waiting() + lenders(), PATIENCE_NANOS);
    if (!Holds.leave(STATE, this)) {
      finish();
    }
  }

  /** Ends it for an owner that gives it back itself, once no operation uses it. */
  public final void takeOver() {
    if (Holds.takeOver(STATE, this)) {
      clear();
    }
    awaitUnheld();
  }

  private void awaitUnheld() {
    Await.until(() -> Holds.count(state) <= lenders());
  }

  /** {@link #close} for an object the collector has found; false if it cannot end now. */
  public boolean reclaim() {
    if (!end()) {
      return false;
    }
    finish();
    return true;
  }

  /** Releases what is claimed and not held any more. */
  public void finish() {
    clear();
    try {
      release();
    } catch (RuntimeException | Error e) {
      failed();
      throw e;
    }
  }

  /**
   * Notes that a release failed, which the caller gets as an exception and may try again. There may
   * be no Java heap.
   */
  public void failed() {}

  /**
   * Tries again what failed, which was reported to whoever closed it, if anybody could be reached.
   */
  public final void releaseAgain() {
    try {
      release();
    } catch (RuntimeException | OutOfMemoryError e) {
      failed();
      failedUntold(e);
    }
  }

  /** The same for the last operation that used it: whoever closed it has long gone on. */
  private void finishLeft() {
    try {
      finish();
    } catch (RuntimeException | Error e) {
      if (ended()) { // else it is open again: somebody uses it in another way
        failedUntold(e);
      }
    }
  }

  /** A release failed, and there is no caller to report it to: the operation did what it should. */
  public void failedUntold(Throwable e) {
    assert ended() : this; // the owner tries again at its end, and will be told
    if (e instanceof Error error) {
      throw error;
    }
  }

  public final void checkOpen() {
    if (Holds.isClaimed(state)) {
      throw closed();
    }
  }

  private IllegalStateException closed() {
    return new IllegalStateException(describe() + " is closed");
  }

  public final LeakReport report() {
    return new LeakReport(describe(), bytes(), site);
  }
}
