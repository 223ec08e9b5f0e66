package io.cuvette.internal.hostcopy;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.base.Await;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 20, threadMode = Timeout.ThreadMode.SEPARATE_THREAD) // a loop hears no interrupt
class PiecesTest {
  private final List<Integer> copied = new ArrayList<>();

  private Pieces pieces(int total, int inGroup, int helpers) {
    return new Pieces(
        copied::add,
        total,
        inGroup,
        2,
        helpers,
        work -> {
          work.run(); // a thread that is faster than the one that starts it
          return true;
        });
  }

  /** Many processors copy few pieces faster than one thread starts the others. */
  @Test
  void helpersThatEndAtOnce_areNotStartedForEver() {
    Pieces pieces = pieces(9, 9, 32);
    pieces.open(0);
    assertThat(pieces.copyOne()).isFalse();
    assertThat(pieces.isDone(0)).isTrue();
    assertThat(copied).containsExactly(0, 1, 2, 3, 4, 5, 6, 7, 8);
    pieces.stop();
  }

  @Test
  void helpersThatWaitedInVain_areStartedForTheNextGroup() {
    Pieces pieces = pieces(6, 3, 2);
    pieces.open(0);
    assertThat(copied).containsExactly(0, 1, 2);
    pieces.open(1);
    assertThat(copied).containsExactly(0, 1, 2, 3, 4, 5);
    pieces.stop();
  }

  @Test
  void oneHelperIsNotStarted_forTheLastPieceThatThisThreadCopies() {
    Pieces pieces = pieces(1, 1, 32);
    pieces.open(0);
    assertThat(copied).isEmpty();
    assertThat(pieces.copyOne()).isTrue();
    assertThat(pieces.isDone(0)).isTrue();
    pieces.stop();
  }

  /** There may be one for the next part. */
  @Test
  void helperForWhomNoThreadWasFree_isAskedForAgain() {
    AtomicInteger asked = new AtomicInteger();
    Predicate<Runnable> none =
        _ -> {
          asked.incrementAndGet();
          return false;
        };
    Pieces pieces = new Pieces(copied::add, 6, 3, 2, 1, none);
    pieces.open(0);
    while (pieces.copyOne()) {
      assertThat(asked).hasValue(1);
    }
    pieces.open(1);
    assertThat(asked).hasValue(2);
    pieces.stop();
  }

  @Test
  void interruptWhileOthersCopy_isKept() {
    Thread owner = Thread.currentThread();
    IntConsumer interrupting =
        _ -> {
          Await.until(() -> owner.getState() == Thread.State.WAITING);
          owner.interrupt();
        };
    Predicate<Runnable> helper =
        work -> {
          Thread _ = Thread.ofPlatform().start(work);
          return true;
        };
    Pieces pieces = new Pieces(interrupting, 2, 2, 2, 1, helper);
    pieces.open(0);
    pieces.await(0);
    assertThat(Thread.interrupted()).isTrue();
    pieces.stop();
  }
}
