package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.Turns;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** One thread after the other, and no thread waits for itself. */
@Timeout(60)
class TurnsTest {
  private final Turns turns = new Turns();

  @Test
  void turnInsideAThreadsTurn_isItsOwn_andIsOverWithTheOuterOne() throws Exception {
    assertThat(Tries.oneSucceeds(() -> keepsAnotherWaiting(true))).isTrue();
  }

  /** A thread that has had a turn waits for the next one as any other does. */
  @Test
  void nextTurnOfTheSameThread_isItsOwnToo() throws Exception {
    assertThat(turns.<Integer>take(() -> 1)).isEqualTo(1);
    assertThat(Tries.oneSucceeds(() -> keepsAnotherWaiting(false))).isTrue();
  }

  /** Whether another thread waits for this thread's turn to end, as it does for a second. */
  private boolean keepsAnotherWaiting(boolean isNested) throws InterruptedException {
    AtomicBoolean entered = new AtomicBoolean();
    Thread[] other = new Thread[1];
    boolean waits =
        turns.take(() -> {
          if (isNested) {
            assertThat(turns.<Integer>take(() -> 1)).isEqualTo(1);
          }
          other[0] = Thread.ofPlatform().start(() -> turns.take(() -> entered.getAndSet(true)));
          Await.until(() -> other[0].getState() == Thread.State.TIMED_WAITING || entered.get());
          return !entered.get();
        });
    other[0].join();
    assertThat(entered).isTrue();
    return waits;
  }

  /** A turn that is not over keeps the next thread waiting for a second. */
  @Test
  void turnsThatAreOver_keepNobodyWaiting() throws Exception {
    assertThat(Tries.oneSucceeds(() -> tenTakeTurnsInSeconds(5))).isTrue();
  }

  private boolean tenTakeTurnsInSeconds(int most) throws InterruptedException {
    long start = System.nanoTime();
    for (int i = 0; i < 10; i++) {
      Thread.ofPlatform().start(() -> turns.take(() -> null)).join();
    }
    return System.nanoTime() - start < TimeUnit.SECONDS.toNanos(most);
  }

  @Test
  void turnThatThrows_isOver() {
    for (int i = 0; i < 2; i++) {
      assertThatThrownBy(() ->
              turns.take(() -> {
                throw new IllegalStateException("no");
              }))
          .hasMessage("no");
    }
  }

  @Test
  void interruptedThread_goesOn_andKeepsTheInterrupt() throws Exception {
    assertThat(Tries.oneSucceeds(this::goesOnAsItIsInterrupted)).isTrue();
    Thread.currentThread().interrupt();
    assertThat(turns.<Integer>take(() -> 2)).isEqualTo(2);
    assertThat(Thread.interrupted()).isTrue();
  }

  /** Whether a thread that waits for its turn keeps an interrupt, which comes within a second. */
  private boolean goesOnAsItIsInterrupted() throws InterruptedException {
    CountDownLatch inside = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    Thread holder =
        Thread.ofPlatform()
            .start(() ->
                turns.take(() -> {
                  inside.countDown();
                  Latches.await(goOn);
                  return null;
                }));
    inside.await();
    AtomicBoolean kept = new AtomicBoolean();
    Thread waiting =
        Thread.ofPlatform()
            .start(() -> {
              turns.take(() -> null);
              kept.set(Thread.interrupted());
            });
    Await.until(() -> waiting.getState() == Thread.State.TIMED_WAITING || !waiting.isAlive());
    waiting.interrupt();
    waiting.join();
    goOn.countDown();
    holder.join();
    return kept.get();
  }

  /** What it was let do without one gives it none. */
  @Test
  void threadThatWentOnWithoutATurn_waitsForTheNextOne() throws Exception {
    assertThat(Tries.oneSucceeds(this::waitsAfterATurnThatItHadNot)).isTrue();
  }

  /** Whether it is interrupted as it waits, and waits again then, of which each takes a second. */
  private boolean waitsAfterATurnThatItHadNot() throws InterruptedException {
    CountDownLatch without = new CountDownLatch(1);
    AtomicBoolean wasInterrupted = new AtomicBoolean();
    AtomicBoolean entered = new AtomicBoolean();
    Thread other =
        Thread.ofPlatform()
            .unstarted(() -> {
              turns.take(() -> null);
              wasInterrupted.set(Thread.interrupted());
              without.countDown();
              turns.take(() -> entered.getAndSet(true));
            });
    boolean waits =
        turns.take(() -> {
          other.start();
          Await.until(
              () -> other.getState() == Thread.State.TIMED_WAITING || without.getCount() == 0);
          other.interrupt();
          Latches.await(without);
          Await.until(() -> other.getState() == Thread.State.TIMED_WAITING || entered.get());
          return !entered.get();
        });
    other.join();
    assertThat(entered).isTrue();
    return waits && wasInterrupted.get();
  }

  /** At once: it would wait for a second, as for others, and then go on without a turn. */
  @Test
  void turnInsideAThreadsTurn_doesNotWait() {
    long start = System.nanoTime();
    assertThat(nested(50)).isEqualTo(50);
    assertThat(System.nanoTime() - start).isLessThan(TimeUnit.SECONDS.toNanos(30));
  }

  private int nested(int depth) {
    return depth == 0 ? 0 : 1 + turns.<Integer>take(() -> nested(depth - 1));
  }
}
