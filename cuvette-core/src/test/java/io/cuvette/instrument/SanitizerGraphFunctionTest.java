package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Method;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Functions of the host in graphs: what their runs tell, and what they let go on. */
@Timeout(60)
class SanitizerGraphFunctionTest {
  private static final long BYTES = 4096;

  private final List<SanitizerReport> reports = new CopyOnWriteArrayList<>();
  private final SimulatedDriver below = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
  private final AtomicBoolean refusing = new AtomicBoolean();
  private final SanitizerDriver driver =
      SanitizerDriver.reporting(DriverProxy.of(this::call), reports::add, Misuse.LEAK);
  private final long one = driver.streams().streamCreateWithPriority(0, 1, 0);
  private final long other = driver.streams().streamCreateWithPriority(0, 1, 0);
  private final long memory = driver.memory().memAlloc(0, BYTES);
  private final GraphNodeParams.Fill fill = new GraphNodeParams.Fill(memory, 3, 1, BYTES);
  private final Semaphore told = new Semaphore(0);
  private final GraphNodeParams.Host telling = new GraphNodeParams.Host(told::release);

  @AfterEach
  void close() {
    driver.close();
  }

  private @Nullable Object call(Method method, Object[] arguments) throws Throwable {
    if (refusing.get() && method.getName().equals("graphLaunch")) {
      throw new CudaException(CudaStatus.INVALID_VALUE.code(), "graphLaunch");
    }
    return DriverProxy.forward(below, method, arguments);
  }

  /** A graph of nodes one after the other. */
  private long graph(GraphNodeParams... nodes) {
    long graph = driver.graphs().graphCreate();
    long[] before = {};
    for (GraphNodeParams node : nodes) {
      before = new long[] {driver.graphs().graphAddNode(0, graph, before, node).node()};
    }
    return graph;
  }

  private long instantiate(long graph) {
    return driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
  }

