package io.cuvette.instrument.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.StreamHandle;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import io.cuvette.instrument.internal.sanitizer.SanitizerCore;
import io.cuvette.instrument.internal.sanitizer.SanitizerStreams;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

class HappensBeforeTest {
  private static final Range RANGE = new Range(64, 64, Access.Kind.WRITE, false);

  private final HappensBefore order = new HappensBefore();
  private final Lane lane = order.create(0, "a stream", false);
  private final Lane other = order.create(0, "another", false);

  /** An event may still know the one that was destroyed. */
  @Test
  void streamInThePlaceOfOneThatIsGone_isNotTakenForThatOne() {
    long work = lane.next();
    Clock old = lane.known().copy();
    order.destroy(lane);
    order.finish(old);
    assertThat(lane.isRetired()).isTrue();
    Lane next = order.create(0, "the next one", false);
    assertThat(next.place.index()).isEqualTo(lane.place.index());
    assertThat(next.isFinished()).isTrue();
    long first = next.next();
    other.seen.merge(old);
    order.finish(old);
    assertThat(other.seen.covers(next, first)).isFalse();
    assertThat(next.isFinished(first)).isFalse();
    assertThat(lane.isFinished(work)).isTrue();
  }

  /** What a program has queued to a stream that it destroys meanwhile is nobody else's. */
  @Test
  void streamThatIsGone_queuesNothingInItsPlace() {
    order.destroy(lane);
    Lane next = order.create(0, "the next one", false);
    long _ = lane.next();
    other.seen.merge(lane.known());
    assertThat(next.place.index()).isEqualTo(lane.place.index());
    assertThat(other.seen.covers(next, next.next())).isFalse();
  }

  @Test
  void thousandShortStreams_haveOnePlace() {
    for (int i = 0; i < 1_000; i++) {
      Lane brief = order.create(0, "a short one", true);
      long _ = brief.next();
      other.seen.merge(brief.known());
      order.destroy(brief);
      order.finish(brief.known());
    }
    assertThat(order.create(0, "the last one", true).place.index()).isEqualTo(3);
  }

  /** A program may make streams, and destroy them, for ever. */
  @Test
  void destroyedStream_isForgotten_onceItsWorkIsFinished() {
    long work = lane.next();
    other.seen.merge(lane.known());
    order.destroy(lane);
    assertThat(lane.isRetired()).isFalse();
    assertThat(other.seen.covers(lane, work)).isTrue();
    order.finish(lane.known());
    assertThat(lane.isRetired()).isTrue();
    assertThat(lane.isFinished(work)).isTrue();
  }

