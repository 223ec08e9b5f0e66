package io.cuvette.sim.internal.schedule;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Latches;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.SimulatedPace;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Operations that fail as none of a device does, or end in an error that no call can cause, and
 * records for other processes where nothing but their thread runs them.
 */
class SimSchedulerTest {
  private final SimDevice device = new SimDevice(0, 1, 0, 1024);
  private final SimDevice other = new SimDevice(1, 2, 0, 1024);
  private final SimScheduler scheduler =
      new SimScheduler(
          SimulatedOptions.DEFAULTS.withPace(SimulatedPace.LAZY), List.of(device, other), _ -> {});

  @BeforeEach
  void lock() {
    scheduler.lock.lock();
  }

  @AfterEach
  void close() {
    scheduler.close();
    scheduler.lock.unlock();
  }

  private SimOp queued(Runnable work) {
    SimOp op = SimOp.work(device.legacy(), work, 0, 0);
    scheduler.submit(op);
    return op;
  }

  static Stream<Throwable> errorsOfTheSimulator() {
    return Stream.of(
        new InternalError("a mapped file on a full disk"),
        new OutOfMemoryError("the heap"),
        new IllegalStateException("a defect"));
  }

  @ParameterizedTest
  @MethodSource("errorsOfTheSimulator")
  void errorOfTheSimulator_failsTheDevice(Throwable error) {
    AtomicInteger ran = new AtomicInteger();
    SimOp failing = queued(() -> sneak(error));
    SimOp behind = queued(ran::incrementAndGet);
    scheduler.await(failing);
    assertThat(behind.isDone()).isTrue();
    assertThat(ran).hasValue(0);
    assertThatExceptionOfType(SimRefusal.class)
        .isThrownBy(device::checkWorks)
        .satisfies(e -> assertThat(e.in("call").status()).isEqualTo(CudaStatus.UNKNOWN))
        .withMessageContaining(error.toString());
  }

  /** No device can be blamed for it. */
  @Test
  void anyOtherError_isTheCallers() {
    SimOp failing =
        queued(() -> {
          throw new AssertionError("in a test");
        });
    assertThatThrownBy(() -> scheduler.await(failing)).hasMessage("in a test");
  }

  /** The thread that looks for a standstill ends with the work, and sees that some moved. */
  @Test
  void workThatIsQueuedAndEnds_isCounted() {
    long moves = scheduler.moves();
    for (int i = 0; i < 3; i++) {
      assertThat(scheduler.isAnyPending()).isFalse();
      SimOp op = queued(() -> {});
      assertThat(scheduler.isAnyPending()).isTrue();
      assertThat(scheduler.moves()).isEqualTo(moves + 1);
      scheduler.await(op);
      assertThat(scheduler.moves()).isEqualTo(moves + 2);
      moves += 2;
    }
    assertThat(scheduler.isAnyPending()).isFalse();
  }

  /** What waits on a device that works, for work of one that failed, would wait for ever. */
  @Test
  void workThatWaitsForAFailedDevice_goesOn() {
    SimOp failing = queued(() -> sneak(new IllegalStateException("a defect")));
    SimOp behind = queued(() -> {});
    SimOp waiting = SimOp.waiting(other.legacy(), behind, 0);
    scheduler.submit(waiting);
    AtomicInteger ran = new AtomicInteger();
    SimOp last = SimOp.work(other.legacy(), ran::incrementAndGet, 0, 0);
    scheduler.submit(last);
    scheduler.await(failing);
    scheduler.await(last);
    assertThat(ran).hasValue(1);
    assertThat(scheduler.isAnyPending()).isFalse();
    other.checkWorks();
  }

  /** Whoever runs up to an operation runs each once, and nothing behind it. */
  @Test
  void noMoreRuns_thanIsAskedFor() {
    List<SimOp> ops = List.of(queued(() -> {}), queued(() -> {}), queued(() -> {}));
    assertThat(scheduler.runReady(0)).isZero();
    assertThat(scheduler.runReady(2)).isEqualTo(2);
    assertThat(ops).extracting(SimOp::isDone).containsExactly(true, true, false);
    assertThat(scheduler.runReady(2)).isEqualTo(1);
    assertThat(scheduler.runReady(2)).isZero();
  }

