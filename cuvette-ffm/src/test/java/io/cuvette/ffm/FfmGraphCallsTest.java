package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.driver.InstantiatedGraph;
import java.util.List;
import java.util.Map;
import java.util.function.LongFunction;
import java.util.stream.LongStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Graphs, their nodes, and what is instantiated from them: which calls the library gets. */
class FfmGraphCallsTest extends StubDriverTest {
  private GraphCalls graphs;

  @BeforeEach
  void graphs() {
    graphs = driver.graphs();
  }

  @Test
  void instantiation_givesTheExecutable_orTheReason() {
    library.answer(0x99, 0);
    assertThat(graphs.graphInstantiateWithParams(1, 0xabc, 3, 0x5))
        .isEqualTo(new InstantiatedGraph(0x99, 0, 0));
    library.answer(0x99, 5);
    assertThat(graphs.graphInstantiateWithParams(1, 0xabc, 0, 0))
        .isEqualTo(new InstantiatedGraph(0, 5, 0xe0de));
    library.answer(0x99, 1);
    assertThatThrownBy(() -> graphs.graphInstantiateWithParams(1, 0xabc, 8, 0))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("cuGraphInstantiateWithParams(graph=0xabc, flags=8, device=1)");
    notedInAnyContext(
        "cuGraphInstantiateWithParams@12000(abc, 3, 5)",
        "cuGraphInstantiateWithParams@12000(abc, 0, 0)",
        "cuGraphInstantiateWithParams@12000(abc, 8, 0)");
  }

  @Test
  void update_givesTheReason() {
    library.answer(0, 0);
    assertThat(graphs.graphExecUpdate(1, 0x99, 0xabc).result()).isZero();
    library.answer(4, 0);
    assertThat(graphs.graphExecUpdate(1, 0x99, 0xabc))
        .isEqualTo(new GraphUpdateResult(4, 0xe0de, 0xe0df));
    library.answer(1, 0);
    assertThatThrownBy(() -> graphs.graphExecUpdate(1, 0x99, 0xabc))
        .isInstanceOfSatisfying(
            CudaException.class,
            e -> assertThat(e.status()).isEqualTo(CudaStatus.GRAPH_EXEC_UPDATE_FAILURE));
  }

