package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphDependency;
import io.cuvette.GraphNode;
import io.cuvette.GraphOptions;
import io.cuvette.MemoryPool;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Graph;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What a driver answers in the place of an error is told in words, and the node is named. */
class GraphRefusalsTest {
  private static final Map<Integer, String> OF_INSTANTIATION =
      Map.of(
          2, "the graph's structure is not valid, such as a cycle",
          3, "the operation of a node cannot be instantiated",
          4, "its work is of several contexts",
          5, "the handle of a condition has no conditional node",
          77, "CUgraphInstantiateResult 77");

  private static final Map<Integer, String> OF_UPDATE =
      Map.of(
          2, "the graph has other nodes or edges than the one that was instantiated",
          3, "a node has another type than before",
          4, "a kernel is another one (empty node 0x%x), which this driver does not support",
          5, "parameters changed that cannot",
          6, "a node cannot be updated",
          7, "a kernel is another one, of other attributes",
          8, "attributes of a node changed",
          77, "CUgraphExecUpdateResult 77");

  @CudaTest(simulatedOnly = true)
  void graphThatIsNotInstantiated_saysWhy_andWhere(
      ScriptedDriver driver, @NonBlocking CudaStream stream) {
    try (CudaGraph graph = stream.capture(() -> {})) {
      long node = graph.handle();
      OF_INSTANTIATION.forEach((result, text) -> {
        driver.answer("graphInstantiateWithParams", _ -> new InstantiatedGraph(0, result, 0));
        assertThatExceptionOfType(CudaException.class)
            .isThrownBy(graph::instantiate)
            .satisfies(e -> assertThat(e.status()).isEqualTo(CudaStatus.INVALID_VALUE))
            .withMessageContaining("cuGraphInstantiateWithParams")
            .withMessageContaining(text)
            .withMessageNotContaining("node 0x");
      });
      driver.answer("graphInstantiateWithParams", _ -> new InstantiatedGraph(0, 2, node));
      assertThatExceptionOfType(CudaException.class) // no node of the driver: its type is not known
          .isThrownBy(graph::instantiate)
          .withMessageContaining("such as a cycle (node 0x%x)", node);
      driver.unscript("graphInstantiateWithParams");
      graph.instantiate().close();
    }
  }

