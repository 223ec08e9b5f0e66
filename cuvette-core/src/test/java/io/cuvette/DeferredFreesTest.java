package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.session.DeferredFrees;
import io.cuvette.internal.session.HoldsAndFrees;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Frees that wait for all streams, while a callback holds one of them. */
@Timeout(60)
class DeferredFreesTest {
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(30);

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final DeferredFrees frees = cuda.engine().session().frees();
  private final AtomicInteger calls = new AtomicInteger();
  private final AtomicInteger released = new AtomicInteger();

  @AfterEach
  void close() {
    cuda.close();
  }

  @Test
  void freeThatFindsNoGap_isMadeOnceThereIsOne() {
    frees.beginHold();
    frees.free(calls::incrementAndGet, released::incrementAndGet);
    assertThat(frees.isAnyLeft()).isTrue();
    assertThat(frees.putOff(false, released::incrementAndGet)).as("it waits for none").isFalse();
    assertThat(frees.putOff(true, DeferredFreesTest::fail)).isTrue();
    assertThat(frees.putOff(true, released::incrementAndGet)).isTrue();
    frees.endHold();
    assertThat(frees.freeLeft()).isTrue();
    assertThat(calls).hasValue(0);
    assertThat(released).hasValue(2);
    assertThat(frees.isAnyLeft()).isFalse();
  }

  /** The others are made all the same. */
  private static void fail() {
    throw new IllegalStateException("refused");
  }

  @Test
  void freesThatNoCallbackHoldsUp_areMadeAtOnce_andLeaveNothing() {
    assertThat(frees.areHolding()).isFalse();
    assertThat(frees.mayPutOff()).isFalse();
    assertThat(frees.putOff(true, released::incrementAndGet)).isFalse();
    assertThat(frees.free(calls::incrementAndGet)).isTrue();
    frees.free(calls::incrementAndGet, released::incrementAndGet);
    assertThat(calls).hasValue(2);
    assertThat(frees.isAnyLeft()).isFalse();
    assertThat(frees.freeLeft()).as("there was something").isFalse();
    frees.beginHold();
    assertThat(frees.areHolding()).isTrue();
    assertThat(frees.mayPutOff()).isTrue();
    frees.endHold();
    assertThat(frees.areHolding()).isFalse();
    assertThat(released).hasValue(0);
  }

  /** What only tells that the stream has come so far keeps nothing from being freed. */
  @Test
  void futureOfAStream_holdsNothing_andACallbackDoes() {
    CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    CountDownLatch goOn = new CountDownLatch(1);
    cuda.driver()
        .streams()
        .launchHostFunc(
            0, stream.handle(), () -> Await.until(() -> goOn.getCount() == 0, PATIENCE_NANOS));
    CompletableFuture<Void> complete = stream.onComplete();
    assertThat(frees.areHolding()).isFalse();
    CompletableFuture<Void> called = stream.addCallback(() -> {});
    assertThat(frees.areHolding()).isTrue();
    goOn.countDown();
    complete.join();
    called.join();
    stream.synchronize();
    assertThat(frees.areHolding()).isFalse();
  }

  /** It frees memory for that, which there must be. */
  @Test
  void waitForADevice_tellsWhetherItCouldWait() {
    assertThat(frees.awaitWork(cuda.device(0).core())).isTrue();
    try (Cuda small = Cuda.open(CudaOptions.simulated().withDevice("sim:memory=40MiB"))) {
      long free = small.device(0).memoryInfo().freeBytes();
      Buffer all = MemoryResource.direct().allocate(free, small.currentStream());
      DeferredFrees ofSmall = small.engine().session().frees();
      assertThat(ofSmall.awaitWork(small.device(0).core())).isFalse();
      all.close();
      assertThat(ofSmall.awaitWork(small.device(0).core())).isTrue();
    }
  }

  @Test
  void whoAsksForAGap_waitsForTheCallbackThatHolds() throws InterruptedException {
    HoldsAndFrees holds = new HoldsAndFrees();
    holds.beginHold(true, PATIENCE_NANOS);
    AtomicBoolean hasGap = new AtomicBoolean();
    Thread asking = Thread.ofPlatform().start(() -> hasGap.set(holds.hasGapWithin(PATIENCE_NANOS)));
    Await.until(() -> asking.getState() == Thread.State.TIMED_WAITING || !asking.isAlive());
    holds.endHold();
    asking.join();
    assertThat(hasGap).isTrue();
  }

