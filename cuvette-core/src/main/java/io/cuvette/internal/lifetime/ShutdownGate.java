package io.cuvette.internal.lifetime;

import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Counts threads that create or release what a {@code Cuda} owns, so that shutdown can wait for
 * them. The thread that closes the Cuda shuts the gate and waits for those inside; from then on it
 * alone makes changes, and what others would have released is in its list. No code of the user runs
 * inside, which could close the Cuda and wait for itself: who calls such code asserts {@link
 * #isOutside}. Thread-safe.
 */
public final class ShutdownGate {
  /** How many steps inside gates each thread is in; counted where assertions are enabled. */
  private static final ThreadLocal<int[]> STEPS = ThreadLocal.withInitial(() -> new int[1]);

  private final Gate gate = new Gate();

  /** Who ends the Cuda, as long as that lasts: it can enter all the same. */
  private volatile @Nullable Thread ending;

  /** Runs the step unless shutdown has begun, which then does that itself. */
  public void run(Runnable step) {
    if (tryEnter()) {
      try {
        step.run();
      } finally {
        leave();
      }
    }
  }

  /**
   * Makes something that the Cuda owns.
   *
   * @throws IllegalStateException if the Cuda ends
   */
  public <T extends @Nullable Object> T make(Supplier<T> maker) {
    if (!tryEnter()) {
      throw new IllegalStateException("Cuda is closed");
    }
    try {
      return maker.get();
    } finally {
      leave();
    }
  }

  /**
   * Asks something; it can also be part of what a thread inside does.
   *
   * @throws IllegalStateException if the Cuda ends
   */
  public <T extends @Nullable Object> T ask(Supplier<T> question) {
    if (!tryEnterAgain()) {
      throw new IllegalStateException("Cuda is closed");
    }
    try {
      return question.get();
    } finally {
      leave();
    }
  }

  /** False if the gate is shut; else {@link #leave} must follow. */
  public boolean tryEnter() {
    boolean entered = gate.enter() || isEnding();
    assert !entered || count(1);
    return entered;
  }

  /** The same for a step that can also be part of what a thread inside does. */
  public boolean tryEnterAgain() {
    boolean entered = gate.enterAgain() || isEnding();
    assert !entered || count(1);
    return entered;
  }

  public void leave() {
    assert count(-1);
    if (!gate.isShut() || !isEnding()) {
      gate.leave();
    }
  }

  /**
   * Whether the thread is in no step inside a gate, so that code of the user may run; for
   * assertions, without which nothing is counted.
   */
  public static boolean isOutside() {
    return STEPS.get()[0] == 0;
  }

  private static boolean count(int change) {
    STEPS.get()[0] += change;
    return true;
  }

  /** That thread is not counted: others must not take it for somebody who is still inside. */
  private boolean isEnding() {
    return Thread.currentThread().equals(ending);
  }

  /** Rejects all other threads from now on, and waits for those inside. */
  public void shut() {
    ending = Thread.currentThread();
    gate.shut();
  }

  /** Rejects all threads: the Cuda has ended. */
  public void close() {
    ending = null;
  }
}
