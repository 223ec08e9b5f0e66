package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.pending.PendingFrees;
import io.cuvette.internal.streamcache.CachedBlock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** When closed blocks that streams still use come back, and what is counted meanwhile. */
@Timeout(60)
class PendingFreesTest {
  private @Nullable BusyDriver made;
  private final Cuda cuda =
      Cuda.open(CudaOptions.simulated().withDecorator(driver -> made = new BusyDriver(driver)));
  private final BusyDriver driver = Objects.requireNonNull(made);
  private final CudaStream home = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final CudaStream one = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final CudaStream two = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final MemoryPool pool = new MemoryPool(cuda);
  private final List<CachedBlock> given = new CopyOnWriteArrayList<>();
  private final PendingFrees<CachedBlock> pending = new PendingFrees<>(given::add);

  /** Reachable: the collector takes back what is not. */
  private final List<Buffer> buffers = new ArrayList<>();

  @AfterEach
  void close() {
    for (CudaStream stream : List.of(home, one, two)) {
      driver.finish(stream);
    }
    pending.poll();
    cuda.close();
  }

  /** A block that streams use which are busy. */
  private CachedBlock used(CudaStream... by) {
    buffers.add(pool.allocate(1000, home));
    CachedBlock block = (CachedBlock) ((BufferBase) buffers.getLast()).block();
    for (CudaStream stream : by) {
      driver.begin(stream);
      block.use(stream.state);
    }
    return block;
  }

  private void checkPending(int blocks) {
    assertThat(pending.blocks()).isEqualTo(blocks);
    assertThat(pending.bytes()).isEqualTo(blocks * 1024L);
    assertThat(pending.requestedBytes()).isEqualTo(blocks * 1000L);
    assertThat(pending.isEmpty()).isEqualTo(blocks == 0);
  }

  @Test
  void blockOfIdleStreams_isGivenAtOnce() {
    CachedBlock block = used(one);
    driver.finish(one);
    pending.free(block, home.state);
    assertThat(given).containsExactly(block);
    checkPending(0);
  }

  @Test
  void blockWhoseStreamCannotBeAsked_waits_andTheFailureIsTold() {
    CachedBlock block = used(one);
    CudaException failure = new CudaException(CudaStatus.NOT_PERMITTED, "test", "");
    driver.failNextQuery(failure);
    assertThatThrownBy(() -> pending.free(block, home.state)).isSameAs(failure);
    checkPending(1);
    driver.finish(one);
    pending.poll();
    assertThat(given).containsExactly(block);
    checkPending(0);
  }

  @Test
  void blockOfTwoStreams_waitsForBoth_inWhicheverOrderTheyEnd() {
    for (List<CudaStream> order : List.of(List.of(one, two), List.of(two, one))) {
      given.clear();
      CachedBlock block = used(one, two);
      pending.free(block, home.state);
      checkPending(1);
      driver.finish(order.getFirst());
      pending.poll();
      assertThat(given).isEmpty();
      checkPending(1);
      driver.finish(order.getLast());
      pending.poll();
      assertThat(given).containsExactly(block);
      checkPending(0);
      assertThat(driver.liveEvents()).isEqualTo(cuda.device(0).core().spareEvents.count());
    }
  }

  @Test
  void blockUsedByAClosedStreamThatIsBusy_waitsForItsLastWork() {
    CachedBlock block = used(one);
    one.close();
    pending.free(block, home.state);
    pending.poll();
    assertThat(given).isEmpty();
    driver.finish(one);
    pending.poll();
    assertThat(given).containsExactly(block);
  }

  /** Memory that lives long forgets streams that are done, not those that are closed alone. */
  @Test
  void closedStreamThatIsBusy_isNotForgottenAmongManyThatAreDone() {
    CachedBlock block = used(one);
    one.close();
    for (int i = 0; i < 100; i++) {
      CudaStream brief = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      block.use(brief.state);
      brief.close();
    }
    int kept = 0;
    for (var use = block.uses(); use != null; use = use.next()) {
      kept++;
    }
    assertThat(kept).as("what is done is forgotten").isLessThan(40);
    pending.free(block, home.state);
    pending.poll();
    assertThat(given).isEmpty();
    driver.finish(one);
    pending.poll();
    assertThat(given).containsExactly(block);
  }

