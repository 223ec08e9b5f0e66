package io.cuvette;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import org.jspecify.annotations.Nullable;

/**
 * The end of something: it happens once, whoever comes first, the user's {@code close()}, the
 * collector or the owner's {@code close()}. Thread-safe.
 */
abstract class Lifetime extends PhantomReference<Object> {
  private static final VarHandle STATE;

  static {
    try {
      STATE = MethodHandles.lookup().findVarHandle(Lifetime.class, "state", int.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private static final int OPEN = 0;
  private static final int ENDED = 1;

  private volatile int state;
  private final @Nullable Throwable site;

  @SuppressWarnings("NullAway") // PhantomReference takes a null queue: it is then never enqueued
  Lifetime(Object of, @Nullable ReferenceQueue<Object> queue, @Nullable Throwable site) {
    super(of, queue);
    this.site = site;
  }

  /** What it is, for messages: {@code buffer of 512 bytes at 0x7f…}. */
  abstract String describe();

  /** Gives the thing back; called once. */
  abstract void release();

  /** The bytes {@link #release} gives back. */
  long bytes() {
    return 0;
  }

  final boolean ended() {
    return state != OPEN;
  }

  /** True for the one caller that may release. */
  final boolean end() {
    return STATE.compareAndSet(this, OPEN, ENDED);
  }

  /** Undoes {@link #end} when the release was refused before it changed anything. */
  final void resume() {
    state = OPEN;
  }

  /** Releases if nobody did; true if it was this call. */
  final boolean close() {
    if (!end()) {
      return false;
    }
    clear();
    release();
    return true;
  }

  /** {@link #close} for an object the collector has found; false if it cannot end now. */
  boolean reclaim() {
    return close();
  }

  final void checkOpen() {
    if (state != OPEN) {
      throw new IllegalStateException(describe() + " is closed");
    }
  }

  final LeakReport report() {
    return new LeakReport(describe(), bytes(), site);
  }
}