  @Test
  void hostFunctions_runOnOneThread() throws InterruptedException {
    List<Thread> threads = new CopyOnWriteArrayList<>();
    CountDownLatch queued = new CountDownLatch(1);
    CountDownLatch left = new CountDownLatch(9);
    for (int i = 0; i < 9; i++) {
      SimStream stream = new SimStream(device, 10 + i, SimStream.NON_BLOCKING, 0);
      Runnable function =
          () -> {
            Latches.await(queued);
            threads.add(Thread.currentThread());
            left.countDown();
          };
      scheduler.submit(SimOp.host(stream, function, 0));
    }
    queued.countDown();
    outsideOfTheLock(left::await);
    assertThat(threads).hasSize(9);
    assertThat(Set.copyOf(threads)).hasSize(1);
    scheduler.awaitUntil(scheduler.hostThread()::isIdle); // the last one is over soon
    assertThat(scheduler.hostThread().isDue()).isFalse();
  }

  @Test
  void workThatIsRunThrough_runsOnce_andNothingBehindIt() {
    List<Integer> ran = new ArrayList<>();
    List<SimOp> ops = IntStream.range(0, 4).mapToObj(i -> queued(() -> ran.add(i))).toList();
    assertThat(scheduler.runUpTo(ops.get(1))).isTrue();
    assertThat(ran).containsExactly(0);
    for (int i = 0; i < 2; i++) {
      assertThat(scheduler.runThrough(ops.get(1))).isTrue();
      assertThat(scheduler.runUpTo(ops.get(0))).isTrue();
      assertThat(ran).containsExactly(0, 1);
      assertThat(ops.get(2).isDone()).isFalse();
    }
    assertThat(scheduler.runThrough(ops.get(3))).isTrue();
    assertThat(scheduler.runThrough(ops.get(3))).isTrue();
    assertThat(ran).containsExactly(0, 1, 2, 3);
    assertThat(scheduler.isAnyPending()).isFalse();
  }

  /** Something else has to come first, also if another stream waits for that. */
  @Test
  void workBehindWhatIsOutsideOfTheDevice_isNotRunThrough() {
    AtomicBoolean come = new AtomicBoolean();
    AtomicInteger ran = new AtomicInteger();
    SimOp outside = SimOp.waitingOutside(device.legacy(), come::get, ran::incrementAndGet, 0);
    scheduler.submit(outside);
    assertThat(scheduler.hasWork()).isTrue();
    SimOp behind = queued(ran::incrementAndGet);
    scheduler.submit(SimOp.waiting(other.legacy(), behind, 0));
    SimOp last = SimOp.work(other.legacy(), ran::incrementAndGet, 0, 0);
    scheduler.submit(last);
    assertThat(scheduler.runThrough(behind)).isFalse();
    assertThat(scheduler.runThrough(last)).isFalse();
    assertThat(ran).hasValue(0);
    come.set(true);
    scheduler.awaitUntil(() -> scheduler.runThrough(last));
    assertThat(ran).hasValue(3);
  }

  @Test
  void workBehindAHostFunction_isNotRunThrough() {
    CountDownLatch function = new CountDownLatch(1);
    scheduler.submit(SimOp.host(device.legacy(), function::countDown, 0));
    AtomicInteger ran = new AtomicInteger();
    SimOp behind = queued(ran::incrementAndGet);
    assertThat(scheduler.runThrough(behind)).isFalse();
    assertThat(ran).hasValue(0);
    assertThat(function.getCount()).as("this thread has the lock").isEqualTo(1);
    scheduler.await(behind);
    assertThat(ran).hasValue(1);
    assertThat(function.getCount()).isZero();
  }

  /** The device that fails has ended it already, and its thread goes on with those of others. */
  @Test
  void hostFunctionWhoseDeviceFailsMeanwhile_endsOnce() throws InterruptedException {
    CountDownLatch began = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    SimOp function =
        SimOp.host(
            device.legacy(),
            () -> {
              began.countDown();
              Latches.await(goOn);
            },
            0);
    scheduler.submit(function);
    outsideOfTheLock(began::await);
    scheduler.fail(device, new SimRefusal(CudaStatus.LAUNCH_FAILED, "meanwhile"));
    assertThat(function.isDone()).isTrue();
    assertThat(scheduler.isAnyPending()).isFalse();
    CountDownLatch ran = new CountDownLatch(1);
    SimOp last = SimOp.host(other.legacy(), ran::countDown, 0);
    scheduler.submit(last);
    long finished = scheduler.finished();
    goOn.countDown();
    outsideOfTheLock(() -> assertThat(ran.await(60, TimeUnit.SECONDS)).isTrue());
    scheduler.await(last);
    assertThat(scheduler.finished()).isEqualTo(finished + 1);
    assertThat(scheduler.isAnyPending()).isFalse();
    other.checkWorks();
  }

  private interface Step {
    void run() throws InterruptedException;
  }

  private void outsideOfTheLock(Step step) throws InterruptedException {
    scheduler.lock.unlock();
    try {
      step.run();
    } finally {
      scheduler.lock.lock();
    }
  }

