package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Graphs of somebody else and inside of others, and captures that end otherwise than they should.
 */
class SanitizerGraphsTest {
  private static final long BYTES = 4096;
  private static final int RELAXED = 2;

  private final List<SanitizerReport> reports = new CopyOnWriteArrayList<>();
  private final SimulatedDriver below = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
  private final SanitizerDriver driver =
      SanitizerDriver.reporting(below, reports::add, Misuse.LEAK);
  private final long one = driver.streams().streamCreateWithPriority(0, 1, 0);
  private final long other = driver.streams().streamCreateWithPriority(0, 1, 0);
  private final long blocking = driver.streams().streamCreateWithPriority(0, 0, 0);
  private final long memory = driver.memory().memAlloc(0, BYTES);

  @AfterEach
  void close() {
    driver.close();
  }

  private long graph(GraphNodeParams node) {
    long graph = driver.graphs().graphCreate();
    assertThat(driver.graphs().graphAddNode(0, graph, new long[0], node)).isNotNull();
    return graph;
  }

  private long filling() {
    return graph(new GraphNodeParams.Fill(memory, 3, 1, BYTES));
  }

  private long instantiate(long graph) {
    return driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
  }

  private void launch(long executable, long stream) {
    driver.graphs().graphLaunch(0, executable, stream);
  }

  private void fill(long stream) {
    driver.transfers().memsetD8Async(0, memory, (byte) 7, BYTES, stream);
  }

  private SanitizerReport assertOnly(Misuse misuse) {
    assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(misuse);
    return reports.getFirst();
  }

  /** The simulated device refuses such nodes itself; a driver need not. */
  @Test
  void nodeThatReachesOverItsMemory_isNamedAtItsLaunch() {
    AtomicLong told = new AtomicLong();
    CudaDriver telling =
        DriverProxy.of((method, arguments) ->
            method.getName().equals("graphNodeGetParams")
                ? new GraphNodeParams.Fill(told.get(), 3, 1, BYTES)
                : DriverProxy.forward(below, method, arguments));
    SanitizerDriver above = SanitizerDriver.reporting(telling, reports::add, Misuse.LEAK);
    long block = above.memory().memAlloc(0, BYTES);
    told.set(block + 1);
    long stream = above.streams().streamCreateWithPriority(0, 1, 0);
    long graph = above.graphs().graphCreate();
    GraphNodeParams whole = new GraphNodeParams.Fill(block, 3, 1, BYTES);
    assertThat(above.graphs().graphAddNode(0, graph, new long[0], whole)).isNotNull();
    long made = above.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    assertThat(reports).isEmpty();
    above.graphs().graphLaunch(0, made, stream);
    assertThat(assertOnly(Misuse.OUT_OF_BOUNDS).message()).contains("begins 1 bytes into");
  }

  @Test
  void launchInABlockingStream_waitsForTheDefaultStream_whichWaitsForIt() {
    long graph = filling();
    long executable = instantiate(graph);
    fill(0);
    launch(executable, blocking);
    fill(0);
    launch(executable, blocking);
    fill(blocking);
    launch(executable, 0);
    assertThat(reports).isEmpty();
    launch(instantiate(graph), one);
    assertOnly(Misuse.RACE);
  }

  @Test
  void executableOfSomebodyElse_isUsedUnseen() {
    long graph = filling();
    long executable = below.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    launch(executable, one);
    assertThat(driver.graphs().graphExecUpdate(0, executable, graph).result()).isZero();
    launch(executable, one);
    driver.streams().streamSynchronize(0, one);
    assertThat(reports).isEmpty();
    driver.graphs().graphExecDestroy(executable);
    assertOnly(Misuse.UNKNOWN_HANDLE);
  }