  @Test
  void interruptOfAThreadThatWaitsForAGap_staysWithIt() {
    HoldsAndFrees holds = new HoldsAndFrees();
    holds.beginHold(true, PATIENCE_NANOS);
    Thread.currentThread().interrupt();
    assertThat(holds.hasGapWithin(TimeUnit.MILLISECONDS.toNanos(10))).isFalse();
    assertThat(Thread.interrupted()).isTrue();
    holds.endHold();
  }

  @Test
  void freeThatFindsNoGap_isMadeByAWaitForTheDevice() {
    frees.beginHold();
    frees.free(calls::incrementAndGet, released::incrementAndGet);
    frees.endHold();
    cuda.device(0).synchronize();
    assertThat(released).hasValue(1);
  }

  @Test
  void memoryWhoseFreeFoundNoGap_isFreedForWhoNeedsIt() {
    long most = 32 << 20;
    try (Cuda small = Cuda.open(CudaOptions.simulated().withDevice("sim:memory=40MiB"))) {
      Buffer all = MemoryResource.direct().allocate(most, small.currentStream());
      DeferredFrees ofSmall = small.engine().session().frees();
      ofSmall.beginHold();
      ofSmall.free(calls::incrementAndGet, all::close);
      ofSmall.endHold();
      MemoryResource.direct().allocate(most, small.currentStream()).close();
      assertThat(all.isClosed()).isTrue();
    }
  }

  @Test
  void memoryWhoseFreeFoundNoGap_isFreedForABufferThatGrows() {
    long most = 32 << 20;
    try (Cuda small = Cuda.open(CudaOptions.simulated().withDevice("sim:memory=40MiB"));
        GrowableBuffer growable = small.device(0).growable(most)) {
      Buffer all = MemoryResource.direct().allocate(most, small.currentStream());
      DeferredFrees ofSmall = small.engine().session().frees();
      ofSmall.beginHold();
      ofSmall.free(calls::incrementAndGet, all::close);
      ofSmall.endHold();
      growable.grow(most);
      assertThat(all.isClosed()).isTrue();
    }
  }

  /** Neither the driver nor whoever is upstream is called there. */
  @Test
  void memoryThatPoolsRelease_isHeldUntilTheCallbackHasReturned() {
    List<Long> inside = new CopyOnWriteArrayList<>();
    try (MemoryPool pool = new MemoryPool(cuda);
        PinnedMemoryPool pinned = new PinnedMemoryPool(cuda);
        CudaStream stream = cuda.device(0).createStream()) {
      pool.allocate(4096, stream).close();
      pinned.allocate(4096).close();
      long ofPinned = pinned.totalBytes();
      var _ =
          stream.addCallback(() -> {
            inside.add(pool.freeAllBlocks());
            inside.add(pool.totalBytes());
            inside.add(pinned.freeAllBlocks());
            inside.add(pinned.totalBytes());
          });
      stream.synchronize();
      boolean isFreed =
          Await.until(() -> pool.totalBytes() + pinned.totalBytes() == 0, PATIENCE_NANOS);
      assertThat(isFreed).isTrue();
      assertThat(inside).containsExactly(4096L, 4096L, ofPinned, ofPinned);
    }
  }

  /** Else it would be made when its patience is over, or the callbacks' next gap comes. */
  @Test
  void freeThatWaits_isMadeWhenTheLastCallbackEnds() throws InterruptedException {
    HoldsAndFrees holds = new HoldsAndFrees();
    long nanos = TimeUnit.HOURS.toNanos(1);
    holds.beginHold(true, nanos);
    Thread freeing =
        Thread.ofPlatform()
            .daemon()
            .start(() -> {
              boolean _ = holds.free(calls::incrementAndGet, nanos);
            });
    Await.until(() -> freeing.getState() == Thread.State.TIMED_WAITING);
    assertThat(calls).hasValue(0);
    holds.endHold();
    assertThat(freeing.join(Duration.ofSeconds(40))).isTrue();
    assertThat(calls).hasValue(1);
  }

  /** For a while, else callbacks that begin all the time would leave it no gap. */
  @Test
  void callbackThatBegins_waitsForAFreeThatWaits() throws Exception {
    assertThat(Tries.oneSucceeds(() -> isFreeFirst(new HoldsAndFrees()))).isTrue();
  }

