package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.lifetime.Collector;
import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.lifetime.LeakTracker;
import io.cuvette.internal.lifetime.Reclaim;
import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a collection for want of memory finds. */
class ReclaimTest {
  private static final int OBJECTS = 200;
  private static final int REFERENCES = 100_000;

  private static final class Forgotten extends Ending {
    Forgotten(Object of, LeakTracker leaks) {
      super(of, leaks.queue, null);
    }

    @Override
    public String describe() {
      return "object";
    }

    @Override
    public void release() {}
  }

  /** The collector hands over one after the other: the first that is there is not all. */
  @Test
  void oneCollection_findsAllThatWasForgotten() {
    LeakTracker leaks = new LeakTracker(LeakLevel.COUNT, _ -> {}, () -> {});
    List<Forgotten> lifetimes = new ArrayList<>();
    for (int i = 0; i < OBJECTS; i++) {
      lifetimes.add(new Forgotten(new Object(), leaks));
    }
    boolean found =
        new Reclaim(leaks)
                .search(
                    () -> lifetimes.stream().anyMatch(one -> one.refersTo(null) && !one.ended()),
                    () -> leaks.found() == OBJECTS ? Boolean.TRUE : null)
            != null;
    assertThat(found).isTrue();
    assertThat(leaks.found()).isEqualTo(OBJECTS);
    assertThat(lifetimes).allMatch(Ending::ended);
  }

  /** Memory that is known to come is waited for; here it comes in the second pause. */
  @Test
  void memoryThatIsKnownToCome_isWaitedFor() {
    AtomicInteger looks = new AtomicInteger();
    Object found =
        new Reclaim(tracker()).search(() -> true, () -> looks.incrementAndGet() > 2 ? looks : null);
    assertThat(found).isSameAs(looks);
  }

  /** It will be there to be allocated, whoever takes it back. */
  @Test
  @Timeout(60)
  void memoryThatAnotherThreadTakesBack_isWaitedFor() {
    LeakTracker leaks = tracker();
    AtomicBoolean isInside = new AtomicBoolean();
    AtomicBoolean mayEnd = new AtomicBoolean();
    Ending slow =
        new Ending(new Object(), leaks.queue, null) {
          @Override
          public String describe() {
            return "slow";
          }

          @Override
          public void release() {
            isInside.set(true);
            Await.until(mayEnd::get);
          }
        };
    Thread taking = Thread.ofPlatform().daemon().start(() -> leaks.found(slow));
    Await.until(isInside::get);
    assertThat(leaks.isTakingBack()).isTrue();
    Collector.PROCESS.helped(); // no rest
    AtomicInteger looks = new AtomicInteger();
    try {
      Object found =
          new Reclaim(leaks).search(() -> false, () -> looks.incrementAndGet() > 10 ? looks : null);
      assertThat(found).as("after some of ten pauses").isSameAs(looks);
    } finally {
      mayEnd.set(true);
    }
    Await.until(() -> !taking.isAlive());
    assertThat(leaks.isTakingBack()).isFalse();
    assertThat(slow.ended()).isTrue();
  }

  /** The pauses double from one to 512 milliseconds; here somebody cuts each of them short. */
  @Test
  @Timeout(60)
  void memoryThatDoesNotCome_isGivenUp_afterTenPauses() throws InterruptedException {
    AtomicInteger looks = new AtomicInteger();
    AtomicReference<Object> found = new AtomicReference<>(looks);
    AtomicBoolean isOver = new AtomicBoolean();
    Thread searching =
        Thread.ofPlatform()
            .unstarted(() -> {
              found.set(new Reclaim(tracker()).search(() -> true, () -> look(looks)));
              isOver.set(true);
            });
    searching.start();
    while (searching.isAlive()) {
      LockSupport.unpark(searching);
      Thread.onSpinWait();
    }
    assertThat(isOver).isTrue();
    assertThat(found).hasValue(null);
    // Once for each collection, and once after each of ten pauses.
    assertThat(looks.get() % 11).as("%d looks", looks.get()).isZero();
  }

  @Test
  void whereNothingIsKnownToCome_nobodyPauses() {
    Collector.PROCESS.helped(); // no rest
    AtomicInteger looks = new AtomicInteger();
    Object found = new Reclaim(tracker()).search(() -> false, () -> look(looks));
    assertThat(found).isNull();
    assertThat(looks.get()).as("once for each collection that was joined").isBetween(1, 9);
  }