  /** The driver may give its handle to the next one. */
  @Test
  void executableThatIsGone_usesNothing_andIsNamedByEachCallWithIt() {
    long graph = filling();
    long executable = instantiate(graph);
    launch(executable, one);
    driver.streams().streamSynchronize(0, one);
    driver.graphs().graphExecDestroy(executable);
    driver.memory().memFree(0, memory);
    assertThatThrownBy(() -> launch(executable, one)).isInstanceOf(CudaException.class);
    assertThatThrownBy(() -> driver.graphs().graphExecUpdate(0, executable, graph))
        .isInstanceOf(CudaException.class);
    assertThatThrownBy(() -> driver.graphs().graphExecDestroy(executable))
        .isInstanceOf(CudaException.class);
    assertThat(reports)
        .extracting(SanitizerReport::misuse)
        .containsExactly(Misuse.DESTROYED_HANDLE, Misuse.DESTROYED_HANDLE, Misuse.DOUBLE_FREE);
    assertThat(reports)
        .extracting(SanitizerReport::message)
        .allMatch(text -> text.contains("executable graph 0x%x was".formatted(executable)));
  }

  @Test
  void executableThatNobodyDestroys_isALeak_namedByWhatMadeIt() {
    SanitizerDriver watched =
        SanitizerDriver.reporting(SimulatedDriver.open(SimulatedOptions.DEFAULTS), reports::add);
    long graph = watched.graphs().graphCreate();
    long left = watched.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    long other = watched.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    watched.graphs().graphExecDestroy(other);
    watched.graphs().graphDestroy(graph);
    watched.close();
    assertThat(assertOnly(Misuse.LEAK).message())
        .contains("executable graph 0x%x is never freed".formatted(left))
        .contains("graphInstantiateWithParams(");
  }

  @Test
  void whatALaunchReads_isWrittenByNobodyForThat() {
    long target = driver.memory().memAlloc(0, BYTES);
    long executable = instantiate(graph(new GraphNodeParams.Copy(target, memory, BYTES)));
    launch(executable, one);
    driver.streams().streamSynchronize(0, one);
    try (Arena arena = Arena.ofConfined()) {
      driver.transfers().memcpyDtoHAsync(0, arena.allocate(BYTES), memory, one);
      assertThat(assertOnly(Misuse.UNINITIALIZED_READ).message()).contains("4096 bytes of it");
      driver.streams().streamSynchronize(0, one);
    }
  }

