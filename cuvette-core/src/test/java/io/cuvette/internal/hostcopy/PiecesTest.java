package io.cuvette.internal.hostcopy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.internal.base.Await;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 90, threadMode = Timeout.ThreadMode.SEPARATE_THREAD) // a loop hears no interrupt
class PiecesTest {
  private static final Duration LONG = Duration.ofSeconds(30);

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

  private static Thread daemon(Runnable work) {
    return Thread.ofPlatform().daemon().start(work);
  }

  /** It has others to copy then, which nobody wants any more. */
  @Test
  void helperThatFails_ends() throws InterruptedException {
    List<Thread> started = new ArrayList<>();
    IntConsumer failing =
        _ -> {
          throw new IllegalStateException("on purpose");
        };
    Pieces pieces = new Pieces(failing, 9, 3, 3, 1, work -> started.add(daemon(work)));
    pieces.open(0);
    pieces.await(0);
    assertThat(started.getFirst().join(LONG)).as("the helper ends").isTrue();
    assertThatThrownBy(pieces::check).hasMessage("on purpose");
    assertThat(pieces.copyOne()).isFalse();
    pieces.stop();
  }

  /** Nobody wants the others then, of which a thread that comes later may copy none. */
  @Test
  void pieceThatFails_isTheLastThatIsBegun() {
    IntConsumer failing =
        piece -> {
          copied.add(piece);
          if (piece == 1) {
            throw new IllegalStateException("on purpose");
          }
        };
    Pieces pieces = new Pieces(failing, 4, 2, 2, 0, _ -> false);
    pieces.open(0);
    pieces.open(1);
    assertThat(pieces.copyOne()).isTrue();
    assertThat(pieces.copyOne()).isFalse();
    assertThat(pieces.copyOne()).isFalse();
    assertThat(copied).containsExactly(0, 1);
    assertThatThrownBy(pieces::check).hasMessage("on purpose");
    pieces.stop();
  }

  /** Else a helper would be in memory that is freed, or unmapped, after a copy that failed. */
  @Test
  void stop_waitsForTheHelperThatIsAtAPiece() throws InterruptedException {
    CountDownLatch inside = new CountDownLatch(1);
    AtomicBoolean left = new AtomicBoolean();
    IntConsumer slow =
        _ -> {
          inside.countDown();
          boolean _ = Await.until(() -> false, 30_000_000);
          left.set(true);
        };
    List<Thread> started = new ArrayList<>();
    Pieces pieces = new Pieces(slow, 2, 2, 1, 1, work -> started.add(daemon(work)));
    pieces.open(0);
    Await.until(() -> inside.getCount() == 0);
    pieces.stop();
    assertThat(left).isTrue();
    assertThat(started.getFirst().join(LONG)).as("the helper ends").isTrue();
  }

  @Test
  void stop_leavesWhatNobodyHasBegun() {
    Pieces pieces = new Pieces(copied::add, 4, 2, 2, 0, _ -> false);
    pieces.open(0);
    assertThat(pieces.copyOne()).isTrue();
    pieces.stop();
    assertThat(pieces.copyOne()).isFalse();
    pieces.open(1);
    assertThat(pieces.copyOne()).isFalse();
    assertThat(copied).containsExactly(0);
    pieces.check();
  }

  /** It is in memory that the caller frees. Without help there is nobody to wait for. */
  @Test
  void copyThatFails_endsAfterTheHelperThatIsAtAPiece() {
    assumeTrue(CopyThreads.MOST > 0);
    Thread owner = Thread.currentThread();
    AtomicBoolean isInside = new AtomicBoolean();
    AtomicBoolean left = new AtomicBoolean();
    IntConsumer failing =
        _ -> {
          if (Thread.currentThread().equals(owner)) {
            boolean _ = Await.until(isInside::get, 1_000_000_000);
            throw new IllegalStateException("on purpose");
          }
          isInside.set(true);
          boolean _ = Await.until(() -> false, 30_000_000);
          left.set(true);
        };
    assertThatThrownBy(() -> Pieces.run(failing, 2, 1, false)).hasMessage("on purpose");
    assertThat(left.get()).isEqualTo(isInside.get());
  }

