package io.cuvette.internal.lifetime;

import java.lang.invoke.VarHandle;

/**
 * Counts who is using something at the moment, and lets one thread claim it to end it. Both are in
 * one int of that object, so that using it and closing it while nobody does cost one
 * compare-and-set each.
 *
 * <pre>
 *   0            open, unused
 *   n            open, held n times
 *   CLAIMED + n  ends: nobody else comes in; n holds are left, and who claimed it waits for them
 *   … + LEFT     who claimed it went on: the last of the n ends it
 *   … + TAKEN    the owner of all ends it, whoever claimed it before
 * </pre>
 *
 * Stateless; the field is handed in as a constant.
 */
public final class Holds {
  private static final int CLAIMED = Integer.MIN_VALUE;
  private static final int LEFT = 1 << 30;
  private static final int TAKEN = 1 << 29;
  private static final int COUNT = TAKEN - 1;

  private Holds() {}

  public static boolean isClaimed(int state) {
    return state < 0;
  }

  public static int count(int state) {
    return state & COUNT;
  }

  /** False if it is claimed; else {@link #unhold} must follow. */
  public static boolean tryHold(VarHandle state, Object of) {
    int before;
    do {
      before = (int) state.getVolatile(of);
      if (before < 0) {
        return false;
      }
    } while (!state.compareAndSet(of, before, before + 1));
    return true;
  }

  /**
   * The same for a step that can also be part of what a thread does that holds it: as long as it is
   * held after it was claimed, that may be this thread.
   */
  public static boolean tryHoldAgain(VarHandle state, Object of) {
    int before;
    do {
      before = (int) state.getVolatile(of);
      if (before < 0 && count(before) == 0) {
        return false;
      }
    } while (!state.compareAndSet(of, before, before + 1));
    return true;
  }

  /** True if the caller has to end it. */
  public static boolean unhold(VarHandle state, Object of) {
    return (int) state.getAndAdd(of, -1) == CLAIMED + LEFT + 1;
  }

  /** Claims it if nobody holds it. */
  public static boolean claimUnheld(VarHandle state, Object of) {
    return state.compareAndSet(of, 0, CLAIMED);
  }

  /** False if it was claimed before. */
  public static boolean claim(VarHandle state, Object of) {
    return (int) state.getAndBitwiseOr(of, CLAIMED) >= 0;
  }

  /** Claims it for the owner of all, whether or not it was claimed before; true if it was not. */
  public static boolean takeOver(VarHandle state, Object of) {
    return (int) state.getAndBitwiseOr(of, CLAIMED + TAKEN) >= 0;
  }

  /** Leaves the end to the last who holds it; false if nobody does any more. */
  public static boolean leave(VarHandle state, Object of) {
    int before;
    do {
      before = (int) state.getVolatile(of);
      if (count(before) == 0) {
        return false;
      }
    } while (!state.compareAndSet(of, before, before | LEFT));
    return true;
  }

  /** Claimed and held once, by the caller, who ends it: its own steps come in again. */
  public static void holdAlone(VarHandle state, Object of) {
    state.setVolatile(of, CLAIMED + 1);
  }

  /** Opens it again, claimed and unheld as it is, but if the owner has taken it over. */
  public static void reopen(VarHandle state, Object of) {
    boolean _ = state.compareAndSet(of, CLAIMED, 0) || state.compareAndSet(of, CLAIMED + LEFT, 0);
  }
}
