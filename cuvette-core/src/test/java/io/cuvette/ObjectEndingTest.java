package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.session.ObjectEnding;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Whom a thread waits for that needs a handle to be used by nobody else. */
@Timeout(60)
class ObjectEndingTest {
  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final ObjectEnding handle = new ObjectEnding(new Object(), cuda.session(), _ -> {}, null);

  /** Threads that wait for the device until it is over. */
  private final List<Thread> waits = new ArrayList<>();

  private final AtomicBoolean isOver = new AtomicBoolean();

  @AfterEach
  void close() {
    endWaits();
    cuda.close();
  }

  /** How long it waits for others if it is held so many times itself, at least. */
  private long nanosOfAwaiting(int mine) {
    long start = System.nanoTime();
    handle.awaitOperations(mine);
    return System.nanoTime() - start;
  }

  /** A capture that began before it is there would be spoilt by its call. */
  @Test
  void threadThatIsAboutToWaitForTheDevice_hasAMomentToComeIntoTheDriver() {
    AtomicLong nanos = new AtomicLong();
    handle.hold();
    handle.await(() -> {
      handle.awaitOperations(1);
      nanos.set(nanosOfAwaiting(0));
    });
    handle.unhold();
    assertThat(nanos.get()).isGreaterThanOrEqualTo(TimeUnit.MILLISECONDS.toNanos(10));
    assertThat(handle.waiting()).isZero();
  }

  @Test
  void operationOfAnother_isAwaited_forASecond() {
    handle.hold();
    assertThat(nanosOfAwaiting(0)).isGreaterThanOrEqualTo(Ending.PATIENCE_NANOS);
    handle.unhold();
    handle.awaitOperations(0);
  }

  /** Who takes it over waits for all who hold it but for those that it is lent to still. */
  @Test
  void loanThatCameBack_isNotTakenForAnOperationThatHoldsItLater() {
    handle.lend();
    assertThat(handle.lenders()).isEqualTo(1);
    assertThat(handle.holds()).isEqualTo(1);
    handle.returned();
    assertThat(handle.lenders()).isZero();
    assertThat(handle.holds()).isZero();
    handle.hold();
    Thread owner = Thread.ofPlatform().daemon().start(handle::takeOver);
    assertThat(Await.until(handle::ended, TimeUnit.SECONDS.toNanos(60))).isTrue();
    assertThat(owner.isAlive()).as("waits for the operation").isTrue();
    handle.unhold();
    assertThat(Await.until(() -> !owner.isAlive(), TimeUnit.SECONDS.toNanos(60))).isTrue();
  }

  @Test
  void collector_looksForNothing_whereLeaksAreNotTracked() {
    try (Cuda off = Cuda.open(CudaOptions.simulated().withLeakLevel(LeakLevel.OFF))) {
      ObjectEnding unseen = new ObjectEnding(new Object(), off.session(), _ -> {});
      ObjectEnding seen = new ObjectEnding(new Object(), cuda.session(), _ -> {});
      assertThat(Tries.isCollected(seen::isForgotten)).isTrue();
      assertThat(unseen.isForgotten()).isFalse();
    }
  }

  @Test
  void whatIsClosed_isNotForgotten() {
    ObjectEnding closed = new ObjectEnding(new Object(), cuda.session(), _ -> {});
    closed.close(this);
    assertThat(closed.refersTo(null)).isTrue();
    assertThat(closed.isForgotten()).isFalse();
  }

  /** It comes back with the thing released, if the others need a moment only. */
  @Test
  void whoCloses_waitsForOthers_andReleasesItself() throws Exception {
    assertThat(Tries.oneSucceeds(this::releasesItself)).isTrue();
  }

  private boolean releasesItself() throws InterruptedException {
    AtomicReference<Thread> released = new AtomicReference<>();
    ObjectEnding held =
        new ObjectEnding(
            new Object(), cuda.session(), _ -> released.set(Thread.currentThread()), null);
    held.hold();
    Thread closing = Thread.ofPlatform().start(() -> held.close(this));
    Await.until(() -> held.ended() && isWaitingOrOver(closing));
    held.unhold();
    closing.join();
    return closing.equals(released.get());
  }

  private static boolean isWaitingOrOver(Thread thread) {
    return thread.getState() == Thread.State.TIMED_WAITING || !thread.isAlive();
  }

  /** Those that wait for the device may take long, and are inside the driver. */
  @Test
  void whoWaitsForQueueing_waitsForOperations_butNotForWaits() throws InterruptedException {
    handle.awaitQueueing();
    for (int waiting = 0; waiting < 3; waiting++) {
      assertThat(handle.waiting()).isEqualTo(waiting);
      handle.awaitQueueing();
      handle.hold();
      Thread asking = Thread.ofPlatform().start(handle::awaitQueueing);
      Await.until(() -> isWaitingOrOver(asking));
      assertThat(asking.isAlive()).as("with %d that wait", waiting).isTrue();
      handle.unhold();
      asking.join();
      holdAndWaitOnAnotherThread();
    }
    endWaits();
    assertThat(handle.waiting()).isZero();
    assertThat(handle.holds()).isZero();
  }

  private void holdAndWaitOnAnotherThread() {
    int before = handle.waiting();
    waits.add(
        Thread.ofPlatform()
            .start(() -> {
              handle.hold();
              handle.await(() -> Await.until(isOver::get));
              handle.unhold();
            }));
    Await.until(() -> handle.waiting() > before);
  }

  private void endWaits() {
    isOver.set(true);
    waits.forEach(thread -> Await.until(() -> !thread.isAlive()));
  }
}