  /** Its own stream orders what comes after only where the block goes back in order of it. */
  @Test
  void blockOfABusyStreamOfItsOwn_waitsForThatUnlessItIsFreedInOrderOfIt() {
    CachedBlock block = used();
    driver.begin(home);
    pending.free(block, home.state);
    assertThat(given).containsExactly(block);
    CachedBlock other = used();
    pending.free(other, null);
    pending.free(used(), one.state);
    assertThat(given).containsExactly(block);
    checkPending(2);
    driver.finish(home);
    pending.poll();
    checkPending(0);
  }

  @Test
  void await_waitsForEachStream_andGivesAllBack() {
    CachedBlock first = used(one, two);
    CachedBlock second = used(two);
    pending.free(first, home.state);
    pending.free(second, home.state);
    pending.await();
    assertThat(given).containsExactlyInAnyOrder(first, second);
    assertThat(driver.waits()).isEqualTo(2);
    checkPending(0);
  }

  @Test
  void await_waitsForTheLastWorkOfAClosedStream() {
    CachedBlock block = used(one);
    one.close();
    pending.free(block, home.state);
    checkPending(1);
    pending.await();
    assertThat(given).containsExactly(block);
    checkPending(0);
  }

  @Test
  void await_waitsForWhatHasAnEventOfItsOwn() {
    CachedBlock block = used(one);
    pending.free(block, null);
    checkPending(1);
    assertThat(pending.graphBytes()).isZero();
    pending.await();
    assertThat(given).containsExactly(block);
    checkPending(0);
  }

  @Test
  void oneLook_asksAboutSoManyStreamsAtMost_andTheNextAboutOthers() {
    CachedBlock first = used(one);
    CachedBlock second = used(two);
    pending.free(first, home.state);
    pending.free(second, home.state);
    assertThat(pending.poll(1)).isEqualTo(1);
    driver.finish(one);
    driver.finish(two);
    assertThat(pending.poll(1)).isEqualTo(1);
    assertThat(pending.poll(1)).isEqualTo(1);
    assertThat(given).containsExactlyInAnyOrder(first, second);
  }

  /** It is asked about first as late as the other stream is done. */
  @Test
  void blockThatWaitsForOneMoreStream_isLeftToTheNextLook_ifNoMoreIsToBeAsked() {
    CachedBlock block = used(one, two);
    CachedBlock other = used(one);
    pending.free(block, home.state);
    pending.free(other, home.state);
    driver.finish(one);
    driver.finish(two);
    assertThat(pending.poll(1)).isEqualTo(1);
    assertThat(given).doesNotContain(block);
    while (!pending.isEmpty()) {
      assertThat(pending.poll(1)).isEqualTo(1);
    }
    assertThat(given).containsExactlyInAnyOrder(block, other);
  }

  @Test
  void awaitOneByOne_goesOnUntilOneHelps() {
    for (CudaStream of : Arrays.asList(home, null)) {
      given.clear();
      CachedBlock first = used(one);
      CachedBlock second = used(two);
      pending.free(first, of == null ? null : of.state);
      pending.free(second, of == null ? null : of.state);
      assertThat(pending.await(() -> given.contains(second) ? second : null)).isSameAs(second);
      checkPending(0);
      assertThat(pending.await(() -> second)).as("nothing came back").isNull();
    }
  }

  @Test
  void awaitOneByOne_endsWithTheFirstThatHelps() {
    CachedBlock first = used(one);
    CachedBlock second = used(two);
    pending.free(first, home.state);
    pending.free(second, home.state);
    assertThat(pending.await(() -> given.contains(first) ? first : null)).isSameAs(first);
    checkPending(1);
    assertThat(driver.waits()).isEqualTo(1);
    assertThat(this.<CachedBlock>nothingFound()).isNull();
    assertThat(given).containsExactly(first, second);
  }