  /** Whoever fills it has room once some of that was run, and counts no longer. */
  @Test
  void queueThatWasFull_hasNobodyWaitingForIt() {
    SimStream stream = new SimStream(new SimDevice(3, 7, 0, 2), 8, SimStream.NON_BLOCKING, 0);
    for (int call = 0; call < 3; call++) {
      scheduler.beginCall();
      for (int i = 0; i < 4; i++) {
        scheduler.submit(SimOp.point(stream, 0));
      }
      assertThat(stream.queue.isOverfull()).isTrue();
      scheduler.endCall();
      assertThat(stream.queue.isOverfull()).isFalse();
      assertThat(stream.queue.waiting).isZero();
      assertThat(stream.queue.holdsUpOthers()).isFalse();
    }
  }

  /** What was done before is; what is outside of the driver is gone with it. */
  @Test
  void schedulerThatIsClosed_hasNoWork_andEndsWaits() {
    SimOp done = queued(() -> {});
    scheduler.await(done);
    assertThat(scheduler.hasWork()).isFalse();
    SimOp never = queued(() -> {});
    assertThat(scheduler.hasWork()).isTrue();
    scheduler.close();
    assertThat(scheduler.hasWork()).isFalse();
    scheduler.await(done);
    scheduler.await(null);
    for (Runnable wait :
        List.<Runnable>of(
            () -> scheduler.await(never),
            () -> scheduler.awaitUntil(() -> false),
            () -> scheduler.awaitOutside(() -> true))) {
      assertThatExceptionOfType(SimRefusal.class)
          .isThrownBy(wait::run)
          .satisfies(e -> assertThat(e.status()).isEqualTo(CudaStatus.DEINITIALIZED));
    }
    assertThat(never.isDone()).isFalse();
  }

  /** The thread that has run a record rests for a second, unless the next one wakes it. */
  @Test
  @Timeout(60)
  void sharedRecordsOneAfterTheOther_areRunAtOnce() throws InterruptedException {
    runSharedRecord();
    long quickest = Long.MAX_VALUE; // any of them may have no processor for a while
    for (int i = 0; i < 20; i++) {
      long start = System.nanoTime();
      runSharedRecord();
      quickest = Math.min(quickest, System.nanoTime() - start);
    }
    assertThat(quickest).isLessThan(TimeUnit.MILLISECONDS.toNanos(500));
  }

  private void runSharedRecord() throws InterruptedException {
    CountDownLatch ran = new CountDownLatch(1);
    scheduler.sharedRecords().add(queued(ran::countDown));
    outsideOfTheLock(ran::await); // whose thread has the lock until it rests
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> void sneak(Throwable error) throws E {
    throw (E) error;
  }

  /** What the legacy stream waits for already holds up no further work of it. */
  @Test
  void legacyStream_waitsForEachEndOnce() {
    SimStream blocking = new SimStream(device, 7, 0, 0);
    scheduler.submit(SimOp.work(blocking, () -> {}, 0, 0));
    assertThat(device.hasBlockingEnds()).isTrue();
    SimOp first = queued(() -> {});
    assertThat(device.hasBlockingEnds()).isFalse();
    assertThat(device.takeBlockingEnds()).isEmpty();
    SimOp behind = SimOp.work(blocking, () -> {}, 0, 0);
    scheduler.submit(behind);
    assertThat(device.takeBlockingEnds()).containsExactly(behind);
    assertThat(device.takeBlockingEnds()).isEmpty();
    scheduler.await(behind);
    assertThat(first.isDone()).isTrue();
  }

  @Test
  void workBehindWhatIsOutside_canRunAsSoonAsThatHasCome() {
    AtomicBoolean come = new AtomicBoolean();
    scheduler.submit(SimOp.waitingOutside(device.legacy(), come::get, () -> {}, 0));
    for (int i = 0; i < 3; i++) {
      come.set(false);
      assertThat(scheduler.canRun()).isFalse();
    }
    come.set(true);
    assertThat(scheduler.canRun()).isTrue();
  }

  @Test
  void queueOfSeveralStreams_isOneOfItsDevice() {
    SimDevice sharing = new SimDevice(4, 20, 1, 1024);
    List<SimStream> streams =
        IntStream.range(0, 3)
            .mapToObj(i -> new SimStream(sharing, 21 + i, SimStream.NON_BLOCKING, 0))
            .toList();
    streams.forEach(stream -> scheduler.submit(SimOp.point(stream, 0)));
    assertThat(sharing.activeQueues()).containsExactly(streams.getFirst().queue);
  }
}