  /** By a node that writes there, and not before its launch. */
  @Test
  void whatALaunchWrites_isWrittenThen() {
    long source = driver.memory().memAlloc(0, BYTES);
    long target = driver.memory().memAlloc(0, BYTES);
    driver.transfers().memsetD8Async(0, source, (byte) 1, BYTES, one);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment host = arena.allocate(BYTES);
      for (long written : new long[] {memory, target}) {
        long executable =
            instantiate(
                written == memory
                    ? filling()
                    : graph(new GraphNodeParams.Copy(target, source, BYTES)));
        driver.transfers().memcpyDtoHAsync(0, host, written, one);
        assertOnly(Misuse.UNINITIALIZED_READ);
        reports.clear();
        launch(executable, one);
        driver.transfers().memcpyDtoHAsync(0, host, written, one);
        driver.streams().streamSynchronize(0, one);
        assertThat(reports).isEmpty();
      }
    }
  }

  @Test
  void graphInsideAnother_usesItsMemoryToo() {
    long executable =
        instantiate(graph(new GraphNodeParams.Child(graph(new GraphNodeParams.Child(filling())))));
    fill(other);
    launch(executable, one);
    assertOnly(Misuse.RACE);
    reports.clear();
    driver.devices().ctxSynchronize(0);
    driver.memory().memFree(0, memory);
    launch(executable, one);
    assertOnly(Misuse.USE_AFTER_FREE);
  }

  @Test
  void graphsAndTheirCopies_areLeakedUnlessTheyAreDestroyed() {
    long graph = filling();
    long copy = driver.graphs().graphClone(graph);
    assertThat(driver.leaks())
        .extracting(SanitizerReport::message)
        .anyMatch(text -> text.contains("graph 0x%x is never freed".formatted(graph)))
        .anyMatch(text -> text.contains("graph 0x%x is never freed".formatted(copy)));
    driver.graphs().graphDestroy(copy);
    driver.graphs().graphDestroy(graph);
    assertThat(reports).isEmpty();
    assertThat(driver.leaks())
        .extracting(SanitizerReport::message)
        .noneMatch(text -> text.contains("graph"));
  }

  /** It runs at no moment that is known, if the driver takes it at all. */
  @Test
  void launchInACapture_isNone() {
    long executable = instantiate(filling());
    fill(other);
    driver.captures().streamBeginCapture(0, one, RELAXED);
    assertThatThrownBy(() -> launch(executable, one)).isInstanceOf(CudaException.class);
    assertThat(reports).isEmpty();
  }

  /** As one that does not look where it launches. */
  @Test
  void launchInACapture_orWhereNoStreamIs_isNone_alsoIfTheDriverTakesIt() {
    CudaDriver lenient =
        DriverProxy.of((method, arguments) ->
            method.getName().equals("graphLaunch")
                ? null
                : DriverProxy.forward(below, method, arguments));
    SanitizerDriver above = SanitizerDriver.reporting(lenient, reports::add, Misuse.LEAK);
    long stream = above.streams().streamCreateWithPriority(0, 1, 0);
    long busy = above.streams().streamCreateWithPriority(0, 1, 0);
    long address = above.memory().memAlloc(0, BYTES);
    long graph = above.graphs().graphCreate();
    var node = new GraphNodeParams.Fill(address, 3, 1, BYTES);
    assertThat(above.graphs().graphAddNode(0, graph, new long[0], node)).isNotNull();
    long executable = above.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    above.captures().streamBeginCapture(0, stream, RELAXED);
    above.graphs().graphLaunch(0, executable, stream);
    above.graphs().graphDestroy(above.captures().streamEndCapture(0, stream));
    above.transfers().memsetD8Async(0, address, (byte) 7, BYTES, busy);
    assertThat(reports).isEmpty();
    above.streams().streamDestroy(0, stream);
    above.graphs().graphLaunch(0, executable, stream);
    assertOnly(Misuse.DESTROYED_HANDLE);
  }

  private void assertNoStreamCaptures() {
    fill(one);
    driver.devices().ctxSynchronize(0);
    assertThat(reports).isEmpty();
    fill(one);
    fill(other);
    assertOnly(Misuse.RACE);
    driver.devices().ctxSynchronize(0);
  }

  @Test
  void captureThatEndedInVain_isOverForAllItsStreams() {
    long event = driver.events().eventCreate(0, 2);
    driver.captures().streamBeginCapture(0, one, RELAXED);
    driver.events().eventRecord(0, event, one);
    driver.streams().streamWaitEvent(0, other, event);
    fill(other);
    assertThatThrownBy(() -> driver.captures().streamEndCapture(0, one))
        .isInstanceOfSatisfying(
            CudaException.class,
            e -> assertThat(e.status()).isEqualTo(CudaStatus.STREAM_CAPTURE_UNJOINED));
    assertNoStreamCaptures();
  }

  @Test
  void captureThatSomebodyElseEnded_isOver_onceTheDriverSaysSo() {
    driver.captures().streamBeginCapture(0, one, RELAXED);
    assertThat(driver.captures().streamIsCapturing(0, one)).isEqualTo(1);
    fill(one);
    fill(other); // which is no race yet
    assertThat(reports).isEmpty();
    below.graphs().graphDestroy(below.captures().streamEndCapture(0, one));
    assertThat(driver.captures().streamIsCapturing(0, one)).isZero();
    driver.devices().ctxSynchronize(0);
    assertNoStreamCaptures();
  }
}
