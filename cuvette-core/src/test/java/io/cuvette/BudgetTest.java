package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.pool.Budget;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The books of what a pool holds: every byte is in an arena or on its way. */
@Timeout(60)
class BudgetTest {
  private final Budget held = new Budget(1000);

  private void check(long inArenas, long fromUpstream) {
    assertThat(held.assertConsistent(inArenas, () -> fromUpstream, () -> true)).isTrue();
  }

  private void checkWrong(long inArenas, long fromUpstream) {
    assertThatThrownBy(() -> check(inArenas, fromUpstream)).isInstanceOf(AssertionError.class);
  }

  @Test
  void limit_isWhatMayBeReserved_toTheByte() {
    assertThat(held.limit()).isEqualTo(1000);
    assertThat(held.reserve(600)).isTrue();
    assertThat(held.reserve(401)).isFalse();
    assertThat(held.reserve(400)).isTrue();
    assertThat(held.room()).isZero();
    assertThat(held.reserve(1)).isFalse();
    assertThat(held.reservations()).isEqualTo(2);
    held.unreserve(400);
    assertThat(held.held()).isEqualTo(600);
    held.setLimit(500);
    assertThat(held.room()).isEqualTo(-100);
    assertThat(held.reserve(0)).isFalse();
  }

  @Test
  void sizeThatALongCannotAddToWhatIsHeld_isBeyondTheLimit() {
    Budget unlimited = new Budget(Long.MAX_VALUE);
    assertThat(unlimited.reserve(1)).isTrue();
    assertThat(unlimited.reserve(Long.MAX_VALUE)).isFalse();
    assertThat(unlimited.held()).isEqualTo(1);
    assertThat(unlimited.reserve(Long.MAX_VALUE - 1)).isTrue();
    assertThat(unlimited.room()).isZero();
  }

  @Test
  void wayOfAChunk_isCountedOnceEverywhere() {
    assertThat(held.reserve(512)).isTrue();
    check(0, 0);
    held.enterArena(512);
    check(512, 512);
    checkWrong(0, 512);
    checkWrong(512, 0);
    checkWrong(1024, 512);
    held.leaveArena(512);
    check(0, 512);
    held.enterArena(512);
    assertThat(held.isBeingFreed()).isFalse();
    held.leaveForGood(512);
    assertThat(held.isBeingFreed()).isTrue();
    assertThat(held.beingFreed()).isEqualTo(512);
    assertThat(held.held()).isEqualTo(512);
    check(0, 512);
    held.freed(512);
    assertThat(held.isBeingFreed()).isFalse();
    assertThat(held.held()).isZero();
    check(0, 0);
    checkWrong(0, 512);
  }

  @Test
  void arenaThatHasMoreThanIsHeld_isNoticed() {
    held.enterArena(512);
    checkWrong(512, 0);
  }

  @Test
  void booksOfSomeArenasAlone_sayNothing() {
    assertThat(held.reserve(512)).isTrue();
    assertThat(held.assertConsistent(77, () -> 5, () -> false)).isFalse();
  }

  @Test
  void peak_isTheMostThatGrowthsFound() {
    assertThat(held.reserve(600)).isTrue();
    assertThat(held.peak()).isZero();
    held.grown();
    assertThat(held.peak()).isEqualTo(600);
    held.unreserve(500);
    held.grown();
    assertThat(held.peak()).isEqualTo(600);
    held.resetPeak();
    assertThat(held.peak()).isEqualTo(100);
  }

  @Test
  void afterTheEnd_nothingIsHeld_whateverComesIn() {
    assertThat(held.reserve(600)).isTrue();
    held.leaveForGood(100);
    held.end();
    held.enterArena(600);
    assertThat(held.held()).isZero();
    assertThat(held.beingFreed()).isZero();
    assertThatCode(() -> check(77, 5)).doesNotThrowAnyException();
  }

  /** Upstream gets back what was on its way when the books were closed. */
  @Test
  void whatIsFreedAfterTheEnd_isCountedNoMore() {
    assertThat(held.reserve(600)).isTrue();
    held.leaveForGood(100);
    held.end();
    held.freed(100);
    held.leaveForGood(50);
    held.unreserve(500);
    assertThat(held.held()).isZero();
    assertThat(held.beingFreed()).isZero();
    assertThat(held.room()).isEqualTo(1000);
  }

  @Test
  void roomThatIsThere_isNotWaitedFor_whateverIsBeingFreed() throws InterruptedException {
    assertThat(held.reserve(900)).isTrue();
    held.leaveForGood(400);
    Thread asking = Thread.ofPlatform().start(() -> held.awaitRoom(100));
    Await.until(() -> asking.getState() == Thread.State.TIMED_WAITING || !asking.isAlive());
    assertThat(asking.isAlive()).isFalse();
    held.freed(400);
    asking.join();
  }

  @Test
  void room_isWaitedFor_whileMemoryIsBeingFreed() throws InterruptedException {
    assertThat(held.reserve(900)).isTrue();
    held.awaitRoom(100);
    held.awaitRoom(500); // nothing is being freed
    held.leaveForGood(400);
    AtomicReference<Long> seen = new AtomicReference<>();
    Thread waiting =
        Thread.ofPlatform()
            .start(() -> {
              held.awaitRoom(500);
              seen.set(held.room());
            });
    Await.until(() -> waiting.getState() == Thread.State.TIMED_WAITING || !waiting.isAlive());
    held.freed(400);
    waiting.join();
    assertThat(seen).hasValue(500L);
  }

  /** Of what moves, a part may be left over; nothing is being freed yet. */
  @Test
  void memoryThatMoves_isWaitedForFirst() throws Exception {
    assertThat(Tries.oneSucceeds(this::isLookedForAgain)).isTrue();
  }

  /** Whether memory that moves is found at the third look, within half a second. */
  private boolean isLookedForAgain() {
    AtomicInteger looks = new AtomicInteger();
    held.awaitRoom(2000, () -> looks.incrementAndGet() == 3);
    return looks.get() == 3;
  }
}
