package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeParams.EventRecord;
import io.cuvette.driver.GraphNodeParams.EventWait;
import io.cuvette.driver.UserObject;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.reflect.Method;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What orders launches of graphs: events that nodes record or wait for, and objects' ends. */
class SanitizerGraphEventsTest {
  private static final long BYTES = 4096;

  private final List<SanitizerReport> reports = new CopyOnWriteArrayList<>();
  private final SimulatedDriver below = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
  private final AtomicBoolean refusing = new AtomicBoolean();
  private final AtomicBoolean elsewhere = new AtomicBoolean();
  private final SanitizerDriver driver =
      SanitizerDriver.reporting(DriverProxy.of(this::call), reports::add, Misuse.LEAK);
  private final long one = driver.streams().streamCreateWithPriority(0, 1, 0);
  private final long other = driver.streams().streamCreateWithPriority(0, 1, 0);
  private final long memory = driver.memory().memAlloc(0, BYTES);
  private final long first = driver.events().eventCreate(0, 2);
  private final long second = driver.events().eventCreate(0, 2);
  private final GraphNodeParams.Fill fill = new GraphNodeParams.Fill(memory, 3, 1, BYTES);

  @AfterEach
  void close() {
    driver.close();
  }

  private @Nullable Object call(Method method, Object[] arguments) throws Throwable {
    if (refusing.get() && method.getName().equals("graphDestroy")) {
      throw new CudaException(CudaStatus.UNKNOWN.code(), "graphDestroy");
    }
    if (elsewhere.get() && method.getName().equals("graphRetainUserObject")) {
      return null;
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

  private void update(long executable, GraphNodeParams... nodes) {
    driver.devices().ctxSynchronize(0);
    assertThat(driver.graphs().graphExecUpdate(0, executable, graph(nodes)).result()).isZero();
  }

  private void launch(long executable) {
    driver.graphs().graphLaunch(0, executable, one);
  }

  private void fill() {
    driver.transfers().memsetD8Async(0, memory, (byte) 7, BYTES, other);
  }

  private void launchAndFillBehind(long executable, long event) {
    launch(executable);
    driver.streams().streamWaitEvent(0, other, event);
    fill();
  }

  private void fillAndLaunchBehind(long executable, long event) {
    fill();
    driver.events().eventRecord(0, event, other);
    launch(executable);
  }

  private void assertRaceOnly() {
    assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.RACE);
  }

  @Test
  void eventThatANodeRecords_isBehindTheLaunch() {
    long executable = instantiate(graph(fill, new EventRecord(first)));
    launchAndFillBehind(executable, first);
    update(executable, fill, new EventRecord(second));
    launchAndFillBehind(executable, second);
    driver.devices().ctxSynchronize(0);
    assertThat(reports).isEmpty();
    launchAndFillBehind(executable, first);
    assertRaceOnly();
  }

  /** A node that takes no part writes nothing. */
  @Test
  void whatANodeWrites_isWrittenForTheCopyToTheHost_ifItTakesPart() {
    long host = driver.memory().memHostAlloc(0, BYTES, 0).address();
    long graph = graph(fill, new GraphNodeParams.Copy(host, memory, BYTES));
    long node = driver.graphs().graphGetRootNodes(graph)[0];
    long executable = instantiate(graph);
    driver.graphs().graphNodeSetEnabled(executable, node, false);
    launch(executable);
    assertThat(reports)
        .extracting(SanitizerReport::misuse)
        .containsExactly(Misuse.UNINITIALIZED_READ);
    reports.clear();
    driver.graphs().graphNodeSetEnabled(executable, node, true);
    launch(executable);
    driver.devices().ctxSynchronize(0);
    assertThat(reports).isEmpty();
  }

  @Test
  void launch_isBehindTheEventThatANodeWaitsFor() {
    long executable = instantiate(graph(new EventWait(first), fill));
    fillAndLaunchBehind(executable, first);
    update(executable, new EventWait(second), fill);
    fillAndLaunchBehind(executable, second);
    driver.devices().ctxSynchronize(0);
    assertThat(reports).isEmpty();
    fillAndLaunchBehind(executable, first);
    assertRaceOnly();
  }

  @Test
  void nodesOfAnExecutable_haveTheEventsThatTheyAreGiven() {
    long graph = graph(new EventWait(first), fill, new EventRecord(first));
    long[] nodes = driver.graphs().graphGetNodes(graph);
    long executable = instantiate(graph);
    driver.graphs().graphExecNodeSetParams(0, executable, nodes[0], new EventWait(second));
    driver.graphs().graphExecNodeSetParams(0, executable, nodes[2], new EventRecord(second));
    fillAndLaunchBehind(executable, second);
    driver.streams().streamWaitEvent(0, other, second);
    fill();
    assertThat(reports).isEmpty();
  }

  private void assertEndOfObjectIsThatOfLaunches(long executable, long graph, UserObject object) {
    launch(executable);
    driver.graphs().graphExecDestroy(executable);
    driver.graphs().graphDestroy(graph);
    below.streams().streamSynchronize(0, one); // so the launch is done, which nobody knows yet
    assertThat(object.isDestroyed()).isTrue();
    fill();
    assertThat(reports).isEmpty();
  }

  private UserObject retainedBy(long graph) {
    UserObject object = driver.graphs().userObjectCreate();
    driver.graphs().graphRetainUserObject(graph, object.handle());
    return object;
  }

  @Test
  void endOfAnObject_isThatOfTheLaunchesOfItsGraph() {
    long graph = graph(fill);
    UserObject object = retainedBy(graph);
    assertEndOfObjectIsThatOfLaunches(instantiate(graph), graph, object);
  }

  @Test
  void objectOfAGraphThatIsNotDestroyed_staysThatOfTheGraph() {
    long graph = graph(fill);
    UserObject object = retainedBy(graph);
    refusing.set(true);
    assertThatThrownBy(() -> driver.graphs().graphDestroy(graph)).isInstanceOf(CudaException.class);
    refusing.set(false);
    assertEndOfObjectIsThatOfLaunches(instantiate(graph), graph, object);
  }

  @Test
  void objectOfAGraph_isThatOfAnExecutableThatBecomesTheGraph() {
    long executable = instantiate(graph(fill));
    long graph = graph(fill);
    UserObject object = retainedBy(graph);
    assertThat(driver.graphs().graphExecUpdate(0, executable, graph).result()).isZero();
    assertEndOfObjectIsThatOfLaunches(executable, graph, object);
  }

  @Test
  void objectOfAGraph_isThatOfTheGraphsAroundIt_andOfItsCopies() {
    long inner = graph(fill);
    UserObject object = retainedBy(inner);
    long outer = graph(new GraphNodeParams.Child(inner));
    driver.graphs().graphDestroy(inner);
    long copy = driver.graphs().graphClone(outer);
    driver.graphs().graphDestroy(outer);
    assertEndOfObjectIsThatOfLaunches(instantiate(copy), copy, object);
  }

  /** The driver gives its handle again, to a library that is not seen here. */
  @Test
  void endOfAnObjectThatWasReleased_saysNothingOfAGraphWithOneOfTheSameHandle() {
    UserObject released = driver.graphs().userObjectCreate();
    driver.graphs().userObjectRelease(released.handle());
    long graph = graph(fill);
    elsewhere.set(true);
    driver.graphs().graphRetainUserObject(graph, released.handle());
    launch(instantiate(graph));
    assertThat(released.isDestroyed()).isTrue();
    fill();
    assertRaceOnly();
  }

  @Test
  void launchThatNobodyWaitedFor_isNotDone() {
    launch(instantiate(graph(fill)));
    below.streams().streamSynchronize(0, one);
    fill();
    assertRaceOnly();
  }
}