  @Test
  void streamsThatWereDestroyedWhenTheirWorkWasDone_areKeptByNothing() {
    List<WeakReference<Lane>> gone = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      gone.add(endedStream());
    }
    for (int i = 0; i < 10 && gone.stream().anyMatch(each -> each.get() != null); i++) {
      System.gc();
    }
    assertThat(gone).allMatch(each -> each.get() == null);
  }

  private WeakReference<Lane> endedStream() {
    Lane ended = order.create(0, "a short one", true);
    long _ = ended.next();
    other.seen.merge(ended.known());
    order.turn(order.standard(0, 0)).take(); // which knows of all
    order.finish(ended.known());
    order.destroy(ended);
    return new WeakReference<>(ended);
  }

  /** A program may never wait for them; what the host holds up is not over. */
  @Test
  void streamsThatNobodyWaitsFor_areForgotten_onceManyWereDestroyedSince() {
    order.gate(other, () -> true);
    long _ = other.next();
    order.destroy(other);
    Lane first = createdAndDestroyed();
    for (int i = 0; i < 1023; i++) {
      assertThat(first.isRetired()).isFalse();
      Lane _ = createdAndDestroyed();
    }
    assertThat(first.isRetired()).isTrue();
    assertThat(other.isRetired()).isFalse();
  }

  private Lane createdAndDestroyed() {
    Lane made = order.create(0, "a short one", false);
    long _ = made.next();
    order.destroy(made);
    return made;
  }

  @Test
  void liveStream_isKept_thoughItsWorkIsFinished() {
    long work = lane.next();
    order.finish(lane.known());
    assertThat(lane.isRetired()).isFalse();
    assertThat(lane.isFinished(work)).isTrue();
    assertThat(lane.isFinished(lane.next())).isFalse();
  }

  /** The call that destroys it, and not the order alone. */
  @Test
  void streamThatAProgramDestroyed_isForgotten() {
    try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      SanitizerCore core = new SanitizerCore(_ -> {});
      SanitizerStreams streams = new SanitizerStreams(driver, core);
      long handle = streams.streamCreateWithPriority(0, 1, 0);
      CallTrace here = CallTrace.passing("use");
      Lane made = Objects.requireNonNull(core.streams.lane(0, handle, here, new Findings()));
      streams.streamDestroy(0, handle);
      assertThat(made.isRetired()).isTrue();
    }
  }

  /** The gate is behind the work that is done, and what comes next is behind the gate. */
  @Test
  void gateBehindWorkThatIsDone_isClosedUntilWorkBehindItIsDone() {
    long _ = lane.next();
    Clock before = lane.known().copy();
    order.gate(lane, () -> true);
    order.finish(before);
    long _ = lane.next();
    assertThat(order.closedBefore(lane)).hasSize(1);
    assertThat(order.closedBefore(other)).isEmpty();
    other.seen.merge(lane.known());
    assertThat(order.closedBefore(other)).hasSize(1);
    order.finish(lane.known());
    assertThat(order.closedBefore(lane)).isEmpty();
  }

  /** What is behind the first of two gates waits for that one alone. */
  @Test
  void streamBehindTheFirstOfTwoGates_isNotBehindTheSecond() {
    AtomicBoolean first = new AtomicBoolean(true);
    order.gate(lane, first::get);
    long _ = lane.next();
    other.seen.merge(lane.known());
    order.gate(lane, () -> true);
    long second = lane.seen.last(lane);
    assertThat(lane.next()).as("behind the second").isGreaterThan(second);
    List<BooleanSupplier> closed = order.closedBefore(other);
    assertThat(closed).singleElement().matches(BooleanSupplier::getAsBoolean);
    first.set(false);
    assertThat(closed).singleElement().matches(gate -> !gate.getAsBoolean());
    assertThat(order.closedBefore(other)).isEmpty();
    assertThat(order.closedBefore(lane)).hasSize(1);
  }

  /** Its work is done, and what it waits for is not. */
  @Test
  void defaultStream_isBehindWhatABlockingStreamWaitedForThatIsGone() {
    Lane blocking = order.create(0, "a blocking stream", true);
    Lane standard = order.standard(0, 0);
    Access use = new Access(lane, lane.next(), RANGE, CallTrace.passing("use"));
    blocking.seen.merge(lane.known());
    order.destroy(blocking);
    assertThat(blocking.isRetired()).isTrue();
    assertThat(order.isBeforeNext(use, standard)).isTrue();
    assertThat(order.isBeforeNext(use, order.create(0, "another blocking one", true))).isFalse();
    order.turn(standard).take();
    assertThat(order.isBefore(use, standard)).isTrue();
    assertThat(order.isBefore(use, other)).isFalse();
  }

  @Test
  void defaultStream_isNotBehindWhatANonBlockingStreamWaitedForThatIsGone() {
    Lane standard = order.standard(0, 0);
    Access use = new Access(lane, lane.next(), RANGE, CallTrace.passing("use"));
    Lane brief = order.create(0, "a stream that does not block", false);
    brief.seen.merge(lane.known());
    order.destroy(brief);
    assertThat(brief.isRetired()).isTrue();
    assertThat(order.isBeforeNext(use, standard)).isFalse();
    order.turn(standard).take();
    assertThat(order.isBefore(use, standard)).isFalse();
  }

  @Test
  void gatesThatAreOpen_areForgotten_onceAnythingIsDone() {
    order.gate(lane, () -> false);
    order.gate(other, () -> true);
    order.finish(new Clock());
    assertThat(order.hasGates()).isTrue();
    order.finish(other.known());
    assertThat(order.hasGates()).isFalse();
  }

  @Test
  void everything_isOfAllDevices_andThatOfADeviceOfItAlone() {
    Lane second = order.create(1, "a stream of the second device", false);
    long work = second.next();
    long first = lane.next();
    assertThat(order.everything().covers(second, work)).isTrue();
    assertThat(order.everything().covers(lane, first)).isTrue();
    assertThat(order.everythingOn(0).covers(second, work)).isFalse();
    assertThat(order.everythingOn(1).covers(second, work)).isTrue();
    assertThat(order.everythingOn(1).covers(lane, first)).isFalse();
  }

  @Test
  void whatTheHostDoes_isOverOnceItIsNoted() {
    assertThat(order.host.isFinished(order.host.next())).isTrue();
  }

  /** What a stream came behind long ago is known, also where newer work was learned since. */
  @Test
  void streamThatFollowsTheDefaultStreams_inTurn_keepsWhatEachHadSeen() {
    Lane blocking = order.create(0, "a blocking stream", true);
    Lane standard = order.standard(0, 0);
    long early = lane.next();
    standard.seen.merge(lane.known());
    order.turn(standard).take();
    long _ = standard.next();
    order.turn(blocking).take();
    assertThat(blocking.seen.covers(lane, early)).isTrue();
    long late = other.next();
    standard.seen.merge(other.known());
    long last = standard.next();
    order.turn(blocking).take();
    assertThat(blocking.seen.covers(lane, early)).isTrue();
    assertThat(blocking.seen.covers(other, late)).isTrue();
    assertThat(blocking.seen.covers(standard, last)).isTrue();
  }

  /** Between the question and the answer of the driver others queue work, and wait for it. */
  @Test
  void workThatIsQueuedDuringACall_isNotBehindIt_norDoneWithIt() {
    Lane blocking = order.create(0, "a blocking stream", true);
    Lane standard = order.standard(0, 0);
    long before = standard.next();
    Turn turn = order.turn(blocking);
    Clock _ = standard.known();
    long meanwhile = standard.next();
    assertThat(blocking.seen.covers(standard, before)).isFalse();
    turn.take();
    order.finish(blocking.known());
    assertThat(standard.isFinished(before)).isTrue();
    assertThat(standard.isFinished(meanwhile)).isFalse();
  }

  /** What the other one queues meanwhile is for the next turn. */
  @Test
  void workThatIsQueuedDuringATurnOfTheDefaultStream_isBeforeTheNextTurn() {
    Lane blocking = order.create(0, "a blocking stream", true);
    Lane standard = order.standard(0, 0);
    long before = blocking.next();
    Turn turn = order.turn(standard);
    long meanwhile = blocking.next();
    turn.take();
    assertThat(standard.seen.covers(blocking, before)).isTrue();
    assertThat(standard.seen.covers(blocking, meanwhile)).isFalse();
    order.turn(standard).take();
    assertThat(standard.seen.covers(blocking, meanwhile)).isTrue();
  }

  @Test
  void turns_takenInAnotherOrder_loseNothing() {
    Lane blocking = order.create(0, "a blocking stream", true);
    Lane standard = order.standard(0, 0);
    long _ = standard.next();
    Turn first = order.turn(blocking);
    long last = standard.next();
    order.turn(blocking).take();
    first.take();
    assertThat(blocking.seen.covers(standard, last)).isTrue();

    long work = blocking.next();
    Turn early = order.turn(standard);
    Clock _ = blocking.known();
    long later = blocking.next();
    order.turn(standard).take();
    early.take();
    assertThat(standard.seen.covers(blocking, work)).isTrue();
    assertThat(standard.seen.covers(blocking, later)).isTrue();
  }

  @Test
  void nextWorkOfADefaultStream_comesBehindWhatBlockingStreamsOfItsDeviceKnow() {
    Lane standard = order.standard(1, 0);
    Lane blocking = order.create(1, "a blocking stream of the second device", true);
    Access write = new Access(lane, lane.next(), RANGE, CallTrace.passing("write"));
    blocking.seen.merge(lane.known());
    assertThat(order.isBeforeNext(write, standard)).isTrue();
    assertThat(order.isBeforeNext(write, order.standard(0, 0))).isFalse();
  }

  /** They wait for the default stream of their own device alone. */
  @Test
  void launchOnASecondDevice_isNotBehindTheDefaultStreamOfTheFirst() {
    Lane first = order.standard(0, 0);
    Lane second = order.create(1, "a blocking stream of the second device", true);
    Access write = new Access(first, first.next(), RANGE, CallTrace.passing("write"));
    assertThat(order.isBeforeNext(write, order.ahead(second))).isFalse();
    assertThat(order.isBeforeNext(write, order.ahead(lane))).isFalse();
    Lane blocking = order.create(0, "a blocking stream of the first device", true);
    assertThat(order.isBeforeNext(write, order.ahead(blocking))).isTrue();
  }

  /** A stream of the same name is another one there. */
  @Test
  void whatAThreadKnowsOfItsStream_saysNothingAboutThatOfAnother() throws Exception {
    Lane mine = order.standard(0, StreamHandle.PER_THREAD);
    assertThat(order.standard(0, StreamHandle.PER_THREAD)).isSameAs(mine);
    long work = mine.next();
    AtomicReference<Lane> others = new AtomicReference<>();
    Thread thread = Thread.ofPlatform().start(() -> others.set(ofThisThread()));
    thread.join();
    assertThat(mine.isFinished(work)).isFalse();
    assertThat(others.get()).isNotSameAs(mine);
    Thread.ofPlatform().start(() -> order.standard(0, StreamHandle.PER_THREAD)).join();
    assertThat(others.get().isRetired()).as("the thread is over").isTrue();
    assertThat(mine.isRetired()).isFalse();
    assertThat(order.standard(0, StreamHandle.PER_THREAD)).isSameAs(mine);
  }

  /** A program may start threads for ever. */
  @Test
  void threadsThatAreOver_areKeptByNothing() throws Exception {
    List<WeakReference<Thread>> gone = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      Thread thread = Thread.ofPlatform().start(this::ofThisThread);
      thread.join();
      gone.add(new WeakReference<>(thread));
    }
    order.finish(new Clock());
    for (int i = 0; i < 10 && gone.stream().anyMatch(each -> each.get() != null); i++) {
      System.gc();
    }
    assertThat(gone.subList(0, 3)).allMatch(each -> each.get() == null);
  }

  /** All that it has queued is done. */
  private Lane ofThisThread() {
    Lane own = order.standard(0, StreamHandle.PER_THREAD);
    long _ = own.next();
    order.finish(own.known());
    return own;
  }

  /** Its launches may have thousands of parts. */
  @Test
  void partsOfALaunch_areKeptAsLongAsTheirStream_andCountForNoEndedOne() {
    Lane ended = order.create(0, "an ended stream", false);
    long _ = ended.next();
    order.destroy(ended);
    Lane part = order.part(lane);
    long _ = part.next();
    order.destroy(part);
    for (int i = 0; i < 1_100; i++) {
      Lane more = order.part(lane);
      long _ = more.next();
      order.destroy(more);
    }
    assertThat(part.isRetired()).isFalse();
    assertThat(ended.isRetired()).isFalse();
    order.finish(lane.known());
    order.destroy(lane);
    order.finish(new Clock());
    assertThat(part.isRetired()).isTrue();
    assertThat(ended.isRetired()).isFalse();
  }
}