  /** What others have begun counts as copied, if they do. */
  @Test
  void failureOfAHelper_isThrown_alsoBehindAnInterrupt() {
    assumeTrue(CopyThreads.MOST > 0);
    Thread owner = Thread.currentThread();
    AtomicBoolean isInside = new AtomicBoolean();
    AtomicBoolean isInterrupted = new AtomicBoolean();
    IntConsumer failing =
        _ -> {
          if (Thread.currentThread().equals(owner)) {
            boolean _ = Await.until(isInside::get, 1_000_000_000);
            owner.interrupt();
            isInterrupted.set(true);
            return;
          }
          isInside.set(true);
          boolean _ = Await.until(isInterrupted::get, 1_000_000_000);
          boolean _ = Await.until(() -> false, 30_000_000); // others would have gone on by then
          throw new IllegalStateException("late");
        };
    try {
      int copied = Pieces.run(failing, 2, 1, true);
      assertThat(isInside).as("no failure without help").isFalse();
      assertThat(copied).isEqualTo(1);
    } catch (IllegalStateException e) {
      assertThat(e).hasMessage("late");
    } finally {
      boolean _ = Thread.interrupted();
    }
  }

  @Test
  void helpers_areNoMoreThanMay_andEndWithTheTransfer() throws InterruptedException {
    List<Thread> started = new ArrayList<>();
    Predicate<Runnable> helper =
        work -> {
          started.add(Thread.ofPlatform().daemon().start(work));
          return true;
        };
    CountDownLatch go = new CountDownLatch(1);
    IntConsumer waiting = _ -> Await.until(() -> go.getCount() == 0);
    Pieces pieces = new Pieces(waiting, 8, 8, 1, 3, helper);
    pieces.open(0);
    assertThat(started).hasSize(3);
    go.countDown();
    pieces.await(0);
    pieces.stop();
    for (Thread each : started) {
      assertThat(each.join(LONG)).as("%s ends", each).isTrue();
    }
  }

  /** The thread itself has copied the rest by then, and looks for a failure. */
  @Test
  void failureOfAHelper_isThrown_alsoIfItIsTheLastToEnd() {
    assumeTrue(CopyThreads.MOST > 0);
    Thread owner = Thread.currentThread();
    AtomicBoolean helped = new AtomicBoolean();
    IntConsumer failing =
        _ -> {
          if (!Thread.currentThread().equals(owner)) {
            helped.set(true);
            boolean _ = Await.until(() -> owner.getState() == Thread.State.WAITING, 50_000_000);
            throw new IllegalStateException("late");
          }
          boolean _ =
              Await.until(helped::get, 1_000_000_000); // as long as the others are busy elsewhere
        };
    try {
      int copied = Pieces.run(failing, 2, 1, false);
      assertThat(copied).isEqualTo(2);
      assertThat(helped).as("no failure without help").isFalse();
    } catch (IllegalStateException e) {
      assertThat(e).hasMessage("late");
    }
  }

  @Test
  void interrupt_endsEarlyWhatMay_andNothingElse() {
    IntConsumer interrupting =
        piece -> {
          copied.add(piece);
          if (piece == 1) {
            Thread.currentThread().interrupt();
          }
        };
    assertThat(Pieces.run(interrupting, 4, 0, true)).isEqualTo(2);
    assertThat(copied).containsExactly(0, 1);
    assertThat(Pieces.run(interrupting, 4, 0, true)).as("interrupted before").isZero();
    assertThat(Thread.interrupted()).isTrue();
    copied.clear();
    assertThat(Pieces.run(interrupting, 4, 0, false)).isEqualTo(4);
    assertThat(copied).containsExactly(0, 1, 2, 3);
    assertThat(Thread.interrupted()).isTrue();
  }
}
