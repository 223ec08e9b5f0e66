package io.cuvette.sim;

import static io.cuvette.sim.SimulatedParameter.INT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Refusals of graphs and kernels with all numbers that they name. */
class WholeMessagesTest extends SimTestBase {
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;
  private static final LaunchShape ONE =
      new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);

  private final SimulatedKernel adding = SimulatedKernel.of("addsNumbers", _ -> {}, INT, INT);
  private final long graph = driver.graphs().graphCreate();

  private long add(long to, GraphNodeParams params) {
    return driver.graphs().graphAddNode(0, to, new long[0], params).node();
  }

  private long kernel() {
    long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(adding)));
    return driver.kernels().libraryGetKernel(library, adding.name());
  }

  private static LaunchParameters numbers(int... numbers) {
    MemorySegment values = Arena.ofAuto().allocateFrom(JAVA_INT, numbers);
    return new LaunchParameters(
        values, List.of(new KernelParameter(0, 4), new KernelParameter(4, 4)));
  }

  @Test
  void conditionsThatANodeCannotRead_areNamed() {
    long other = driver.graphs().graphCreate();
    long condition = driver.graphs().graphConditionalHandleCreate(0, graph, 1, true);
    GraphNodeParams once = new GraphNodeParams.Conditional(condition, GraphConditionType.IF, 1);
    assertFails(
        INVALID,
        "condition: 0x%x of graph 0x%x (expected: of graph 0x%x or one around it)"
            .formatted(condition, graph, other),
        () -> add(other, once));
    Map<GraphNodeParams, String> sizes = new LinkedHashMap<>();
    GraphConditionType either = GraphConditionType.IF;
    GraphConditionType loop = GraphConditionType.WHILE;
    GraphConditionType choice = GraphConditionType.SWITCH;
    sizes.put(new GraphNodeParams.Conditional(condition, either, 0), "size: 0 (expected: 1 to 2 ");
    sizes.put(new GraphNodeParams.Conditional(condition, either, 3), "size: 3 (expected: 1 to 2 ");
    sizes.put(new GraphNodeParams.Conditional(condition, loop, 2), "size: 2 (expected: 1 to 1 ");
    sizes.put(
        new GraphNodeParams.Conditional(condition, choice, -1),
        "size: -1 (expected: 1 to 2147483647 for SWITCH)");
    sizes.forEach((params, rule) -> assertFails(INVALID, rule, () -> add(graph, params)));
    assertThat(driver.graphs().graphGetNodes(graph)).isEmpty();
    long node = add(graph, once);
    assertFails(
        INVALID,
        "condition: 0x%x (expected: of device 0, and of no other node)".formatted(condition),
        () -> add(graph, once));
    assertFails(
        CudaStatus.NOT_SUPPORTED,
        "graph 0x%x has the conditional node 0x%x: it cannot be cloned".formatted(graph, node),
        () -> driver.graphs().graphClone(graph));
  }

  @Test
  void memoryThatALaunchLeft_isNamedByTheNext() {
    long address =
        driver
            .graphs()
            .graphAddNode(
                0, graph, new long[0], new GraphNodeParams.Allocation(0, 64, List.of(), 0))
            .address();
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    driver.graphs().graphLaunch(0, executable, 0);
    assertFails(
        INVALID,
        "0x%x of the launch before was not freed".formatted(address),
        () -> driver.graphs().graphLaunch(0, executable, 0));
    driver.streams().streamSynchronize(0, 0);
  }

  @Test
  void parameterThatAKernelDoesNotHave_isToldTheNumberOfThem() {
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(adding)) {
      long kernel = kernel();
      for (int index : new int[] {-1, 2, Integer.MAX_VALUE}) {
        assertFails(
            INVALID,
            "index: %d (expected: >= 0 and below 2, the number of parameters)".formatted(index),
            () -> driver.kernels().kernelGetParamInfo(kernel, index));
      }
      assertFails(
          INVALID,
          "1 arguments (expected: 2, those of addsNumbers)",
          () ->
              driver
                  .kernels()
                  .launchKernel(
                      0,
                      0,
                      kernel,
                      ONE,
                      new LaunchParameters(
                          Arena.ofAuto().allocate(JAVA_INT), List.of(new KernelParameter(0, 4)))));
    }
  }

  /** Who reads what a node has may do with it what he likes. */
  @Test
  void argumentsThatWereRead_areACopyOfThoseOfTheNode() {
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(adding)) {
      LaunchParameters given = numbers(5, 6);
      long node = add(graph, new GraphNodeParams.Kernel(kernel(), ONE, given));
      given.values().fill((byte) 1);
      for (int i = 0; i < 2; i++) {
        assertThat(driver.graphs().graphNodeGetParams(node))
            .isInstanceOfSatisfying(
                GraphNodeParams.Kernel.class,
                read -> {
                  MemorySegment values = read.parameters().values();
                  assertThat(values.toArray(JAVA_INT)).containsExactly(5, 6);
                  values.fill((byte) 2);
                });
      }
    }
  }

  @Test
  void wordThatNobodyWrites_isNamedWhereAQueueStandsForIt() {
    SimulatedOptions options = SimulatedOptions.parse("queues=1,queuePatience=64");
    try (SimulatedDriver shared = SimulatedDriver.open(options)) {
      long held = shared.streams().streamCreateWithPriority(0, 1, 0);
      long behind = shared.streams().streamCreateWithPriority(0, 1, 0);
      MemorySegment word = shared.memory().memHostAlloc(0, 4, 0);
      word.set(JAVA_INT, 0, 0);
      shared.streams().streamWaitValue32(0, held, word.address(), 7, 1);
      long memory = shared.memory().memAlloc(0, 64);
      shared.transfers().memsetD8Async(0, memory, (byte) 1, 64, behind);
      assertFails(
          CudaStatus.LAUNCH_TIMEOUT,
          "cuStreamWaitValue32(stream=0x%x, address=0x%x, value=7, flags=1)"
              .formatted(held, word.address()),
          () -> shared.streams().streamSynchronize(0, behind));
    }
  }
}
