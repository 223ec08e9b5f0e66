package io.cuvette.internal.lifetime;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.ref.ReferenceQueue;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** For what an ending looks, and for whom it waits. */
class EndingTest {
  private static final class Counting extends Ending {
    private final int lenders;
    private final int waiting;
    private int asked;
    private int released;

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
      assertThat(ending.close()).isTrue();
      assertThat(ending.asked).isEqualTo(1);
      ending.unhold();
      assertThat(ending.released).isZero();
      ending.unhold();
      assertThat(ending.released).isEqualTo(1);
    }
  }
}