  /** More are for those who joined one that had begun before: in one of some rounds nobody did. */
  @Test
  void collectionThatEnded_isFollowedByOneLook() {
    int fewest = Integer.MAX_VALUE;
    for (int round = 0; round < 5 && fewest > 1; round++) {
      Collector.PROCESS.helped(); // no rest
      AtomicInteger looks = new AtomicInteger();
      Object found = new Reclaim(tracker()).search(() -> false, () -> look(looks));
      assertThat(found).isNull();
      fewest = Math.min(fewest, looks.get());
    }
    assertThat(fewest).isEqualTo(1);
  }

  private static @Nullable Object look(AtomicInteger looks) {
    assertThat(looks.incrementAndGet()).isLessThan(1000);
    return null;
  }

  @Test
  void interruptOfAWaitingThread_staysWithIt() {
    AtomicInteger looks = new AtomicInteger();
    Thread.currentThread().interrupt();
    Object found =
        new Reclaim(tracker())
            .search(() -> true, () -> looks.incrementAndGet() == 4 ? looks : null);
    assertThat(Thread.interrupted()).isTrue();
    assertThat(found).isSameAs(looks);
  }

  /** Else it would look ten times at once, and give up. */
  @Test
  @Timeout(60)
  void interruptedThread_pausesAllTheSame() throws Exception {
    assertThat(Tries.oneSucceeds(ReclaimTest::pausesAlthoughInterrupted)).isTrue();
  }

  /** Whether a thread is seen in one of its pauses, which take a second together. */
  private static boolean pausesAlthoughInterrupted() {
    AtomicInteger looks = new AtomicInteger();
    AtomicBoolean hasPaused = new AtomicBoolean();
    AtomicReference<Object> found = new AtomicReference<>();
    Thread searching =
        Thread.ofPlatform()
            .unstarted(() -> {
              Thread.currentThread().interrupt();
              found.set(
                  new Reclaim(tracker())
                      .search(
                          () -> true,
                          () -> looks.incrementAndGet() > 0 && hasPaused.get() ? looks : null));
            });
    searching.start();
    while (searching.isAlive()) {
      if (looks.get() > 0 && searching.getState() == Thread.State.TIMED_WAITING) {
        hasPaused.set(true);
      }
      Thread.onSpinWait();
    }
    return found.get() == looks;
  }

  @Test
  void collectionThatAThreadBegan_hasEnded_whenItGoesOn() {
    Collector.PROCESS.helped(); // no rest
    long before = Collector.PROCESS.begun();
    Collector.PROCESS.collectOrJoin();
    assertThat(Collector.PROCESS.begun()).isEqualTo(before + 1);
    assertThat(Collector.PROCESS.hasEndedSince(before)).isTrue();
  }

  /** The collection is waited for, which an interrupt ends; here it comes before that. */
  @Test
  void interruptOfTheCollectingThread_staysWithIt() {
    for (int round = 0; round < 4; round++) {
      List<Reference<Object>> many = cleared();
      Collector.PROCESS.helped(); // no rest
      long before = Collector.PROCESS.begun();
      Thread.currentThread().interrupt();
      Collector.PROCESS.collectOrJoin();
      assertThat(Thread.interrupted()).isTrue();
      assertThat(Collector.PROCESS.begun()).isEqualTo(before + 1);
      assertThat(many).hasSize(REFERENCES);
    }
  }

  /** What is handed over one after the other, before what the collector waits for. */
  private static List<Reference<Object>> cleared() {
    ReferenceQueue<Object> queue = new ReferenceQueue<>();
    List<Reference<Object>> many = new ArrayList<>(REFERENCES);
    for (int i = 0; i < REFERENCES; i++) {
      many.add(new PhantomReference<>(new Object(), queue));
    }
    return many;
  }

  @Test
  void withoutLeakTracking_nothingIsCollected() {
    long before = Collector.PROCESS.begun();
    LeakTracker off = new LeakTracker(LeakLevel.OFF, _ -> {}, () -> {});
    assertThat(new Reclaim(off).search(() -> true, () -> off)).isSameAs(off);
    assertThat(this.<Object>searchForNothing(new Reclaim(off))).isNull();
    assertThat(Collector.PROCESS.begun()).isEqualTo(before);
  }

  private <T> @Nullable T searchForNothing(Reclaim reclaim) {
    return reclaim.search(() -> false, () -> null);
  }