  @Test
  void whereNothingIsPending_nothingIsSearchedFor() {
    assertThat(
            pending.<CachedBlock>await(() -> {
              throw new AssertionError("nothing came back");
            }))
        .isNull();
  }

  /** What a wait or a question has found since is enough. */
  @Test
  void blockThatIsKnownToBeDone_isGivenWithoutACallOfTheDriver() {
    CachedBlock block = used(one);
    pending.free(block, home.state);
    pending.poll();
    driver.finish(one);
    one.synchronize();
    AtomicBoolean isAsked = new AtomicBoolean();
    driver.atNextQuery(() -> isAsked.set(true));
    pending.pollKnown();
    assertThat(given).containsExactly(block);
    assertThat(isAsked).isFalse();
    checkPending(0);
  }

  /** There the stream is not waited for, which may wait for the callback. */
  @Test
  void waitInsideACallback_endsWithoutWhatIsBusy() throws Exception {
    pending.free(used(one), home.state);
    List<Object> found = new CopyOnWriteArrayList<>();
    two.addCallback(
            () -> {
              pending.await();
              found.add(Optional.ofNullable(this.<CachedBlock>nothingFound()));
            })
        .get(60, TimeUnit.SECONDS);
    assertThat(found).containsExactly(Optional.empty());
    assertThat(given).isEmpty();
    checkPending(1);
  }

  private <T> @Nullable T nothingFound() {
    return pending.await(() -> null);
  }

  /** For a second, which a slow machine can miss. */
  @Test
  void whatAnotherThreadGivesBack_isWaitedFor() throws Exception {
    assertThat(Tries.oneSucceeds(this::isWaitedFor))
        .as("both have waited, and searched after it")
        .isTrue();
  }

  private boolean isWaitedFor() throws InterruptedException {
    CountDownLatch inside = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    AtomicBoolean back = new AtomicBoolean();
    PendingFrees<CachedBlock> slow =
        new PendingFrees<>(_ -> {
          inside.countDown();
          Latches.await(goOn);
          back.set(true);
        });
    slow.free(used(one), home.state);
    driver.finish(one);
    Thread giver = Thread.ofPlatform().start(slow::poll);
    inside.await();
    assertThat(slow.isEmpty()).as("nobody finds it now").isTrue();
    AtomicBoolean all = new AtomicBoolean();
    AtomicBoolean found = new AtomicBoolean();
    Thread waiter =
        Thread.ofPlatform()
            .start(() -> {
              slow.await();
              all.set(back.get());
            });
    Thread searcher =
        Thread.ofPlatform()
            .start(() -> found.set(slow.await(() -> back.get() ? Boolean.TRUE : null) != null));
    for (Thread thread : List.of(waiter, searcher)) {
      Await.until(() -> thread.getState() == Thread.State.TIMED_WAITING || !thread.isAlive());
    }
    goOn.countDown();
    for (Thread thread : List.of(giver, waiter, searcher)) {
      thread.join();
    }
    return all.get() && found.get();
  }

  @Test
  void blockThatWaitsForThreeStreams_comesBackWithOneLook() {
    CachedBlock block = used(one, two, home);
    pending.free(block, one.state);
    checkPending(1);
    for (CudaStream stream : List.of(two, home)) {
      driver.finish(stream);
    }
    pending.poll();
    assertThat(given).containsExactly(block);
    checkPending(0);
  }

  /** What comes from another stream's queue may need less of its stream than what is there. */
  @Test
  void blockThatComesLate_doesNotKeepOthersFromBeingAskedFor() {
    CachedBlock late = used(two, one); // waits for the last first
    pending.free(late, home.state);
    CachedBlock marked = used(two);
    pending.free(marked, home.state);
    pending.poll(); // marks the second stream
    CachedBlock last = used(two);
    pending.free(last, home.state);
    driver.finish(one);
    one.synchronize();
    pending.pollKnown(); // it comes now, and nobody is asked
    driver.finish(two);
    pending.poll();
    assertThat(given).containsExactlyInAnyOrder(marked, last, late);
    checkPending(0);
  }

