package io.cuvette.internal.lifetime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.internal.index.Seeds;
import java.lang.ref.ReferenceQueue;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Random holds and ends, against what was held and who is to end it: it is released once. */
@Timeout(60)
class EndingProgramsTest {
  private static final int SEEDS = 400;
  private static final int STEPS = 30;

  /** Whoever holds it is one that nobody waits for: no step here takes time. */
  private static final class Thing extends Ending {
    private int released;
    private int failed;
    private int untold;
    private @Nullable RuntimeException failure;

    Thing(Object of, ReferenceQueue<Object> queue) {
      super(of, queue, null);
    }

    @Override
    public String describe() {
      return "a thing";
    }

    @Override
    public void release() {
      released++;
      RuntimeException next = failure;
      failure = null;
      if (next != null) {
        throw next;
      }
    }

    @Override
    public void failed() {
      failed++;
    }

    @Override
    public void failedUntold(Throwable e) {
      untold++;
    }

    @Override
    public int lenders() {
      return holds();
    }
  }

  /** What an ending should be after each step. */
  private static final class Program {
    private final SplittableRandom random;
    private final Object of = new Object();
    private final Thing thing = new Thing(of, new ReferenceQueue<>());
    private int count;
    private boolean isClaimed;
    private boolean isLeft;
    private boolean isTaken;
    private boolean isCleared;
    private int released;
    private int failed;
    private int untold;

    Program(SplittableRandom random) {
      this.random = random;
    }

    void run() {
      for (int i = 0; i < STEPS; i++) {
        if (random.nextInt(8) == 0) {
          thing.failure = new IllegalArgumentException("refused");
        }
        step(random.nextInt(14));
        thing.failure = null;
        check();
      }
      while (count > 0) {
        unhold();
        check();
      }
    }

    private void check() {
      assertThat(thing.holds()).isEqualTo(count);
      assertThat(thing.ended()).isEqualTo(isClaimed);
      assertThat(thing.released).isEqualTo(released);
      assertThat(thing.failed).isEqualTo(failed);
      assertThat(thing.untold).isEqualTo(untold);
      assertThat(thing.refersTo(of)).isEqualTo(!isCleared);
      assertThat(thing.isForgotten()).isEqualTo(isCleared && !isClaimed);
      if (isClaimed) {
        assertThatIllegalStateException()
            .isThrownBy(thing::checkOpen)
            .withMessage("a thing is closed");
      } else {
        thing.checkOpen();
      }
    }

    private void step(int what) {
      switch (what) {
        case 0, 1, 2 -> hold();
        case 3 -> holdAgain();
        case 4, 5, 6, 7 -> unhold();
        case 8 -> close();
        case 9 -> closeHeld();
        case 10 -> end();
        case 11 -> reclaim();
        case 12 -> takeOver();
        default -> check();
      }
    }

    private void hold() {
      boolean isHeld = !isClaimed;
      if (random.nextBoolean()) {
        assertThat(thing.tryHold()).isEqualTo(isHeld);
      } else {
        assertThat(catchThrowable(thing::hold) == null).isEqualTo(isHeld);
      }
      count += isHeld ? 1 : 0;
    }

    private void holdAgain() {
      boolean isHeld = !isClaimed || count > 0;
      assertThat(thing.tryHoldAgain()).isEqualTo(isHeld);
      count += isHeld ? 1 : 0;
    }

    /** Whether the release fails that is made now. */
    private boolean released() {
      boolean fails = thing.failure != null;
      isCleared = true;
      released++;
      failed += fails ? 1 : 0;
      return fails;
    }

    private void unhold() {
      if (count == 0) {
        return;
      }
      count--;
      if (count == 0 && isClaimed && isLeft && !isTaken) {
        untold += released() ? 1 : 0;
      }
      thing.unhold();
    }

    private void close() {
      boolean isMine = !isClaimed;
      boolean fails = claimedAndFinished(isMine);
      Throwable thrown = catchThrowable(() -> assertThat(thing.close(this)).isEqualTo(isMine));
      assertThat(thrown != null).isEqualTo(fails);
    }

    /** Who closes it ends it, or leaves that to the last who holds it. */
    private boolean claimedAndFinished(boolean isMine) {
      isClaimed = true;
      if (!isMine) {
        return false;
      }
      if (count == 0) {
        return released();
      }
      isLeft = true;
      return false;
    }

    private void closeHeld() {
      if (count == 0) {
        return;
      }
      boolean isMine = !isClaimed;
      count--;
      boolean fails = false;
      if (isMine) {
        fails = claimedAndFinished(true);
      } else if (count == 0 && isLeft && !isTaken) {
        untold += released() ? 1 : 0;
      }
      assertThat(catchThrowable(thing::closeHeld) != null).isEqualTo(fails);
    }

    /** For who may find that it cannot be ended. */
    private void end() {
      boolean isMine = !isClaimed && count == 0;
      assertThat(thing.end()).isEqualTo(isMine);
      if (!isMine) {
        return;
      }
      isClaimed = true;
      if (random.nextBoolean()) {
        thing.resume();
        isClaimed = false;
      } else {
        boolean fails = released();
        assertThat(catchThrowable(thing::finish) != null).isEqualTo(fails);
      }
    }

    private void reclaim() {
      boolean isMine = !isClaimed && count == 0;
      isClaimed |= isMine;
      boolean fails = isMine && released();
      Throwable thrown = catchThrowable(() -> assertThat(thing.reclaim()).isEqualTo(isMine));
      assertThat(thrown != null).isEqualTo(fails);
    }

    /** Its owner gives it back itself. */
    private void takeOver() {
      isCleared |= !isClaimed;
      isClaimed = true;
      isTaken = true;
      thing.takeOver();
    }
  }

  @Test
  void thing_isHeldUntilItIsClaimed_andReleasedByTheLast() {
    Seeds.forEach(SEEDS, random -> new Program(random).run());
  }

  /** What failed is tried again, and not told to anybody who did not ask. */
  @Test
  void releaseThatFailed_isTriedAgain() {
    Thing thing = new Thing(this, new ReferenceQueue<>());
    for (int i = 1; i <= 3; i++) {
      thing.failure = i == 3 ? null : new IllegalArgumentException("refused");
      if (i == 1) {
        assertThat(catchThrowable(() -> thing.close(this))).hasMessage("refused");
      } else {
        thing.releaseAgain();
      }
      assertThat(thing.released).isEqualTo(i);
      assertThat(thing.failed).isEqualTo(Math.min(i, 2));
      assertThat(thing.untold).isEqualTo(Math.min(i, 2) - 1);
    }
  }
}
