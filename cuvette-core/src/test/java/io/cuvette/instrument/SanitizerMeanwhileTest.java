package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Latches;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedKernels;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.SimulatedParameter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Method;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What other threads do between a call and its answer. */
class SanitizerMeanwhileTest {
  private static final long BYTES = 1024;

  /** Of one thread. */
  private static final LaunchShape ONE =
      new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);

  private static final List<String> QUEUEING =
      List.of(
          "memsetD8Async",
          "graphLaunch",
          "eventRecord",
          "streamWaitEvent",
          "launchHostFunc",
          "streamWaitValue32",
          "memAllocAsync",
          "memAllocFromPoolAsync",
          "memFreeAsync");

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
  private final long event = watching.events().eventCreate(0, 0);
  private final long ordered = watching.ordered().memAllocAsync(0, BYTES, blocking);
  private final long word = watching.memory().memAlloc(0, Integer.BYTES);
  private final CountDownLatch opened = new CountDownLatch(1);

  SanitizerMeanwhileTest() {
    below.transfers().memsetD8Async(0, word, (byte) 0, Integer.BYTES, blocking);
    below.streams().streamSynchronize(0, blocking);
  }

  static List<String> queueing() {
    return QUEUEING;
  }

  @AfterEach
  void open() {
    opened.countDown();
    watching.close();
  }

  /** A step of another thread right before the driver has a call, or before it answers. */
  private @Nullable Object call(Method method, Object[] arguments) throws Throwable {
    boolean queues = QUEUEING.contains(method.getName()) || method.getName().equals("launchKernel");
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

  /** Behind a gate they are compared when it opens, and neither has come behind the other. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void workThatTakesTurns_behindAFunction_isNoRaceEither(boolean isDefaultFirst) {
    long first = isDefaultFirst ? 0 : blocking;
    long last = isDefaultFirst ? blocking : 0;
    watching.streams().launchHostFunc(0, first, () -> Latches.await(opened));
    before.add(() -> fill(block, BYTES, first));
    fill(block, BYTES, last);
    opened.countDown();
    watching.streams().streamSynchronize(0, 0);
    watching.streams().streamSynchronize(0, blocking);
    assertThat(found).isEmpty();
  }

  /** A call that queues work, which is behind the default stream if the stream is. */
  private void queue(String method) {
    switch (method) {
      case "memsetD8Async" -> fill(ordered, BYTES, blocking);
      case "graphLaunch" -> watching.graphs().graphLaunch(0, executable(), blocking);
      case "eventRecord" -> watching.events().eventRecord(0, event, blocking);
      case "streamWaitEvent" -> watching.streams().streamWaitEvent(0, blocking, event);
      case "launchHostFunc" -> watching.streams().launchHostFunc(0, blocking, () -> {});
      case "streamWaitValue32" -> watching.streams().streamWaitValue32(0, blocking, word, 0, 1);
      case "memAllocAsync" ->
          assertThat(watching.ordered().memAllocAsync(0, 1, blocking)).isPositive();
      case "memAllocFromPoolAsync" -> {
        long pool = watching.pools().deviceGetMemPool(0);
        assertThat(watching.ordered().memAllocFromPoolAsync(0, 1, pool, blocking)).isPositive();
      }
      default -> watching.ordered().memFreeAsync(0, ordered, blocking);
    }
  }

  private long executable(GraphNodeParams... nodes) {
    long graph = watching.graphs().graphCreate();
    long[] last = {};
    for (GraphNodeParams node : nodes) {
      last = new long[] {watching.graphs().graphAddNode(0, graph, last, node).node()};
    }
    return watching.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
  }

  /** The default stream had its work after that of the other one, which is waited for alone. */
  @ParameterizedTest
  @MethodSource("queueing")
  void workOfTheDefaultStream_queuedMeanwhile_isNotDoneWithTheOther(String method) {
    after.add(() -> {
      hold(0);
      fill(block, BYTES, 0);
    });
    queue(method);
    watching.streams().streamSynchronize(0, blocking);
    fill(block, BYTES, one);
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
  @ParameterizedTest
  @MethodSource("queueing")
  void waitForAStream_thatIsAboutToComeBehindTheDefaultStream_isNotBehindIt(String method) {
    hold(0);
    fill(block, BYTES, 0);
    before.add(() -> watching.streams().streamSynchronize(0, blocking));
    queue(method);
    fill(block, BYTES, one);
    assertOnly(Misuse.RACE);
  }

  @ParameterizedTest
  @MethodSource("queueing")
  void workOfTheDefaultStream_isDoneWithThatOfAStreamBehindIt(String method) {
    fill(block, BYTES, 0);
    queue(method);
    watching.streams().streamSynchronize(0, blocking);
    fill(block, BYTES, one);
    assertThat(found).isEmpty();
  }

  @Test
  void workOfAStream_queuedWhileAnEventIsRecordedThere_isNotBeforeTheEvent() {
    after.add(() -> fill(block, BYTES, one));
    watching.events().eventRecord(0, event, one);
    watching.streams().streamWaitEvent(0, other, event);
    fill(block, BYTES, other);
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

  @Test
  void workBehindAFunction_comesAfterWhatTheHostKnowsWhenItReturns() {
    CountDownLatch told = new CountDownLatch(1);
    fill(block, BYTES, other);
    after.add(() -> {
      Latches.await(told);
      fill(block, BYTES, one);
      watching.streams().streamSynchronize(0, other);
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

  @Test
  void launchBehindAFunction_comesAfterWhatTheHostKnowsWhenItReturns() {
    long executable = executable(new GraphNodeParams.Fill(block, 3, 1, BYTES));
    fill(block, BYTES, other);
    watching.streams().launchHostFunc(0, one, () -> Latches.await(opened));
    watching.graphs().graphLaunch(0, executable, one);
    watching.streams().streamSynchronize(0, other);
    opened.countDown();
    watching.streams().streamSynchronize(0, one);
    assertThat(found).isEmpty();
  }

  /** A function may run, and tell that what is before it is done, before the call is back. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void functionThatRunsBeforeItsLaunchIsBack_tellsOfItOnce(boolean isRefusedFirst) {
    CountDownLatch ran = new CountDownLatch(1);
    var fill = new GraphNodeParams.Fill(block, 3, 1, BYTES);
    long executable = executable(fill, new GraphNodeParams.Host(ran::countDown));
    if (isRefusedFirst) {
      before.add(() -> {
        throw new CudaException(CudaStatus.OUT_OF_MEMORY, "graphLaunch", "for once");
      });
      assertThatThrownBy(() -> watching.graphs().graphLaunch(0, executable, one))
          .isInstanceOf(CudaException.class);
    }
    after.add(() -> {
      Latches.await(ran);
      fill(block, BYTES, other);
    });
    watching.graphs().graphLaunch(0, executable, one);
    fill(block, BYTES, other);
    watching.streams().streamSynchronize(0, one);
    assertThat(found).isEmpty();

    hold(other);
    fill(block, BYTES, other);
    fill(block, BYTES, one);
    assertOnly(Misuse.RACE);
  }

  /** A kernel may tell the host by a word, which then waits for it and uses what it wrote. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void kernelThatTellsBeforeItsLaunchIsBack_isWaitedFor(boolean isInGraph) throws Exception {
    MemorySegment pinned = watching.memory().memHostAlloc(0, Integer.BYTES, 0);
    pinned.set(ValueLayout.JAVA_INT, 0, 0);
    var kernel = telling(pinned.address());
    long executable = executable(kernel);
    for (int run = 1; run <= 3; run++) {
      after.add(() -> {
        while (pinned.get(ValueLayout.JAVA_INT, 0) == 0) {
          assertThat(watching.streams().streamQuery(0, other)).isTrue(); // the host goes on
        }
        watching.streams().streamSynchronize(0, one);
        fill(block, BYTES, other);
        pinned.set(ValueLayout.JAVA_INT, 0, 0);
      });
      if (isInGraph) {
        watching.graphs().graphLaunch(0, executable, one);
      } else {
        watching.kernels().launchKernel(0, one, kernel.kernel(), ONE, kernel.parameters());
      }
      watching.streams().streamSynchronize(0, one);
      watching.streams().streamSynchronize(0, other);
      assertThat(found).as("run %d", run).isEmpty();
    }
  }

  /** Of two calls at once the driver may have that first which asked last. */
  @Test
  void kernelThatTells_whileAnEarlierLaunchOfItsStreamHasNotBegun_tells() {
    MemorySegment words = watching.memory().memHostAlloc(0, 2 * Integer.BYTES, 0);
    words.fill((byte) 0);
    var first = telling(words.address());
    var second = telling(words.address() + Integer.BYTES);
    long filled = watching.memory().memAlloc(0, BYTES);
    before.add(() -> {
      fill(filled, BYTES, one);
      watching.kernels().launchKernel(0, one, second.kernel(), ONE, second.parameters());
      while (words.get(ValueLayout.JAVA_INT, Integer.BYTES) == 0) {
        assertThat(watching.streams().streamQuery(0, blocking)).isTrue(); // the host goes on
      }
      fill(filled, BYTES, other);
    });
    watching.kernels().launchKernel(0, one, first.kernel(), ONE, first.parameters());
    watching.streams().streamSynchronize(0, one);
    assertThat(found).isEmpty();
  }

  /** Then the function says nothing about it. */
  @Test
  void workThatAFunctionHolds_whichReturnsDuringACall_isHeldAgainstTheCall() {
    CountDownLatch over = new CountDownLatch(1);
    watching.streams().launchHostFunc(0, one, () -> Latches.await(opened));
    fill(block, BYTES, one);
    below.streams().launchHostFunc(0, one, over::countDown);
    before.add(() -> {
      opened.countDown();
      Latches.await(over);
    });
    fill(block, BYTES, other);
    assertOnly(Misuse.RACE);
  }

  /** What writes to the block, and then to a word. */
  private GraphNodeParams.Kernel telling(long address) {
    SimulatedKernel kernel =
        SimulatedKernel.of(
            "tellBeforeTheCallIsBack",
            thread -> {
              thread.setInt(thread.pointer(0), 5);
              thread.setInt(thread.pointer(1), 1);
            },
            SimulatedParameter.POINTER,
            SimulatedParameter.POINTER);
    SimulatedKernels.register(kernel);
    long library = watching.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
    MemorySegment values = Arena.ofAuto().allocate(2 * Long.BYTES, Long.BYTES);
    values.set(ValueLayout.JAVA_LONG, 0, block);
    values.set(ValueLayout.JAVA_LONG, Long.BYTES, address);
    var places = List.of(new KernelParameter(0, Long.BYTES), new KernelParameter(8, Long.BYTES));
    long handle = watching.kernels().libraryGetKernel(library, kernel.name());
    return new GraphNodeParams.Kernel(handle, ONE, new LaunchParameters(values, places));
  }

  @Test
  void waitForAStream_thatIsAboutToLaunchBehindAnEvent_isNotBehindThat() {
    hold(one);
    fill(block, BYTES, one);
    watching.events().eventRecord(0, event, one);
    long executable = executable(new GraphNodeParams.EventWait(event));
    before.add(() -> watching.streams().streamSynchronize(0, other));
    watching.graphs().graphLaunch(0, executable, other);
    fill(block, BYTES, blocking);
    assertOnly(Misuse.RACE);
  }

  @Test
  void workBehindALaunch_isNotBehindTheNextLaunch() {
    long second = watching.memory().memAlloc(0, BYTES);
    long executable = executable(new GraphNodeParams.EventRecord(event));
    watching.graphs().graphLaunch(0, executable, one);
    fill(block, BYTES, one);
    fill(second, BYTES, one);
    watching.streams().streamWaitEvent(0, blocking, event);
    fill(second, BYTES, blocking);
    assertOnly(Misuse.RACE);
    found.clear();
    watching.graphs().graphLaunch(0, executable, other);
    fill(block, BYTES, other);
    assertOnly(Misuse.RACE);
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

  @Test
  void capturedWork_duringWhichOthersQueueSome_isNotRun() {
    watching.captures().streamBeginCapture(0, one, 2);
    before.add(() -> fill(block, BYTES, other));
    fill(block, BYTES, one);
    assertThat(watching.captures().streamEndCapture(0, one)).isPositive();
    assertThat(found).isEmpty();
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