  /** It counts once: a block that waited for another stream may need more of it. */
  @Test
  void streamThatWasAskedAbout_isAskedAgain_howeverFewMayBe() {
    CachedBlock marked = used(two);
    pending.free(marked, home.state);
    pending.poll(); // marks the second stream
    CachedBlock late = used(two, one); // waits for the last first
    pending.free(late, home.state);
    driver.finish(one);
    driver.finish(two);
    assertThat(pending.poll(2)).isEqualTo(2);
    assertThat(given).containsExactly(marked, late);
    checkPending(0);
  }

  @Test
  void streamThatCannotBeMarked_isReportedToWhoAsks_andTheBlockWaitsAllTheSame() {
    CachedBlock block = used(one);
    pending.free(block, home.state);
    driver.refuse(1);
    assertThatThrownBy(pending::poll).isInstanceOf(CudaException.class);
    checkPending(1);
    driver.failAfter(0, new OutOfMemoryError("none left"));
    assertThatThrownBy(pending::poll).isInstanceOf(OutOfMemoryError.class);
    checkPending(1);
    pending.poll();
    assertThat(given).isEmpty();
    driver.finish(one);
    pending.poll();
    assertThat(given).containsExactly(block);
    assertThat(driver.liveEvents()).isEqualTo(cuda.device(0).core().spareEvents.count());
  }

  @Test
  void eventThatCannotBeRecorded_isReported_andTheBlockWaitsAllTheSame() {
    CachedBlock block = used(one, two);
    driver.refuse(2);
    assertThatThrownBy(() -> pending.free(block, null))
        .isInstanceOf(CudaException.class)
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
    checkPending(1);
    pending.poll();
    assertThat(given).isEmpty();
    driver.finish(one);
    driver.finish(two);
    pending.poll();
    assertThat(given).containsExactly(block);
    assertThat(driver.liveEvents()).isZero();
  }

  @Test
  void withoutHeapForTheSecondEvent_theFirstIsGivenUp_andTheBlockIsLookedAtLater() {
    CachedBlock block = used(one, two);
    driver.failAfter(1, new OutOfMemoryError("none left"));
    pending.free(block, null);
    assertThat(driver.liveEvents()).isZero();
    assertThat(given).isEmpty();
    checkPending(1);
    pending.poll();
    checkPending(1);
    assertThat(driver.liveEvents()).as("it waits for both now").isEqualTo(2);
    driver.finish(one);
    driver.finish(two);
    pending.poll();
    assertThat(given).containsExactly(block);
    checkPending(0);
  }

  /** Each question begins with what there was no heap for. */
  @Test
  void blockThatThereWasNoHeapFor_comesBackWithEveryWait() {
    for (Runnable wait : List.<Runnable>of(pending::await, this::nothingFound)) {
      given.clear();
      CachedBlock block = used(one);
      driver.failAfter(0, new OutOfMemoryError("none left"));
      pending.free(block, null);
      driver.finish(one);
      wait.run();
      assertThat(given).containsExactly(block);
      checkPending(0);
    }
  }

  @Test
  void clear_forgetsAll_andCountsNothing() {
    driver.begin(home);
    pending.free(used(), null);
    checkPending(1);
    pending.clear();
    checkPending(0);
    driver.finish(home);
    pending.free(used(one), home.state);
    driver.failAfter(0, new OutOfMemoryError("none left"));
    pending.free(used(one), home.state);
    checkPending(2);
    pending.clear();
    checkPending(0);
    driver.finish(one);
    pending.poll();
    assertThat(given).isEmpty();
  }

  @Test
  void blockAddedWithoutAStream_comesBackWithTheNextLook() {
    CachedBlock block = used();
    pending.add(block);
    checkPending(1);
    assertThat(given).isEmpty();
    pending.poll();
    assertThat(given).containsExactly(block);
  }
}
