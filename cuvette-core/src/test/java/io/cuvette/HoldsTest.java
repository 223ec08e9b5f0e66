package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.lifetime.Holds;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.util.function.IntUnaryOperator;
import org.junit.jupiter.api.Test;

/** Each step between open, held, claimed, left and taken, and which of them is refused when. */
class HoldsTest {
  private static final VarHandle STATE;

  static {
    try {
      STATE = MethodHandles.lookup().findVarHandle(HoldsTest.class, "state", int.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private volatile int state;

  /** What another thread makes of the state, once somebody has read it. */
  private IntUnaryOperator meanwhile = IntUnaryOperator.identity();

  private boolean hold() {
    return Holds.tryHold(STATE, this);
  }

  private boolean unhold() {
    return Holds.unhold(STATE, this);
  }

  private void check(boolean claimed, int holds) {
    assertThat(Holds.isClaimed(state)).isEqualTo(claimed);
    assertThat(Holds.count(state)).isEqualTo(holds);
  }

  @Test
  void holds_areCounted_andEndNothing() {
    assertThat(hold()).isTrue();
    assertThat(hold()).isTrue();
    check(false, 2);
    assertThat(Holds.claimUnheld(STATE, this)).isFalse();
    assertThat(unhold()).isFalse();
    assertThat(unhold()).isFalse();
    check(false, 0);
  }

  @Test
  void claim_isForOne_andLetsNobodyInButThoseInside() {
    assertThat(hold()).isTrue();
    assertThat(Holds.claim(STATE, this)).isTrue();
    assertThat(Holds.claim(STATE, this)).isFalse();
    check(true, 1);
    assertThat(hold()).isFalse();
    assertThat(Holds.tryHoldAgain(STATE, this)).isTrue();
    check(true, 2);
    assertThat(unhold()).isFalse();
    assertThat(unhold()).as("who claimed it waits, and ends it").isFalse();
    assertThat(Holds.tryHoldAgain(STATE, this)).isFalse();
    check(true, 0);
  }

  @Test
  void claimOfWhatNobodyHolds_isForOne() {
    assertThat(Holds.claimUnheld(STATE, this)).isTrue();
    assertThat(Holds.claimUnheld(STATE, this)).isFalse();
    assertThat(Holds.claim(STATE, this)).isFalse();
    assertThat(hold()).isFalse();
    Holds.reopen(STATE, this);
    assertThat(hold()).isTrue();
    check(false, 1);
  }

  @Test
  void lastHoldAfterWhoClaimedItLeft_endsIt() {
    assertThat(hold()).isTrue();
    assertThat(hold()).isTrue();
    assertThat(Holds.claim(STATE, this)).isTrue();
    assertThat(Holds.leave(STATE, this)).isTrue();
    check(true, 2);
    assertThat(unhold()).isFalse();
    assertThat(unhold()).as("the last one ends it").isTrue();
    check(true, 0);
    Holds.reopen(STATE, this);
    check(false, 0);
  }

  @Test
  void whoClaimedWhatNobodyHolds_doesNotLeave() {
    assertThat(Holds.claim(STATE, this)).isTrue();
    assertThat(Holds.leave(STATE, this)).isFalse();
    check(true, 0);
  }

  @Test
  void ownerThatTakesItOver_isToldWhetherItWasClaimed_andItStaysClosed() {
    assertThat(Holds.takeOver(STATE, this)).isTrue();
    assertThat(Holds.takeOver(STATE, this)).isFalse();
    Holds.reopen(STATE, this);
    check(true, 0);
    assertThat(hold()).isFalse();
  }

  @Test
  void holdsOfWhatItsOwnerTookOver_endNothing() {
    assertThat(hold()).isTrue();
    assertThat(Holds.claim(STATE, this)).isTrue();
    assertThat(Holds.leave(STATE, this)).isTrue();
    assertThat(Holds.takeOver(STATE, this)).isFalse();
    assertThat(unhold()).as("the owner ends it").isFalse();
    check(true, 0);
  }

  @Test
  void whoEndsIt_holdsItAlone_forStepsOfItsOwn() {
    assertThat(Holds.claim(STATE, this)).isTrue();
    Holds.holdAlone(STATE, this);
    check(true, 1);
    assertThat(hold()).isFalse();
    assertThat(Holds.tryHoldAgain(STATE, this)).isTrue();
    assertThat(unhold()).isFalse();
    assertThat(unhold()).isFalse();
    check(true, 0);
  }

  @SuppressWarnings("UnusedMethod") // by its handle
  private int read(int value) {
    state = meanwhile.applyAsInt(state);
    meanwhile = IntUnaryOperator.identity();
    return value;
  }

  /** The same state, for one who is overtaken by another thread after the first look. */
  private VarHandle overtaken(IntUnaryOperator by) throws ReflectiveOperationException {
    MethodHandle read =
        MethodHandles.lookup().bind(this, "read", MethodType.methodType(int.class, int.class));
    meanwhile = by;
    return MethodHandles.filterValue(STATE, MethodHandles.identity(int.class), read);
  }

  @Test
  void holdsOfSeveralThreads_areAllCounted() throws ReflectiveOperationException {
    assertThat(Holds.tryHold(overtaken(before -> before + 1), this)).isTrue();
    check(false, 2);
    assertThat(Holds.claim(STATE, this)).isTrue();
    assertThat(Holds.tryHoldAgain(overtaken(before -> before + 1), this)).isTrue();
    check(true, 4);
    assertThat(Holds.leave(overtaken(before -> before - 1), this)).isTrue();
    check(true, 3);
    assertThat(unhold()).isFalse();
    assertThat(unhold()).isFalse();
    assertThat(unhold()).as("the last one ends it").isTrue();
  }

  @Test
  void whoIsOvertakenByTheEnd_isNotLetIn_andLeavesNothingToNobody()
      throws ReflectiveOperationException {
    IntUnaryOperator claim = before -> before | Integer.MIN_VALUE;
    assertThat(Holds.tryHold(overtaken(claim), this)).isFalse();
    check(true, 0);
    assertThat(Holds.tryHoldAgain(STATE, this)).isFalse();
    Holds.reopen(STATE, this);
    assertThat(hold()).isTrue();
    assertThat(Holds.claim(STATE, this)).isTrue();
    assertThat(Holds.tryHoldAgain(overtaken(before -> before - 1), this)).isFalse();
    check(true, 0);
    Holds.reopen(STATE, this);
    assertThat(hold()).isTrue();
    assertThat(Holds.claim(STATE, this)).isTrue();
    assertThat(Holds.leave(overtaken(before -> before - 1), this)).isFalse();
    check(true, 0);
  }
}