  /** Else the next thread that is short of memory would wait as long as this collection took. */
  @Test
  void collectionThatHelped_isFollowedByNoRest() {
    Collector collector = Collector.PROCESS;
    for (int i = 0; i < 5; i++) {
      LeakTracker leaks = tracker();
      Forgotten forgotten = new Forgotten(new Object(), leaks);
      Object found =
          new Reclaim(leaks)
              .search(
                  () -> forgotten.refersTo(null) && !forgotten.ended(),
                  () -> forgotten.ended() ? forgotten : null);
      assertThat(found).isSameAs(forgotten);
      long before = collector.begun();
      collector.collectOrJoin();
      assertThat(collector.begun()).isEqualTo(before + 1);
      collector.helped();
    }
  }

  /** Threads that fail one after the other share it, as they do who fail at once. */
  @Test
  void collectionSinceMemoryWasMissing_isEnough() {
    Collector collector = Collector.PROCESS;
    Reclaim first = new Reclaim(tracker());
    Reclaim second = new Reclaim(tracker());
    assertThat(this.<Object>searchForNothing(first)).isNull();
    long before = collector.begun();
    assertThat(this.<Object>searchForNothing(second)).isNull();
    assertThat(collector.begun()).isEqualTo(before);
    assertThat(this.<Object>searchForNothing(new Reclaim(tracker()))).isNull();
    assertThat(collector.begun()).isEqualTo(before + 1);
  }

  /** What it found went to another thread, which is a reason to look for more. */
  @Test
  void collectionThatFoundSomethingForAnother_isNotEnough() {
    Collector collector = Collector.PROCESS;
    LeakTracker leaks = tracker();
    Forgotten forgotten = new Forgotten(new Object(), leaks);
    Reclaim second = new Reclaim(leaks);
    Object first =
        new Reclaim(leaks)
            .search(
                () -> forgotten.refersTo(null) && !forgotten.ended(),
                () -> forgotten.ended() ? forgotten : null);
    assertThat(first).isSameAs(forgotten);
    long before = collector.begun();
    assertThat(this.<Object>searchForNothing(second)).isNull();
    assertThat(collector.begun()).isEqualTo(before + 1);
  }

  /** Others take what is found, again and again: there is an end to that. */
  @Test
  @Timeout(600)
  void searchThatFindsForOthersAlone_endsAfter64Collections() {
    LeakTracker leaks = tracker();
    Queue<Forgotten> lifetimes = new ConcurrentLinkedQueue<>();
    lifetimes.add(new Forgotten(new Object(), leaks));
    long before = Collector.PROCESS.begun();
    Object found =
        new Reclaim(leaks)
            .search(
                () -> lifetimes.stream().anyMatch(one -> one.refersTo(null) && !one.ended()),
                () -> {
                  assertThat(Collector.PROCESS.begun()).isLessThan(before + 100);
                  lifetimes.removeIf(Ending::ended);
                  lifetimes.add(new Forgotten(new Object(), leaks));
                  Collector.PROCESS.helped(); // no rest
                  return null;
                });
    assertThat(found).isNull();
    assertThat(Collector.PROCESS.begun()).isEqualTo(before + 64);
  }

  private static LeakTracker tracker() {
    return new LeakTracker(LeakLevel.COUNT, _ -> {}, () -> {});
  }

  /** What comes one by one is worth more looks than what is only known to come. */
  @Test
  void memoryThatComesOneByOne_isTakenWithoutAPause_howeverMuchItIs() {
    LeakTracker leaks = tracker();
    List<Forgotten> coming = new ArrayList<>();
    long begun = Collector.PROCESS.begun();
    AtomicInteger looks = new AtomicInteger();
    Object found =
        new Reclaim(leaks)
            .search(
                () -> looks.get() == 1,
                () -> {
                  Forgotten next = new Forgotten(new Object(), leaks);
                  coming.add(next);
                  assertThat(next.enqueue()).isTrue();
                  return looks.incrementAndGet() < 40 ? null : looks;
                });
    assertThat(found).isSameAs(looks);
    assertThat(looks).hasValue(40);
    assertThat(Collector.PROCESS.begun() - begun).as("it is not given up in between").isLessThan(3);
    assertThat(coming.subList(0, 39)).allMatch(Ending::ended);
    assertThat(leaks.found()).isGreaterThanOrEqualTo(38);
  }

  @Test
  void threadThatPauses_isInterruptedOnlyIfItWasBefore() {
    for (boolean isInterrupted : new boolean[] {false, true}) {
      AtomicInteger looks = new AtomicInteger();
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
      Object found =
          new Reclaim(tracker())
              .search(() -> true, () -> looks.incrementAndGet() == 3 ? looks : null);
      assertThat(Thread.interrupted()).isEqualTo(isInterrupted);
      assertThat(found).isSameAs(looks);
    }
  }
}
