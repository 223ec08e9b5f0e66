package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.UserObject;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Graphs in wrong hands: many threads, things that end while they run, all orders of branches. */
@Timeout(180)
class HostileGraphsTest extends SimTestBase {
  private static final int SEEDS = 200;
  private static final int THREADS = 6;
  private static final int CALLS = 1500;
  private static final int SHARED = 4;

  private final List<Integer> order = new ArrayList<>();
  private final SimulatedKernel noting =
      SimulatedKernel.of("notesItsNumber", t -> order.add(t.intValue(0)), SimulatedParameter.INT);
  private final SimulatedKernels.Registered registered = SimulatedKernels.register(noting);

  private final long stream = stream(0);

  @AfterEach
  void unregister() {
    registered.close();
  }

  /** A kernel that notes a number when it runs. */
  private GraphNodeParams.Kernel note(SimulatedDriver driver, int number) {
    long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(noting)));
    MemorySegment values = Arena.ofAuto().allocate(4, 8);
    values.set(ValueLayout.JAVA_INT, 0, number);
    return new GraphNodeParams.Kernel(
        driver.kernels().libraryGetKernel(library, noting.name()),
        new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false),
        new LaunchParameters(values, List.of(new KernelParameter(0, 4))));
  }

  private static long add(
      SimulatedDriver driver, long graph, GraphNodeParams params, long... dependencies) {
    return driver.graphs().graphAddNode(0, graph, dependencies, params).node();
  }

  private static long instantiate(SimulatedDriver driver, long graph, long flags) {
    InstantiatedGraph made = driver.graphs().graphInstantiateWithParams(0, graph, flags, 0);
    assertThat(made.result()).isZero();
    return made.executable();
  }

  private static GraphNodeParams.Fill fill(long address, int value) {
    return new GraphNodeParams.Fill(address, value, 1, 4);
  }

  @Test
  void branches_comeInAnyOrder_andNothingElseDoes() {
    Set<List<Integer>> orders = new HashSet<>();
    for (int seed = 0; seed < SEEDS; seed++) {
      order.clear();
      try (SimulatedDriver own = SimulatedDriver.open(SimulatedOptions.parse("seed=" + seed))) {
        long queue = own.streams().streamCreateWithPriority(0, 1, 0);
        long graph = own.graphs().graphCreate();
        long start = add(own, graph, note(own, 0));
        long left = add(own, graph, note(own, 1), start);
        long next = add(own, graph, note(own, 2), left);
        long right = add(own, graph, note(own, 3), start);
        add(own, graph, note(own, 4), next, right);
        own.graphs().graphLaunch(0, instantiate(own, graph, 0), queue);
        own.streams().streamSynchronize(0, queue);
      }
      orders.add(List.copyOf(order));
    }
    assertThat(orders)
        .containsExactlyInAnyOrder(
            List.of(0, 1, 2, 3, 4), List.of(0, 1, 3, 2, 4), List.of(0, 3, 1, 2, 4));
  }

  @Test
  void branchBesideACondition_isNotInOrderWithIt() {
    Set<List<Integer>> orders = new HashSet<>();
    for (int seed = 0; seed < SEEDS; seed++) {
      order.clear();
      try (SimulatedDriver own = SimulatedDriver.open(SimulatedOptions.parse("seed=" + seed))) {
        long queue = own.streams().streamCreateWithPriority(0, 1, 0);
        long graph = own.graphs().graphCreate();
        long condition = own.graphs().graphConditionalHandleCreate(0, graph, 1, true);
        long start = add(own, graph, note(own, 0));
        AddedNode conditional =
            own.graphs()
                .graphAddNode(
                    0,
                    graph,
                    new long[] {start},
                    new GraphNodeParams.Conditional(condition, GraphConditionType.IF, 1));
        add(own, conditional.bodies().getFirst(), note(own, 1));
        add(own, graph, note(own, 2), start);
        add(own, graph, note(own, 3), conditional.node());
        own.graphs().graphLaunch(0, instantiate(own, graph, 0), queue);
        own.streams().streamSynchronize(0, queue);
      }
      orders.add(List.copyOf(order));
    }
    assertThat(orders)
        .containsExactlyInAnyOrder(List.of(0, 1, 2, 3), List.of(0, 1, 3, 2), List.of(0, 2, 1, 3));
  }

  @Test
  void launchesOfOneExecutable_neverOverlap_thoseOfTwoDo() {
    Set<List<Integer>> same = new HashSet<>();
    Set<List<Integer>> different = new HashSet<>();
    for (int seed = 0; seed < SEEDS; seed++) {
      same.add(twoLaunches(seed, false));
      different.add(twoLaunches(seed, true));
    }
    assertThat(same).containsExactly(List.of(1, 2, 1, 2));
    assertThat(different).contains(List.of(1, 2, 1, 2), List.of(1, 1, 2, 2));
  }

  private List<Integer> twoLaunches(int seed, boolean differ) {
    order.clear();
    try (SimulatedDriver own = SimulatedDriver.open(SimulatedOptions.parse("seed=" + seed))) {
      long one = own.streams().streamCreateWithPriority(0, 1, 0);
      long other = own.streams().streamCreateWithPriority(0, 1, 0);
      long graph = own.graphs().graphCreate();
      long first = add(own, graph, note(own, 1));
      add(own, graph, note(own, 2), first);
      long executable = instantiate(own, graph, 0);
      own.graphs().graphLaunch(0, executable, one);
      own.graphs().graphLaunch(0, differ ? instantiate(own, graph, 0) : executable, other);
      own.devices().ctxSynchronize(0);
    }
    return List.copyOf(order);
  }

  @Test
  void everythingMayEnd_whileALaunchRuns() {
    UserObject object = driver.graphs().userObjectCreate();
    long memory = driver.memory().memAlloc(0, 64);
    long graph = driver.graphs().graphCreate();
    driver.graphs().graphRetainUserObject(graph, object.handle());
    long made =
        driver
            .graphs()
            .graphAddNode(
                0, graph, new long[0], new GraphNodeParams.Allocation(0, 64, List.of(), 0))
            .node();
    long address =
        ((GraphNodeParams.Allocation) driver.graphs().graphNodeGetParams(made)).address();
    long filled = add(driver, graph, fill(address, 6), made);
    long copied = add(driver, graph, new GraphNodeParams.Copy(memory, address, 4), filled);
    add(driver, graph, new GraphNodeParams.Free(address), copied);
    long executable = instantiate(driver, graph, 0);
    CountDownLatch goOn = hold(0, stream);
    driver.graphs().graphLaunch(0, executable, stream);
    driver.graphs().graphDestroy(graph);
    driver.graphs().graphExecDestroy(executable);
    driver.streams().streamDestroy(0, stream);
    assertThat(object.isDestroyed()).isFalse();
    goOn.countDown();
    driver.devices().ctxSynchronize(0);
    assertThat(read(memory, 4)).containsExactly(6, 6, 6, 6);
    assertThat(object.isDestroyed()).isTrue();
    driver.memory().memFree(0, memory);
    driver.graphs().deviceGraphMemTrim(0);
    assertThat(driver.liveBytes(0)).isZero();
    assertFails(CudaStatus.INVALID_VALUE, "", () -> driver.memory().memFree(0, address));
  }

  @Test
  void memoryOfGraphs_thatIsNotThere_isRefusedBeforeAnythingChanged() {
    long graph = driver.graphs().graphCreate();
    for (int i = 0; i < 3; i++) {
      add(driver, graph, new GraphNodeParams.Allocation(0, 30 * MIB, List.of(), 0));
    }
    long executable = instantiate(driver, graph, 0);
    assertFails(
        CudaStatus.OUT_OF_MEMORY,
        "graphs of device 0",
        () -> driver.graphs().graphLaunch(0, executable, stream));
    assertThat(driver.graphs().deviceGetGraphMemAttribute(0, GraphMemAttribute.USED_CURRENT))
        .isZero();
    driver.streams().streamSynchronize(0, stream);
    driver.graphs().graphExecDestroy(executable);
    driver.graphs().graphDestroy(graph);
    assertThat(driver.liveBytes(0)).isZero();
  }

  /** Calls on shared handles from many threads, most of which name what is gone already. */
  @Test
  void manyThreads_getAnswersOrRefusals_andNothingIsLeft() throws Exception {
    long memory = driver.memory().memAlloc(0, 64);
    AtomicLongArray graphs = new AtomicLongArray(SHARED);
    AtomicLongArray executables = new AtomicLongArray(SHARED);
    try (ExecutorService pool = Executors.newFixedThreadPool(THREADS)) {
      List<Future<?>> all = new ArrayList<>();
      for (int i = 0; i < THREADS; i++) {
        SplittableRandom random = new SplittableRandom(i);
        all.add(
            pool.submit(() -> {
              long own = stream(0);
              for (int call = 0; call < CALLS; call++) {
                try {
                  callAnything(random, graphs, executables, own, memory);
                } catch (CudaException e) {
                  assertThat(e.status())
                      .isIn(
                          CudaStatus.INVALID_VALUE,
                          CudaStatus.INVALID_HANDLE,
                          CudaStatus.NOT_SUPPORTED);
                }
              }
            }));
      }
      for (Future<?> each : all) {
        each.get(150, TimeUnit.SECONDS);
      }
    }
    for (int i = 0; i < SHARED; i++) {
      end(executables.getAndSet(i, 0), driver.graphs()::graphExecDestroy);
      end(graphs.getAndSet(i, 0), driver.graphs()::graphDestroy);
    }
    driver.devices().ctxSynchronize(0);
    driver.memory().memFree(0, memory);
    assertThat(driver.liveGraphs()).isZero();
    assertThat(driver.liveExecutables()).isZero();
    assertThat(driver.liveUserObjects()).isZero();
    assertThat(driver.liveAllocations()).isZero();
    assertThat(driver.graphs().deviceGetGraphMemAttribute(0, GraphMemAttribute.USED_CURRENT))
        .isZero();
    driver.graphs().deviceGraphMemTrim(0);
    assertThat(driver.liveBytes(0)).isZero();
  }

  private static void end(long handle, LongConsumer action) {
    if (handle != 0) {
      action.accept(handle);
    }
  }

  private void callAnything(
      SplittableRandom random,
      AtomicLongArray graphs,
      AtomicLongArray executables,
      long own,
      long memory) {
    int at = random.nextInt(SHARED);
    long graph = graphs.get(at);
    long executable = executables.get(random.nextInt(SHARED));
    long[] nodes = graph == 0 ? new long[0] : driver.graphs().graphGetNodes(graph);
    long first = nodes.length == 0 ? 0 : nodes[0];
    long node = nodes.length == 0 ? 0 : nodes[random.nextInt(nodes.length)];
    switch (random.nextInt(14)) {
      case 0 -> end(graphs.getAndSet(at, some(memory)), driver.graphs()::graphDestroy);
      case 1 -> {
        long made = driver.graphs().graphInstantiateWithParams(0, graph, 1, 0).executable();
        end(executables.getAndSet(at, made), driver.graphs()::graphExecDestroy);
      }
      case 2, 3, 4 -> driver.graphs().graphLaunch(0, executable, own);
      case 5 -> add(driver, graph, fill(memory, random.nextInt(9)), node);
      case 6 -> driver.graphs().graphDestroyNode(node);
      case 7 -> driver.graphs().graphAddDependencies(graph, List.of(new GraphEdge(first, node)));
      case 8 -> driver.graphs().graphDestroy(driver.graphs().graphClone(graph));
      case 9 -> driver.graphs().graphExecUpdate(0, executable, graph);
      case 10 -> driver.graphs().graphNodeSetEnabled(executable, node, random.nextBoolean());
      case 11 -> driver.graphs().graphExecNodeSetParams(0, executable, node, fill(memory, 1));
      case 12 -> driver.graphs().graphUpload(0, executable, own);
      default -> {
        String _ = driver.graphs().graphDebugDotPrint(graph, 1);
        driver.streams().streamSynchronize(0, own);
      }
    }
  }

  /** A graph with memory of its own that lives as long as an object. */
  private long some(long memory) {
    long graph = driver.graphs().graphCreate();
    try {
      addAll(graph, memory);
    } catch (CudaException e) { // another thread removed a node of the same number
      driver.graphs().graphDestroy(graph);
      throw e;
    }
    return graph;
  }

  private void addAll(long graph, long memory) {
    driver.graphs().graphRetainUserObject(graph, driver.graphs().userObjectCreate().handle());
    long first = add(driver, graph, fill(memory, 1));
    long made =
        driver
            .graphs()
            .graphAddNode(
                0, graph, new long[] {first}, new GraphNodeParams.Allocation(0, 64, List.of(), 0))
            .node();
    long address =
        ((GraphNodeParams.Allocation) driver.graphs().graphNodeGetParams(made)).address();
    long used = add(driver, graph, fill(address, 2), made);
    add(driver, graph, new GraphNodeParams.Free(address), used);
  }
}