  private void launch(long executable) {
    driver.graphs().graphLaunch(0, executable, one);
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private void awaitFunction() {
    try {
      assertThat(told.tryAcquire(60, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private void fill() {
    driver.transfers().memsetD8Async(0, memory, (byte) 7, BYTES, other);
  }

  private void assertSilent() {
    assertThat(reports).isEmpty();
  }

  private void assertRaceOnly() {
    assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.RACE);
  }

  /** Each launch again, and whoever waits for the other stream in between. */
  private void assertTold(long executable) {
    for (int i = 0; i < 3; i++) {
      launch(executable);
      awaitFunction();
      fill();
      driver.streams().streamSynchronize(0, other);
    }
    assertSilent();
  }

  @Test
  void whoIsToldByAFunction_knowsThatTheNodesBeforeAreDone() {
    assertTold(instantiate(graph(fill, telling)));
  }

  @Test
  void whoIsToldByTheLastFunction_knowsWhatIsBetweenTheTwo() {
    assertTold(instantiate(graph(new GraphNodeParams.Host(() -> {}), fill, telling)));
  }

  @Test
  void functionOfAGraphInside_tellsTheSame() {
    long inner = graph(fill, telling);
    long outer = driver.graphs().graphClone(graph(new GraphNodeParams.Child(inner)));
    driver.graphs().graphDestroy(inner);
    assertTold(instantiate(outer));
  }

  @Test
  void functionThatWasCaptured_tellsTheSame() {
    driver.captures().streamBeginCapture(0, one, 2);
    driver.transfers().memsetD8Async(0, memory, (byte) 7, BYTES, one);
    driver.streams().launchHostFunc(0, one, told::release);
    assertTold(instantiate(driver.captures().streamEndCapture(0, one)));
  }

  @Test
  void functionThatANodeIsGiven_tellsTheSame() {
    long graph = graph(fill, telling);
    long executable = instantiate(graph);
    assertTold(executable);
    long node = driver.graphs().graphGetNodes(graph)[1];
    GraphNodeParams.Host next = new GraphNodeParams.Host(told::release);
    driver.graphs().graphExecNodeSetParams(0, executable, node, next);
    assertTold(executable);
    assertThat(driver.graphs().graphExecUpdate(0, executable, graph(fill, telling)).result())
        .isZero();
    assertTold(executable);
  }

  @Test
  void functionOfTwoExecutables_tellsOfEach() {
    long graph = graph(fill, telling);
    long first = instantiate(graph);
    long second = instantiate(graph);
    launch(first);
    awaitFunction();
    launch(second);
    awaitFunction();
    fill();
    driver.streams().streamSynchronize(0, other);
    assertTold(second);
  }

  @Test
  void nodesBehindAFunction_areNotDoneOnceItRuns() {
    CountDownLatch go = new CountDownLatch(1);
    GraphNodeParams.Host tellingAndWaiting =
        new GraphNodeParams.Host(() -> {
          told.release();
          await(go); // so that it cannot return while the fill is queued
        });
    launch(instantiate(graph(tellingAndWaiting, new GraphNodeParams.Child(graph(fill)))));
    awaitFunction();
    fill();
    go.countDown();
    driver.streams().streamSynchronize(0, one);
    assertRaceOnly();
  }

  @Test
  void nodesBehindTheLastFunction_areNotDoneOnceItRuns() {
    launch(instantiate(graph(new GraphNodeParams.Host(() -> {}), telling, fill)));
    awaitFunction();
    fill();
    driver.streams().streamSynchronize(0, one);
    assertRaceOnly();
  }

  /** Whichever was added first. */
  @Test
  void nodesBesideAFunction_areNotDoneOnceItRuns() {
    long graph = driver.graphs().graphCreate();
    long[] none = {};
    assertThat(driver.graphs().graphAddNode(0, graph, none, fill)).isNotNull();
    assertThat(driver.graphs().graphAddNode(0, graph, none, telling)).isNotNull();
    launch(instantiate(graph));
    awaitFunction();
    fill();
    assertRaceOnly();
  }

  /** What it writes is read behind the graph. */
  @Test
  void functionThatHasBegun_mayStillWrite() {
    MemorySegment pinned = driver.memory().memHostAlloc(0, BYTES, 0).fill((byte) 1);
    CountDownLatch go = new CountDownLatch(1);
    Runnable function =
        () -> {
          told.release();
          await(go);
          pinned.fill((byte) 2);
        };
    launch(instantiate(graph(new GraphNodeParams.Host(function))));
    awaitFunction();
    driver.transfers().memcpyHtoDAsync(0, memory, pinned, one);
    go.countDown();
    driver.streams().streamSynchronize(0, one);
    assertSilent();
  }

  @Test
  void nodesBetweenFunctions_areNotDoneOnceTheFirstRuns() {
    CountDownLatch go = new CountDownLatch(1);
    launch(instantiate(graph(new GraphNodeParams.Host(() -> await(go)), fill, telling)));
    fill();
    go.countDown();
    driver.streams().streamSynchronize(0, one);
    assertRaceOnly();
  }

  @Test
  void nodesBehindAFunction_comeAfterWhatTheHostWaitedForBeforeItReturned() {
    CountDownLatch go = new CountDownLatch(1);
    long executable = instantiate(graph(new GraphNodeParams.Host(() -> await(go)), fill));
    fill();
    launch(executable);
    driver.streams().streamSynchronize(0, other);
    go.countDown();
    driver.streams().streamSynchronize(0, one);
    assertSilent();
  }

  @Test
  void nodesBehindAFunction_areARaceWithWhatNobodyWaitedFor() {
    long executable = instantiate(graph(telling, fill));
    fill();
    launch(executable);
    driver.streams().streamSynchronize(0, one);
    assertRaceOnly();
  }

  @Test
  void nodesBeforeAFunction_areARaceAtOnce() {
    long executable = instantiate(graph(fill, telling));
    fill();
    launch(executable);
    assertRaceOnly();
  }

  /** Nothing is pending that never comes. */
  @Test
  void launchThatIsRefused_leavesNothing() {
    long executable = instantiate(graph(fill, telling, fill));
    refusing.set(true);
    assertThatThrownBy(() -> launch(executable)).isInstanceOf(CudaException.class);
    refusing.set(false);
    driver.memory().memFree(0, memory);
    assertSilent();
  }
}
