package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Latches;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Method;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What other threads do between a call and its answer. */
class SanitizerMeanwhileTest {
  private static final long BYTES = 1024;

  private final List<SanitizerReport> found = new CopyOnWriteArrayList<>();
  private final SimulatedDriver below = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
  private final Deque<Runnable> before = new ArrayDeque<>();
  private final Deque<Runnable> after = new ArrayDeque<>();
  private final SanitizerDriver watching =
      SanitizerDriver.reporting(DriverProxy.of(this::call), found::add, Misuse.LEAK);
  private final long one = watching.streams().streamCreateWithPriority(0, 1, 0);
  private final long other = watching.streams().streamCreateWithPriority(0, 1, 0);
  private final long blocking = watching.streams().streamCreateWithPriority(0, 0, 0);
  private final long block = watching.memory().memAlloc(0, BYTES);
  private final CountDownLatch opened = new CountDownLatch(1);

  @AfterEach
  void open() {
    opened.countDown();
    watching.close();
  }

  /** A step of another thread right before the driver has a call, or before it answers. */
  private @Nullable Object call(Method method, Object[] arguments) throws Throwable {
    boolean queues = List.of("memsetD8Async", "graphLaunch", "launchHostFunc").contains(method.getName());
    run(queues ? before.poll() : null);
    Object result = DriverProxy.forward(below, method, arguments);
    run(queues ? after.poll() : null);
    return result;
  }

  private static void run(@Nullable Runnable step) {
    if (step != null) {
      step.run();
    }
  }

  private void fill(long address, long bytes, long stream) {
    watching.transfers().memsetD8Async(0, address, (byte) 1, bytes, stream);
  }

  /** Work of a stream goes on when the test ends: the sanitizer does not know what holds it. */
  private void hold(long stream) {
    below.streams().launchHostFunc(0, stream, () -> Latches.await(opened));
  }

  private void assertOnly(Misuse misuse) {
    assertThat(found).extracting(SanitizerReport::misuse).containsExactly(misuse);
  }

  @Test
  void workOfTwoThreads_whoseCallsOverlap_isARace_ifNothingOrdersIt() {
    before.add(() -> fill(block + 512, 512, other));
    fill(block, 512, one);
    before.add(() -> fill(block, 512, one));
    fill(block, 512, one);
    assertThat(found).isEmpty();

    long fresh = watching.memory().memAlloc(0, BYTES);
    before.add(() -> fill(fresh + 511, 513, other));
    fill(fresh, 512, one);
    assertOnly(Misuse.RACE);
  }

  /** The driver runs them in the order in which it has them, whichever that is. */
  @Test
  void workThatTakesTurns_isNoRace_whicheverIsFirst() {
    before.add(() -> fill(block, BYTES, 0));
    fill(block, BYTES, blocking);
    after.add(() -> fill(block, BYTES, 0));
    fill(block, BYTES, blocking);
    after.add(() -> fill(block, BYTES, blocking));
    fill(block, BYTES, 0);
    assertThat(found).isEmpty();
  }

  /** The default stream had its work after that of the other one, which is waited for alone. */
  @Test
  void workOfTheDefaultStream_queuedMeanwhile_isNotDoneWithTheOther() {
    long second = watching.memory().memAlloc(0, BYTES);
    after.add(() -> {
      hold(0);
      fill(second, BYTES, 0);
    });
    fill(block, BYTES, blocking);
    watching.streams().streamSynchronize(0, blocking);
    fill(second, BYTES, one);
    assertOnly(Misuse.RACE);
  }

  /** Which is not noted there before the driver has the work. */
  @Test
  void workBehindACallbackOfTheDefaultStream_comesAfterWhatTheHostKnewThen() {
    fill(block, BYTES, one);
    watching.streams().launchHostFunc(0, 0, () -> Latches.await(opened));
    fill(block, BYTES, blocking);
    watching.streams().streamSynchronize(0, one);
    opened.countDown();
    watching.streams().streamSynchronize(0, blocking);
    assertThat(found).isEmpty();
  }

  /** Nothing is behind the default stream yet when somebody waits. */
  @Test
  void waitForAStream_thatIsAboutToComeBehindTheDefaultStream_isNotBehindIt() {
    hold(0);
    fill(block, BYTES, 0);
    long second = watching.memory().memAlloc(0, BYTES);
    before.add(() -> watching.streams().streamSynchronize(0, blocking));
    fill(second, BYTES, blocking);
    fill(block, BYTES, one);
    assertOnly(Misuse.RACE);
  }

  @Test
  void launchBeforeWhichSomebodyWaits_isNotDone() {
    long graph = watching.graphs().graphCreate();
    long[] none = {};
    var fill = new GraphNodeParams.Fill(block, 3, 1, BYTES);
    long[] first = {watching.graphs().graphAddNode(0, graph, none, fill).node()};
    var function = new GraphNodeParams.Host(() -> {});
    assertThat(watching.graphs().graphAddNode(0, graph, first, function)).isNotNull();
    long executable = watching.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    before.add(() -> {
      watching.streams().streamSynchronize(0, one);
      hold(one);
    });
    watching.graphs().graphLaunch(0, executable, one);
    fill(block, BYTES, other);
    assertOnly(Misuse.RACE);
  }

  /** The function tells somebody before its call is back. */
  @Test
  void workBehindAFunction_readsWhatTheHostWrites_whileTheFunctionWaits() {
    MemorySegment pinned = watching.memory().memHostAlloc(0, BYTES, 0);
    pinned.fill((byte) 1);
    CountDownLatch told = new CountDownLatch(1);
    after.add(() -> {
      Latches.await(told);
      watching.transfers().memcpyAsync(0, block, pinned.address(), BYTES, one);
      pinned.fill((byte) 2);
      opened.countDown();
    });
    Runnable function =
        () -> {
          told.countDown();
          Latches.await(opened);
        };
    watching.streams().launchHostFunc(0, one, function);
    watching.streams().streamSynchronize(0, one);
    assertThat(found).isEmpty();
  }

  /** Each thread has one, and knows of its own alone whether it is done. */
  @Test
  void waitForTheStreamOfAThread_saysNothingAboutThatOfAnother() throws Exception {
    hold(2);
    fill(block, BYTES, 2);
    Thread.ofPlatform().start(() -> watching.streams().streamSynchronize(0, 2)).join();
    fill(block, BYTES, one);
    assertOnly(Misuse.RACE);
    found.clear();
    Thread.ofPlatform().start(() -> fill(block, BYTES, 2)).join();
    assertThat(found).extracting(SanitizerReport::misuse).contains(Misuse.RACE);
  }

  /** It is no work of the stream that captures it. */
  @Test
  void workCapturedIntoAGraph_isNotRun() {
    long graph = watching.graphs().graphCreate();
    watching.captures().streamBeginCaptureToGraph(0, one, graph, new long[0], 2);
    fill(block, BYTES, one);
    assertThat(watching.captures().streamEndCapture(0, one)).isEqualTo(graph);
    fill(block, BYTES, other);
    watching.streams().streamSynchronize(0, other);
    watching.memory().memFree(0, block);
    watching.graphs().graphDestroy(graph);
    assertThat(found).isEmpty();
  }
}
