package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphNodeParams;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** What a graph consists of, after whatever was added and removed, beside a model of it. */
class GraphModelTest extends SimTestBase {
  private static final int STEPS = 400;
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;

  private final SplittableRandom random = new SplittableRandom(5);
  private final long graph = driver.graphs().graphCreate();

  /** The nodes in their order, with what each waits for. */
  private final Map<Long, Set<Long>> model = new LinkedHashMap<>();

  private long add(long into, GraphNodeParams params, long... dependencies) {
    return driver.graphs().graphAddNode(0, into, dependencies, params).node();
  }

  private long any() {
    List<Long> nodes = List.copyOf(model.keySet());
    return nodes.get(random.nextInt(nodes.size()));
  }

  private void addSome() {
    Set<Long> after = new LinkedHashSet<>();
    for (int i = random.nextInt(3); i > 0 && !model.isEmpty(); i--) {
      after.add(any());
    }
    long[] dependencies = after.stream().mapToLong(Long::longValue).toArray();
    model.put(add(graph, new GraphNodeParams.Empty(), dependencies), after);
  }

  private void removeSome() {
    long gone = any();
    driver.graphs().graphDestroyNode(gone);
    model.remove(gone);
    model.values().forEach(after -> after.remove(gone));
  }

  /** Changes some edges in one call, which may be refused for any one of them. */
  private void changeEdges(boolean adds) {
    List<GraphEdge> edges = new ArrayList<>();
    for (int i = random.nextInt(4); i >= 0; i--) {
      edges.add(new GraphEdge(any(), any()));
    }
    if (!adds && random.nextInt(3) > 0) {
      edges.clear();
      model.forEach((to, after) -> after.forEach(from -> edges.add(new GraphEdge(from, to))));
      while (edges.size() > 2) {
        edges.remove(random.nextInt(edges.size()));
      }
      if (random.nextInt(4) == 0 && !edges.isEmpty()) {
        edges.add(edges.getFirst());
      }
    }
    boolean allowed = Set.copyOf(edges).size() == edges.size();
    for (GraphEdge edge : edges) {
      boolean isThere = model.getOrDefault(edge.to(), Set.of()).contains(edge.from());
      allowed &= isThere != adds && !(adds && edge.from() == edge.to());
    }
    if (!allowed) {
      assertFails(INVALID, "edge from", () -> call(edges, adds));
      return;
    }
    call(edges, adds);
    for (GraphEdge edge : edges) {
      Set<Long> after = model.getOrDefault(edge.to(), Set.of());
      assertThat(adds ? after.add(edge.from()) : after.remove(edge.from())).isTrue();
    }
  }

  private void call(List<GraphEdge> edges, boolean adds) {
    if (adds) {
      driver.graphs().graphAddDependencies(graph, edges);
    } else {
      driver.graphs().graphRemoveDependencies(graph, edges);
    }
  }

  private void assertIsAsTheModel() {
    assertThat(driver.graphs().graphGetNodes(graph))
        .containsExactly(model.keySet().toArray(Long[]::new));
    List<GraphEdge> edges = new ArrayList<>();
    model.forEach((to, after) -> after.forEach(from -> edges.add(new GraphEdge(from, to))));
    assertThat(driver.graphs().graphGetEdges(graph)).containsExactlyInAnyOrderElementsOf(edges);
    List<Long> roots = new ArrayList<>();
    model.forEach((node, after) -> {
      if (after.isEmpty()) {
        roots.add(node);
      }
      assertThat(driver.graphs().graphNodeGetDependencies(node))
          .containsExactlyInAnyOrder(after.toArray(Long[]::new));
      assertThat(driver.graphs().graphNodeGetDependentNodes(node))
          .containsExactlyInAnyOrder(
              edges.stream()
                  .filter(edge -> edge.from() == node)
                  .map(GraphEdge::to)
                  .toArray(Long[]::new));
    });
    assertThat(driver.graphs().graphGetRootNodes(graph))
        .containsExactlyInAnyOrder(roots.toArray(Long[]::new));
  }

  @Test
  void graph_isWhatWasAddedToItAndNotRemoved() {
    for (int step = 0; step < STEPS; step++) {
      int kind = random.nextInt(6);
      if (model.size() < 3 || kind < 2) {
        addSome();
      } else if (kind == 2 || model.size() > 12) {
        removeSome();
      } else {
        changeEdges(kind % 2 == 0);
      }
      assertIsAsTheModel();
    }
  }

