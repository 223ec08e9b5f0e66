package io.cuvette.internal.lifetime;

import io.cuvette.internal.base.Await;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Keeps something from being ended while other threads use it: who shuts the gate waits for those
 * inside. Thread-safe.
 */
public final class Gate {
  private static final VarHandle INSIDE;

  static {
    try {
      INSIDE = MethodHandles.lookup().findVarHandle(Gate.class, "inside", int.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  @SuppressWarnings("UnusedVariable") // by its handle
  private volatile int inside;

  /** False if the gate is shut; else {@link #leave} must follow. */
  public boolean enter() {
    return Holds.tryHold(INSIDE, this);
  }

  /** The same for a step that can also be part of what a thread inside does. */
  public boolean enterAgain() {
    return Holds.tryHoldAgain(INSIDE, this);
  }

  public void leave() {
    boolean _ = Holds.unhold(INSIDE, this);
  }

  public boolean isShut() {
    return Holds.isClaimed(inside);
  }

  /** Rejects all threads from now on, and waits for those inside. */
  public void shut() {
    boolean _ = Holds.claim(INSIDE, this);
    Await.until(() -> Holds.count(inside) == 0);
  }
}