  /** What a call before left in the same memory is no reason of this one. */
  @Test
  void updateThatFailsBeforeItHasAReason_isTheError() {
    library.answer(0x99, 0);
    graphs.graphInstantiateWithParams(1, 0xabc, 8, 0);
    library.fail("cuGraphExecUpdate", 2);
    assertThatThrownBy(() -> graphs.graphExecUpdate(1, 0x99, 0xabc))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY));
  }

  @Test
  void instantiationThatFailsBeforeItHasAReason_isTheError() {
    library.answer(0x99, 5);
    assertThat(graphs.graphInstantiateWithParams(1, 0xabc, 0, 0).result()).isEqualTo(5);
    library.fail("cuGraphInstantiateWithParams", 2);
    assertThatThrownBy(() -> graphs.graphInstantiateWithParams(1, 0xabc, 0, 0))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY));
  }

  @Test
  void executables() {
    library.answer(9, 0);
    assertThat(graphs.graphExecGetFlags(0x99)).isEqualTo(9);
    graphs.graphUpload(1, 0x99, 0x5);
    graphs.graphNodeSetEnabled(0x99, 0x11, false);
    graphs.graphNodeSetEnabled(0x99, 0x11, true);
    assertThat(graphs.graphNodeGetEnabled(0x99, 0x11)).isTrue();
    library.answer(0, 0);
    assertThat(graphs.graphNodeGetEnabled(0x99, 0x12)).isFalse();
    notedInAnyContext(
        "cuGraphExecGetFlags@12000(99)",
        "cuGraphUpload@11010(99, 5)",
        "cuGraphNodeSetEnabled@11060(99, 11, 0)",
        "cuGraphNodeSetEnabled@11060(99, 11, 1)",
        "cuGraphNodeGetEnabled@11060(99, 11)",
        "cuGraphNodeGetEnabled@11060(99, 12)");
  }

  @Test
  void graphsAndNodes() {
    library.answer(7, 0);
    assertThat(graphs.graphCreate()).isEqualTo(7);
    assertThat(graphs.graphClone(0xabc)).isEqualTo(7);
    assertThat(graphs.graphNodeGetType(0x11)).isEqualTo(GraphNodeType.EVENT_RECORD);
    assertThat(graphs.graphNodeFindInClone(0x11, 0xabd)).isEqualTo(7);
    graphs.graphDestroyNode(0x11);
    assertThat(graphs.graphConditionalHandleCreate(1, 0xabc, 3, true)).isEqualTo(7);
    assertThat(graphs.graphConditionalHandleCreate(0, 0xabc, 4, false)).isEqualTo(7);
    notedInAnyContext(
        "cuGraphCreate@10000(0)",
        "cuGraphClone@10000(abc)",
        "cuGraphNodeGetType@10000(11)",
        "cuGraphNodeFindInClone@10000(11, abd)",
        "cuGraphDestroyNode@10000(11)",
        "cuGraphConditionalHandleCreate@12030(abc, c001, 3, 1)",
        "cuGraphConditionalHandleCreate@12030(abc, c000, 4, 0)");
  }

  @Test
  void nodesAndEdges_areListed() {
    library.answer(0, 0);
    assertThat(graphs.graphGetNodes(0xabc)).isEmpty();
    assertThat(graphs.graphGetEdges(0xabc)).isEmpty();
    library.answer(3, 0);
    long[] three = {100, 101, 102};
    assertThat(graphs.graphGetNodes(0xabc)).isEqualTo(three);
    assertThat(graphs.graphGetRootNodes(0xabc)).isEqualTo(three);
    assertThat(graphs.graphNodeGetDependencies(0x11)).isEqualTo(three);
    assertThat(graphs.graphNodeGetDependentNodes(0x11)).isEqualTo(three);
    library.answer(2, 0);
    List<GraphEdge> edges = List.of(new GraphEdge(100, 200), new GraphEdge(101, 201));
    assertThat(graphs.graphGetEdges(0xabc)).isEqualTo(edges);
    library.reset();
    graphs.graphAddDependencies(0xabc, edges);
    graphs.graphRemoveDependencies(0xabc, edges);
    notedInAnyContext(
        "cuGraphAddDependencies@12030(abc, 65, c9, 0, 2)",
        "cuGraphRemoveDependencies@12030(abc, 65, c9, 0, 2)");
  }

  /** The driver refuses room for none. */
  @Test
  void listsOfAnyLength_areAskedForOnce_andReadIfTheyAreNotEmpty() {
    Map<String, LongFunction<?>> lists =
        Map.of(
            "cuGraphGetNodes", graphs::graphGetNodes,
            "cuGraphGetRootNodes", graphs::graphGetRootNodes,
            "cuGraphNodeGetDependencies", graphs::graphNodeGetDependencies,
            "cuGraphNodeGetDependentNodes", graphs::graphNodeGetDependentNodes,
            "cuGraphGetEdges", graphs::graphGetEdges);
    lists.forEach((function, list) -> {
      for (int count : new int[] {0, 1, 2, 5}) {
        library.reset();
        boolean isOneGone = count == 2; // when the driver is asked which there are
        library.answer(isOneGone ? count + 1 : count, isOneGone ? 0x1e55 : 0);
        Object found = list.apply(0xabc);
        List<Long> from =
            found instanceof long[] nodes
                ? LongStream.of(nodes).boxed().toList()
                : ((List<?>) found).stream().map(edge -> ((GraphEdge) edge).from()).toList();
        assertThat(from)
            .as("%s of %d", function, count)
            .isEqualTo(LongStream.range(100, 100 + count).boxed().toList());
        assertThat(callsInAnyContext())
            .as("%s of %d", function, count)
            .hasSize(count == 0 ? 1 : 2)
            .allMatch(call -> call.startsWith(function + "@"));
      }
    });
  }

  /** The first call asks how many there are, the second one which. */
  @Test
  void listsThatCannotBeRead_areFailures() {
    secondCallFails("cuGraphGetEdges@12030(abc, ", () -> graphs.graphGetEdges(0xabc));
    secondCallFails(
        "cuGraphNodeGetDependencies@12030(11, ", () -> graphs.graphNodeGetDependencies(0x11));
    secondCallFails(
        "cuGraphNodeGetDependentNodes@12030(11, ", () -> graphs.graphNodeGetDependentNodes(0x11));
  }

  private void secondCallFails(String call, ThrowingCallable list) {
    library.reset();
    library.answer(2, 0);
    library.fail(call + "1", 400);
    assertThatThrownBy(list)
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.INVALID_HANDLE));
    notedInAnyContext(call + "0)", call + "1)");
  }

  @Test
  void dot_isWhatTheDriverWrites() {
    assertThat(graphs.graphDebugDotPrint(0xabc, 1)).isEqualTo("digraph dot { 1 }");
    notedInAnyContext("cuGraphDebugDotPrint@11030(abc, 1)");
  }

  @Test
  void memoryOfGraphs() {
    library.answer(1L << 33, 0);
    assertThat(graphs.deviceGetGraphMemAttribute(1, GraphMemAttribute.RESERVED_HIGH))
        .isEqualTo(1L << 33);
    graphs.deviceResetGraphMemAttribute(1, GraphMemAttribute.USED_HIGH);
    graphs.deviceGraphMemTrim(1);
    assertThat(callsInAnyContext())
        .satisfiesExactly(
            call -> assertThat(call).matches("cuDeviceGetGraphMemAttribute@11040\\(\\d+, 3\\).*"),
            call ->
                assertThat(call).matches("cuDeviceSetGraphMemAttribute@11040\\(\\d+, 1, 0\\).*"),
            call -> assertThat(call).matches("cuDeviceGraphMemTrim@11040\\(\\d+\\).*"));
  }
}