  /** A node that is left without others behind it ends the graph: a launch waits for it. */
  @Test
  void launch_waitsForTheNodesBeforeOneThatIsGone() {
    SimulatedOptions lazy = SimulatedOptions.parse("pace=lazy");
    for (boolean removesEdge : new boolean[] {false, true}) {
      try (SimulatedDriver own = SimulatedDriver.open(lazy)) {
        List<Integer> ran = new ArrayList<>();
        var graphs = own.graphs();
        long made = graphs.graphCreate();
        long[] none = {};
        GraphNodeParams host = new GraphNodeParams.Host(() -> ran.add(1));
        long first = graphs.graphAddNode(0, made, none, host).node();
        GraphNodeParams empty = new GraphNodeParams.Empty();
        long last = graphs.graphAddNode(0, made, new long[] {first}, empty).node();
        if (removesEdge) {
          graphs.graphRemoveDependencies(made, List.of(new GraphEdge(first, last)));
        } else {
          graphs.graphDestroyNode(last);
        }
        long executable = graphs.graphInstantiateWithParams(0, made, 0, 0).executable();
        graphs.graphLaunch(0, executable, 0);
        own.streams().streamSynchronize(0, 0);
        assertThat(ran).containsExactly(1);
      }
    }
  }

  @Test
  void graphWithMemory_losesNothing_andIsNotCopied() {
    AddedNode made =
        driver
            .graphs()
            .graphAddNode(
                0, graph, new long[0], new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    long node = add(graph, new GraphNodeParams.Empty(), made.node());
    List<GraphEdge> edges = driver.graphs().graphGetEdges(graph);
    CudaStatus status = CudaStatus.NOT_SUPPORTED;
    String text = "nodes that allocate or free";
    assertFails(status, text, () -> driver.graphs().graphRemoveDependencies(graph, edges));
    assertFails(status, text, () -> driver.graphs().graphRemoveDependencies(graph, List.of()));
    assertFails(status, text, () -> driver.graphs().graphDestroyNode(node));
    assertFails(status, text, () -> driver.graphs().graphDestroyNode(made.node()));
    assertFails(status, text, () -> driver.graphs().graphClone(graph));
    long around = driver.graphs().graphCreate();
    assertFails(status, text, () -> add(around, new GraphNodeParams.Child(graph)));
    assertThat(driver.graphs().graphGetEdges(graph)).isEqualTo(edges).hasSize(1);
    assertThat(driver.graphs().graphGetNodes(graph)).containsExactly(made.node(), node);
    assertThat(driver.graphs().graphGetNodes(around)).isEmpty();
  }

  @Test
  void clone_hasTheCopiesOfItsNodes_asLongAsThoseAreThere() {
    long first = add(graph, new GraphNodeParams.Empty());
    long second = add(graph, new GraphNodeParams.Empty(), first);
    long clone = driver.graphs().graphClone(graph);
    long[] copies = driver.graphs().graphGetNodes(clone);
    assertThat(driver.graphs().graphNodeFindInClone(first, clone)).isEqualTo(copies[0]);
    assertThat(driver.graphs().graphNodeFindInClone(second, clone)).isEqualTo(copies[1]);
    long later = add(graph, new GraphNodeParams.Empty());
    driver.graphs().graphDestroyNode(copies[1]);
    for (long none : new long[] {later, second, copies[0]}) {
      assertFails(INVALID, "copy", () -> driver.graphs().graphNodeFindInClone(none, clone));
    }
    assertThat(driver.graphs().graphNodeFindInClone(first, clone)).isEqualTo(copies[0]);
    assertFails(INVALID, "copy", () -> driver.graphs().graphNodeFindInClone(first, graph));
  }

  @Test
  void addedNode_hasAnAddressIfItAllocates_andBodiesIfItIsConditional() {
    long memory = driver.memory().memAlloc(0, 64);
    long event = driver.events().eventCreate(0, 0);
    long inner = driver.graphs().graphCreate();
    add(inner, new GraphNodeParams.Empty());
    List<GraphNodeParams> plain =
        List.of(
            new GraphNodeParams.Empty(),
            new GraphNodeParams.Child(inner),
            new GraphNodeParams.Host(() -> {}),
            new GraphNodeParams.Copy(memory, memory + 32, 32),
            new GraphNodeParams.Fill(memory, 1, 1, 32),
            new GraphNodeParams.EventRecord(event),
            new GraphNodeParams.EventWait(event));
    for (GraphNodeParams params : plain) {
      AddedNode made = driver.graphs().graphAddNode(0, graph, new long[0], params);
      assertThat(made).isEqualTo(AddedNode.plain(made.node()));
    }
    for (GraphConditionType type : GraphConditionType.values()) {
      long condition = driver.graphs().graphConditionalHandleCreate(0, graph, 0, true);
      int size = type == GraphConditionType.SWITCH ? 3 : 1;
      AddedNode made =
          driver
              .graphs()
              .graphAddNode(
                  0, graph, new long[0], new GraphNodeParams.Conditional(condition, type, size));
      assertThat(made.address()).isZero();
      assertThat(made.bodies()).hasSize(size).doesNotHaveDuplicates();
      made.bodies().forEach(body -> assertThat(driver.graphs().graphGetNodes(body)).isEmpty());
    }
    AddedNode allocated =
        driver
            .graphs()
            .graphAddNode(
                0, graph, new long[0], new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    assertThat(allocated.bodies()).isEmpty();
    assertThat(driver.graphs().graphNodeGetParams(allocated.node()))
        .isEqualTo(new GraphNodeParams.Allocation(0, 64, List.of(), allocated.address()));
  }

  /** Operations of a stream may be of no bytes, and nodes may not. */
  @Test
  void copyOrFillOfNothing_isNoNode_howeverItComes() {
    long memory = driver.memory().memAlloc(0, 64);
    long copy = add(graph, new GraphNodeParams.Copy(memory, memory + 32, 32));
    long fill = add(graph, new GraphNodeParams.Fill(memory, 1, 1, 32));
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    List<GraphNodeParams> wrong = new ArrayList<>();
    for (long count : new long[] {0, -1, Long.MIN_VALUE}) {
      wrong.add(new GraphNodeParams.Copy(memory, memory + 32, count));
      for (int unit : new int[] {1, 2, 4}) {
        wrong.add(new GraphNodeParams.Fill(memory, 1, unit, count));
      }
    }
    for (int unit : new int[] {0, -1, 3, 8}) {
      wrong.add(new GraphNodeParams.Fill(memory, 1, unit, 1));
    }
    wrong.add(new GraphNodeParams.Fill(memory + 1, 1, 2, 1));
    wrong.add(new GraphNodeParams.Fill(memory + 2, 1, 4, 1));
    for (GraphNodeParams params : wrong) {
      long node = params instanceof GraphNodeParams.Copy ? copy : fill;
      assertFails(INVALID, "expected", () -> add(graph, params));
      assertFails(INVALID, "expected", () -> driver.graphs().graphNodeSetParams(0, node, params));
      assertFails(
          INVALID,
          "expected",
          () -> driver.graphs().graphExecNodeSetParams(0, executable, node, params));
    }
    assertThat(driver.graphs().graphGetNodes(graph)).containsExactly(copy, fill);
    assertThat(driver.graphs().graphNodeGetParams(copy))
        .isEqualTo(new GraphNodeParams.Copy(memory, memory + 32, 32));
    assertThat(driver.graphs().graphNodeGetParams(fill))
        .isEqualTo(new GraphNodeParams.Fill(memory, 1, 1, 32));
  }

  /** Nor are events that other processes may know, or those that are gone. */
  @Test
  void eventsOfNodes_areThoseOfThisProcessAlone() {
    long plain = driver.events().eventCreate(0, 0);
    long shared = driver.events().eventCreate(0, 6);
    long gone = driver.events().eventCreate(0, 0);
    driver.events().eventDestroy(0, gone);
    long record = add(graph, new GraphNodeParams.EventRecord(plain));
    long wait = add(graph, new GraphNodeParams.EventWait(plain));
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    for (long event : new long[] {shared, gone, NO_HANDLE, 0}) {
      CudaStatus status = event == shared ? INVALID : CudaStatus.INVALID_HANDLE;
      for (GraphNodeParams params :
          List.of(new GraphNodeParams.EventRecord(event), new GraphNodeParams.EventWait(event))) {
        long node = params instanceof GraphNodeParams.EventRecord ? record : wait;
        assertFails(status, "event", () -> add(graph, params));
        assertFails(status, "event", () -> driver.graphs().graphNodeSetParams(0, node, params));
        assertFails(
            status,
            "event",
            () -> driver.graphs().graphExecNodeSetParams(0, executable, node, params));
      }
    }
    assertThat(driver.graphs().graphGetNodes(graph)).containsExactly(record, wait);
    assertThat(driver.graphs().graphNodeGetParams(record))
        .isEqualTo(new GraphNodeParams.EventRecord(plain));
    assertThat(driver.graphs().graphNodeGetParams(wait))
        .isEqualTo(new GraphNodeParams.EventWait(plain));
  }

  /** Neither the node nor the graph in it is anything any more; another one may take its place. */
  @Test
  void nodeThatWasRemoved_isNone_norIsTheGraphInsideIt() {
    long kept = add(graph, new GraphNodeParams.Empty());
    long condition = driver.graphs().graphConditionalHandleCreate(0, graph, 0, true);
    var params = new GraphNodeParams.Conditional(condition, GraphConditionType.IF, 1);
    for (int i = 0; i < 2; i++) {
      AddedNode made = driver.graphs().graphAddNode(0, graph, new long[] {kept}, params);
      long gone = made.node();
      long body = made.bodies().getFirst();
      assertThat(driver.graphs().graphGetNodes(body)).isEmpty();
      driver.graphs().graphDestroyNode(gone);
      assertFails(INVALID, "0x%x".formatted(gone), () -> driver.graphs().graphNodeGetType(gone));
      assertFails(INVALID, "0x%x".formatted(gone), () -> driver.graphs().graphDestroyNode(gone));
      assertFails(
          CudaStatus.INVALID_HANDLE,
          "0x%x".formatted(body),
          () -> driver.graphs().graphGetNodes(body));
      assertThat(driver.graphs().graphGetNodes(graph)).containsExactly(kept);
    }
  }
}
