package io.cuvette.internal.lifetime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.base.Await;
import java.lang.ref.ReferenceQueue;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** For what an ending looks, and for whom it waits. */
class EndingTest {
  private static class Counting extends Ending {
    private final int lenders;
    private final int waiting;
    private int asked;
    private int released;
    int failed;

    Counting(Object of, @Nullable ReferenceQueue<Object> queue, int waiting, int lenders) {
      super(of, queue, null);
      this.waiting = waiting;
      this.lenders = lenders;
    }

    @Override
    public String describe() {
      return "object";
    }

    @Override
    public void release() {
      released++;
    }

    @Override
    public void failed() {
      failed++;
    }

    @Override
    public int waiting() {
      asked++;
      return waiting;
    }

    @Override
    public int lenders() {
      return lenders;
    }
  }

  @Test
  void objectThatSomebodyLooksFor_isWhatTheCollectorIsAskedAbout() {
    Object of = new Object();
    assertThat(new Counting(of, new ReferenceQueue<>(), 0, 0).refersTo(of)).isTrue();
    assertThat(new Counting(of, null, 0, 0).refersTo(of)).isFalse();
  }

  /** What lends from it, or waits for work in it, may do so for long: it is left to that. */
  @Test
  void closedWhileItLends_andWhileThreadsWaitInIt_itIsLeftToTheLastOfThem_withoutAWait() {
    for (int lenders = 0; lenders <= 2; lenders++) {
      Counting ending = new Counting(new Object(), null, 2 - lenders, lenders);
      ending.hold();
      ending.hold();
      assertThat(ending.close(this)).isTrue();
      assertThat(ending.asked).isEqualTo(1);
      ending.unhold();
      assertThat(ending.released).isZero();
      ending.unhold();
      assertThat(ending.released).isEqualTo(1);
    }
  }

  @Test
  void oneClose_isTheOneThatEndsIt() {
    Counting ending = new Counting(new Object(), null, 0, 0);
    assertThat(ending.close(this)).isTrue();
    assertThat(ending.close(this)).isFalse();
    assertThat(ending.reclaim()).isFalse();
    assertThat(ending.released).isEqualTo(1);
    assertThat(ending.tryHold()).isFalse();
    assertThatThrownBy(ending::hold).hasMessage("object is closed");
    assertThatThrownBy(ending::checkOpen).hasMessage("object is closed");
  }

  /** It is torn down next: nobody may be in the middle of using it. */
  @Test
  @Timeout(60)
  void ownerThatTakesItOver_waitsForWhoUsesIt_butNotForWhoLends() throws InterruptedException {
    Counting ending = new Counting(new Object(), null, 1, 1);
    ending.hold();
    ending.hold();
    Thread owner = Thread.ofPlatform().start(ending::takeOver);
    Await.until(() -> owner.getState() == Thread.State.TIMED_WAITING || !owner.isAlive());
    assertThat(owner.isAlive()).isTrue();
    assertThat(ending.tryHold()).isFalse();
    ending.unhold();
    owner.join();
    assertThat(ending.holds()).isEqualTo(1);
    ending.unhold();
    assertThat(ending.released).as("the owner ends it").isZero();
  }

  /** Fails, and is open again where somebody is found to use it in another way. */
  private static final class Failing extends Counting {
    private final boolean resumes;
    private @Nullable Throwable untold;

    Failing(boolean resumes) {
      super(new Object(), null, 1, 1);
      this.resumes = resumes;
    }

    @Override
    public void release() {
      if (resumes) {
        resume();
      }
      throw new IllegalStateException("not now");
    }

    @Override
    public void failedUntold(Throwable e) {
      super.failedUntold(e);
      untold = e;
    }
  }

  @Test
  void endThatFailsForTheLastUser_isTold_unlessItIsOpenAgain() {
    for (boolean resumes : new boolean[] {false, true}) {
      Failing ending = new Failing(resumes);
      ending.hold();
      assertThat(ending.close(this)).isTrue();
      ending.unhold();
      assertThat(ending.ended()).isEqualTo(!resumes);
      assertThat(ending.tryHold()).isEqualTo(resumes);
      if (resumes) {
        assertThat(ending.untold).isNull();
      } else {
        assertThat(ending.untold).hasMessage("not now");
      }
    }
  }

  @Test
  void whoHoldsIt_endsIt_orLeavesItToTheLast() {
    Counting alone = new Counting(new Object(), null, 0, 0);
    alone.hold();
    alone.closeHeld();
    assertThat(alone.released).isEqualTo(1);
    assertThat(alone.ended()).isTrue();
    assertThat(alone.holds()).isZero();

    Counting closed = new Counting(new Object(), null, 1, 1);
    closed.hold();
    closed.hold();
    assertThat(closed.close(this)).isTrue();
    closed.closeHeld();
    assertThat(closed.released).isZero();
    assertThat(closed.holds()).isEqualTo(1);
    closed.unhold();
    assertThat(closed.released).isEqualTo(1);
  }

  @Test
  void objectThatTheCollectorFound_endsUnlessItIsHeld() {
    Counting ending = new Counting(new Object(), null, 0, 0);
    ending.hold();
    assertThat(ending.reclaim()).isFalse();
    assertThat(ending.ended()).isFalse();
    ending.unhold();
    assertThat(ending.reclaim()).isTrue();
    assertThat(ending.released).isEqualTo(1);
    assertThat(ending.reclaim()).isFalse();
    assertThat(ending.isOut()).isFalse();
  }

  /** Whoever owns it tries again. */
  @Test
  void releaseThatFails_isNotedEachTime_andToldToWhoeverIsThere() {
    Failing ending = new Failing(false);
    assertThatThrownBy(() -> ending.close(this)).hasMessage("not now");
    assertThat(ending.failed).isEqualTo(1);
    assertThat(ending.untold).isNull();
    ending.releaseAgain();
    assertThat(ending.failed).isEqualTo(2);
    assertThat(ending.untold).hasMessage("not now");
  }

  /** It must not get lost. */
  @Test
  void errorForTheLastUser_isThrown() {
    Counting ending =
        new Counting(new Object(), null, 1, 1) {
          @Override
          public void release() {
            throw new OutOfMemoryError("the test's");
          }
        };
    ending.hold();
    assertThat(ending.close(this)).isTrue();
    assertThatThrownBy(ending::unhold).isInstanceOf(OutOfMemoryError.class);
  }

  /** Steps of the same thread go on meanwhile, and those of others are over then. */
  @Test
  @Timeout(60)
  void whoEndsItAlone_waitsForTheStepsThatCameIn() throws InterruptedException {
    Counting ending = new Counting(new Object(), null, 0, 0);
    assertThat(ending.end()).isTrue();
    assertThat(ending.tryHold()).isFalse();
    assertThat(ending.tryHoldAgain()).isFalse();
    ending.beginAlone();
    assertThat(ending.tryHold()).isFalse();
    assertThat(ending.tryHoldAgain()).isTrue();
    Thread alone = Thread.ofPlatform().start(ending::endAlone);
    Await.until(() -> alone.getState() == Thread.State.TIMED_WAITING || !alone.isAlive());
    assertThat(alone.isAlive()).isTrue();
    ending.unhold();
    alone.join();
    assertThat(ending.holds()).isZero();
    assertThat(ending.tryHoldAgain()).isFalse();
    assertThat(ending.released).as("by its owner").isZero();
  }
}