  @CudaTest(simulatedOnly = true)
  void graphThatTheDriverRefuses_saysAtWhichNode(
      ScriptedDriver driver, Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer out = pool.allocate(64, stream);
        CudaGraph graph = stream.capture(() -> out.fill((byte) 2, stream))) {
      long[] node = new long[1];
      driver.answer(
          "graphInstantiateWithParams",
          call -> {
            node[0] = cuda.driver().graphs().graphGetNodes(call.argument("graph", Long.class))[0];
            return new InstantiatedGraph(0, 3, node[0]);
          });
      assertThatExceptionOfType(CudaException.class)
          .isThrownBy(graph::instantiate)
          .withMessageContaining(
              "cannot be instantiated (memset node 0x%x), such as one for launches"
                  .formatted(node[0]));
      driver.unscript("graphInstantiateWithParams");
      graph.instantiate().close();
    }
  }

  @CudaTest(simulatedOnly = true)
  void updateThatIsRefused_saysWhy_andLeavesTheExecutable(
      ScriptedDriver driver, @NonBlocking CudaStream stream) {
    try (CudaGraph graph = stream.capture(() -> {});
        CudaGraphExec executable = graph.instantiate()) {
      OF_UPDATE.forEach((result, text) -> {
        driver.answer("graphNodeGetType", _ -> GraphNodeType.EMPTY);
        driver.answer("graphExecUpdate", _ -> new GraphUpdateResult(result, 0x12, 0));
        assertThatExceptionOfType(CudaException.class)
            .isThrownBy(() -> executable.update(graph))
            .satisfies(e -> assertThat(e.status()).isEqualTo(CudaStatus.GRAPH_EXEC_UPDATE_FAILURE))
            .withMessageContaining(text.replace("0x%x", "0x12"))
            .withMessageContaining("empty node 0x12")
            .withMessageContaining("; the executable is as it was");
      });
      executable.launch(stream);
      stream.synchronize();
    }
  }

  private static void refused(
      Map<String, Runnable> calls, Class<? extends Exception> type, String text) {
    calls.forEach((name, call) ->
        assertThatExceptionOfType(type).as(name).isThrownBy(call::run).withMessageContaining(text));
  }

  private static Map<String, Runnable> usesIn(CudaGraphExec executable, GraphNode node, Buffer to) {
    return Map.of(
        "updateIn", () -> node.updateIn(executable).fill(to, (byte) 2),
        "setEnabledIn", () -> node.setEnabledIn(executable, false),
        "isEnabledIn",
            () -> {
              boolean _ = node.isEnabledIn(executable);
            });
  }

  /** The driver does not survive a node that it has not. */
  @CudaTest
  void nodeThatWasRemoved_isRefusedByAllThatTakesOne(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer to = pool.allocate(64, stream);
        GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      GraphNode node = definition.root().fill(to, (byte) 1);
      GraphNode other = definition.root().empty();
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        node.remove();
        Map<String, Runnable> calls = new HashMap<>(usesIn(executable, node, to));
        calls.put("type", node::type);
        calls.put("parameters", node::parameters);
        calls.put("priority", node::priority);
        calls.put("setPriority", () -> node.setPriority(0));
        calls.put("dependencies", node::dependencies);
        calls.put("dependents", node::dependents);
        calls.put("update", () -> node.update().fill(to, (byte) 2));
        calls.put("edge from", () -> definition.edges().add(new GraphDependency(node, other)));
        calls.put("edge to", () -> definition.edges().add(new GraphDependency(other, node)));
        calls.put("after", () -> definition.after(node).empty());
        calls.put("remove", node::remove);
        refused(calls, IllegalStateException.class, "was removed");
        assertThat(definition.edges().remove(new GraphDependency(node, other))).isFalse();
        assertThat(definition.edges().remove(new GraphDependency(other, node))).isFalse();
        assertThat(definition.nodes().remove(node)).isFalse();
        assertThat(definition.nodes()).containsExactly(other);
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void nodesAndExecutablesOfOtherGraphs_areRefusedByAllThatTakesThem(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer to = pool.allocate(64, stream);
        GraphDefinition definition = new GraphDefinition(cuda.device(0));
        GraphDefinition another = new GraphDefinition(cuda.device(0));
        CudaGraphExec before = definition.graph().instantiate();
        CudaGraphExec others = another.graph().instantiate()) {
      GraphNode node = definition.root().fill(to, (byte) 1);
      GraphNode theirs = another.root().empty();
      Class<IllegalArgumentException> type = IllegalArgumentException.class;
      refused(usesIn(others, node, to), type, "was not instantiated from");
      refused(usesIn(before, node, to), type, "was added after");
      refused(
          Map.of(
              "from", () -> definition.edges().add(new GraphDependency(theirs, node)),
              "to", () -> definition.edges().add(new GraphDependency(node, theirs)),
              "after", () -> definition.after(node, theirs).empty()),
          type,
          "(expected: a node of ");
      assertThat(definition.edges().remove(new GraphDependency(theirs, node))).isFalse();
      assertThat(definition.edges().remove(new GraphDependency(node, theirs))).isFalse();
      assertThat(definition.nodes().remove(theirs)).isFalse();
      assertThat(definition.nodes()).containsExactly(node);
      assertThat(another.nodes()).containsExactly(theirs);
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest(simulatedOnly = true)
  void optionsOfAnExecutable_areTheFlagsOfTheDriver(
      ScriptedDriver driver, @NonBlocking CudaStream stream) {
    driver.note("graphInstantiateWithParams", call -> "" + call.number("flags"));
    try (CudaGraph graph = stream.capture(() -> {})) {
      graph.instantiate().close();
      for (boolean frees : new boolean[] {false, true}) {
        for (boolean priorities : new boolean[] {false, true}) {
          GraphOptions options =
              GraphOptions.DEFAULTS.withFreeOnLaunch(frees).withNodePriorities(priorities);
          graph.instantiate(options).close();
        }
      }
    }
    assertThat(driver.takeNotes()).containsExactly("0", "0", "8", "1", "9");
  }

  /** Its handle may be that of another by then. */
  @CudaTest(simulatedOnly = true)
  void nodeThatOthersRemoved_isKnownToBeGone_onceTheNodesWereListed(Cuda cuda) {
    GraphCalls others = cuda.driver().graphs();
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      GraphNode gone = definition.root().empty();
      long handle = others.graphGetNodes(definition.graph().handle())[0];
      GraphNode other = definition.after(gone).empty();
      others.graphDestroyNode(handle);
      assertThat(definition.nodes()).containsExactly(other);
      refused(
          Map.of(
              "type", gone::type,
              "after", () -> definition.after(gone).empty(),
              "remove", gone::remove),
          IllegalStateException.class,
          "was removed");
      assertThat(definition.nodes()).containsExactly(other);
    }
  }

  /** Two drivers may give the same handle. */
  @CudaTest(simulatedOnly = true)
  void edgeOfAnotherCuda_isNotRemoved_thoughItsNodesHaveTheSameHandles() {
    CudaOptions options = CudaOptions.simulated();
    try (Cuda here = Cuda.open(options);
        Cuda there = Cuda.open(options);
        GraphDefinition ours = new GraphDefinition(here.device(0));
        GraphDefinition theirs = new GraphDefinition(there.device(0))) {
      GraphDependency own = new GraphDependency(ours.root().empty(), ours.root().empty());
      GraphDependency other = new GraphDependency(theirs.root().empty(), theirs.root().empty());
      assertThat(ours.edges().add(own)).isTrue();
      assertThat(theirs.edges().add(other)).isTrue();
      assertThat(own.from().handle()).isEqualTo(other.from().handle());
      assertThat(own.from()).isNotEqualTo(other.from());
      assertThat(ours.nodes()).doesNotContain(other.from(), other.to());
      assertThat(ours.edges().remove(other)).isFalse();
      assertThat(ours.edges().remove(new GraphDependency(other.from(), own.to()))).isFalse();
      assertThat(ours.edges().remove(new GraphDependency(own.from(), other.to()))).isFalse();
      assertThat(ours.edges()).containsExactly(own);
      assertThat(ours.edges().remove(own)).isTrue();
      assertThat(theirs.edges()).containsExactly(other);
    }
  }

  /** The driver gives the values of handles again. */
  @CudaTest(simulatedOnly = true)
  void edgeOfARemovedNode_isNotTakenForThatOfOneWithItsHandle(Cuda cuda, ScriptedDriver driver) {
    try (GraphDefinition graph = new GraphDefinition(cuda.device(0))) {
      GraphNode stays = graph.root().empty();
      GraphNode goes = graph.root().empty();
      driver.answer("graphGetEdges", _ -> edges(stays, goes));
      goes.remove();
      assertThat(graph.edges().remove(new GraphDependency(goes, stays))).isFalse();
      assertThat(graph.edges().remove(new GraphDependency(stays, goes))).isFalse();
      assertThat(driver.count("graphRemoveDependencies")).isZero();
      driver.unscript("graphGetEdges");
    }
  }

  private static List<GraphEdge> edges(GraphNode one, GraphNode other) {
    return List.of(
        new GraphEdge(one.handle(), other.handle()), new GraphEdge(other.handle(), one.handle()));
  }
}