  private static boolean isFreeFirst(HoldsAndFrees holds) throws InterruptedException {
    long nanos = TimeUnit.HOURS.toNanos(1);
    AtomicBoolean isFree = new AtomicBoolean();
    AtomicBoolean isFirst = new AtomicBoolean();
    holds.beginHold(true, nanos);
    Thread freeing =
        Thread.ofPlatform()
            .start(() -> {
              boolean _ = holds.free(() -> isFree.set(true), nanos);
            });
    Await.until(() -> freeing.getState() == Thread.State.TIMED_WAITING);
    Thread beginning =
        Thread.ofPlatform()
            .start(() -> {
              holds.beginHold(false, nanos);
              isFirst.set(isFree.get());
              holds.endHold();
            });
    Await.until(() -> !beginning.isAlive() || beginning.getState() == Thread.State.TIMED_WAITING);
    holds.endHold();
    freeing.join();
    beginning.join();
    return isFirst.get();
  }

  /** Who ends the Cuda frees what is left, and nobody else does that again. */
  @Test
  void freesThatAreForgotten_areNotMade() throws Exception {
    frees.beginHold();
    cuda.device(0)
        .createStream()
        .addCallback(() -> assertThat(frees.putOff(true, released::incrementAndGet)).isTrue())
        .get(PATIENCE_NANOS, TimeUnit.NANOSECONDS);
    assertThat(Await.until(frees::isAnyLeft, PATIENCE_NANOS)).isTrue();
    frees.clear();
    assertThat(frees.isAnyLeft()).isFalse();
    frees.endHold();
    assertThat(frees.freeLeft()).isFalse();
    assertThat(released).hasValue(0);
  }

  @Test
  void freeThatIsPutOffInACallback_isMadeOnceNoOtherHoldsAStream() throws Exception {
    frees.beginHold();
    cuda.device(0)
        .createStream()
        .addCallback(() -> assertThat(frees.putOff(true, released::incrementAndGet)).isTrue())
        .get(PATIENCE_NANOS, TimeUnit.NANOSECONDS);
    assertThat(Await.until(frees::isAnyLeft, PATIENCE_NANOS)).isTrue();
    assertThat(released).hasValue(0);
    frees.endHold();
    boolean _ = frees.freeLeft(); // or another thread does
    assertThat(Await.until(() -> released.get() == 1, PATIENCE_NANOS)).isTrue();
  }

  /**
   * Else callbacks that add others, of which none takes long, would be waited for again each time.
   */
  @Test
  void callbacksThatLeaveNoGap_areWaitedForSinceTheFirst() throws Exception {
    HoldsAndFrees holds = new HoldsAndFrees();
    long nanos = TimeUnit.MILLISECONDS.toNanos(50);
    holds.beginHold(true, nanos);
    assertThat(holds.hasGapWithin(nanos)).isFalse();
    holds.beginHold(true, nanos);
    holds.endHold();
    AtomicBoolean isOver = new AtomicBoolean();
    Thread asking = Thread.currentThread();
    Thread ending =
        Thread.ofPlatform()
            .start(() -> {
              Await.until(() -> isOver.get() || asking.getState() == Thread.State.TIMED_WAITING);
              holds.endHold(); // a gap, for who waits again
            });
    boolean hasGap = holds.hasGapWithin(nanos);
    isOver.set(true);
    ending.join();
    assertThat(hasGap).isFalse();
    assertThat(holds.hasGapWithin(nanos)).isTrue();
  }

  /** What is about no stream is released as the callback returns, whoever else holds one. */
  @Test
  void releaseThatWaitsForNoCallback_isMadeAsItsOwnReturns_andTheOtherLater() throws Exception {
    frees.beginHold();
    List<Boolean> inside = new CopyOnWriteArrayList<>();
    cuda.device(0)
        .createStream()
        .addCallback(() -> {
          inside.add(cuda.session().isInsideCallback());
          inside.add(frees.mayPutOff());
          inside.add(frees.putOff(false, released::incrementAndGet));
          inside.add(frees.putOff(true, calls::incrementAndGet));
        })
        .get(PATIENCE_NANOS, TimeUnit.NANOSECONDS);
    assertThat(inside).containsExactly(true, true, true, true);
    assertThat(cuda.session().isInsideCallback()).isFalse();
    assertThat(Await.until(frees::isAnyLeft, PATIENCE_NANOS)).isTrue();
    assertThat(Await.until(() -> released.get() == 1, PATIENCE_NANOS)).isTrue();
    frees.freeLeftInGap();
    assertThat(frees.freeLeft()).as("made without a gap").isFalse();
    assertThat(calls).hasValue(0);
    frees.endHold();
    frees.freeLeftInGap();
    assertThat(frees.isAnyLeft()).isFalse();
    boolean _ = Await.until(() -> calls.get() > 0, PATIENCE_NANOS); // another thread may have it
    assertThat(calls).hasValue(1);
    assertThat(released).hasValue(1);
  }
}
