package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphDependency;
import io.cuvette.GraphNode;
import io.cuvette.GraphOptions;
import io.cuvette.LaunchConfig;
import io.cuvette.MemoryPool;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import io.cuvette.testkit.support.TestKernels;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Graphs that are built node by node, and their nodes. */
class GraphDefinitionTest {
  private static final int BYTES = 1 << 12;
  private static final int FLOATS = BYTES / Float.BYTES;

  @CudaTest
  void builtGraph_runsItsNodesInOrder(Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (CudaModule module = TestKernels.launches(cuda);
        GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer a = pool.allocate(BYTES, stream);
        Buffer b = pool.allocate(BYTES, stream)) {
      stream.synchronize();
      GraphNode ones = definition.root().fillInts(a, Float.floatToIntBits(1));
      GraphNode twos = definition.root().fillInts(b, Float.floatToIntBits(2));
      GraphNode sum =
          definition
              .after(ones, twos)
              .launch(module.kernel("scale"), LaunchConfig.of(FLOATS / 256, 256), a, 3f, FLOATS);
      GraphNode copied = definition.after(sum).copy(b, a);
      assertThat(definition.nodes()).containsExactlyInAnyOrder(ones, twos, sum, copied);
      assertThat(definition.edges())
          .containsExactlyInAnyOrder(
              new GraphDependency(ones, sum),
              new GraphDependency(twos, sum),
              new GraphDependency(sum, copied));
      assertThat(sum.dependencies()).containsExactlyInAnyOrder(ones, twos);
      assertThat(sum.dependents()).containsExactly(copied);
      assertThat(ones.type()).isEqualTo(GraphNodeType.MEMSET);
      assertThat(sum.type()).isEqualTo(GraphNodeType.KERNEL);
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        for (int i = 0; i < 3; i++) {
          b.fill((byte) 0, stream);
          executable.launch(stream);
          stream.synchronize();
          assertThat(Bytes.of(b)).isEqualTo(repeated(3f));
        }
      }
    }
    Graph.awaitGone(pool, stream);
  }

  private static byte[] repeated(float value) {
    ByteBuffer bytes = ByteBuffer.allocate(BYTES).order(ByteOrder.nativeOrder());
    for (int i = 0; i < FLOATS; i++) {
      bytes.putFloat(value);
    }
    return bytes.array();
  }

  @CudaTest
  void memoryOfNodes_isKept_whenAllIsClosed(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    Buffer out = pool.allocate(BYTES, stream);
    CudaGraphExec executable;
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      Buffer source = pool.allocate(BYTES, stream);
      CudaModule module = TestKernels.launches(cuda);
      GraphNode filled = definition.root().fillInts(source, Float.floatToIntBits(1));
      GraphNode scaled =
          definition
              .after(filled)
              .launch(
                  module.kernel("scale"), LaunchConfig.of(FLOATS / 256, 256), source, 5f, FLOATS);
      definition.after(scaled).copy(out, source);
      source.close();
      module.close();
      executable = definition.graph().instantiate();
    }
    List<Buffer> others = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      others.add(pool.allocate(BYTES, stream));
      others.getLast().fill((byte) 9, stream);
    }
    for (int i = 0; i < 100; i++) {
      executable.launch(stream);
    }
    stream.synchronize();
    assertThat(Bytes.of(out)).isEqualTo(repeated(5f));
    others.forEach(other -> assertThat(Bytes.areAll(other, 9)).isTrue());
    others.forEach(Buffer::close);
    out.close();
    executable.close();
    Graph.awaitGone(pool, stream);
  }

  /** What throws has no caller in Java, and does not keep the graph from going on. */
  @CudaTest
  void callbackThatThrows_isHeardOf_andTheRestRuns(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) throws Exception {
    IllegalStateException mine = new IllegalStateException("mine");
    CompletableFuture<Throwable> uncaught = new CompletableFuture<>();
    Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
    Thread.setDefaultUncaughtExceptionHandler((_, e) -> uncaught.complete(e));
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer out = pool.allocate(BYTES, stream)) {
      GraphNode called =
          definition
              .root()
              .callback(() -> {
                throw mine;
              });
      GraphNode _ = definition.after(called).fill(out, (byte) 7);
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        assertThat(run(executable, stream, out)).isEqualTo(7);
      }
      assertThat(uncaught.get(40, TimeUnit.SECONDS)).isSameAs(mine);
    } finally {
      Thread.setDefaultUncaughtExceptionHandler(before);
    }
  }

  @CudaTest
  void nodesThatChange_changeLaterGraphs_orTheExecutable(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer out = pool.allocate(BYTES, stream)) {
      GraphNode fill = definition.root().fill(out, (byte) 1);
      try (CudaGraphExec first = definition.graph().instantiate()) {
        fill.update().fill(out, (byte) 2);
        try (CudaGraphExec second = definition.graph().instantiate()) {
          assertThat(run(first, stream, out)).isEqualTo(1);
          assertThat(run(second, stream, out)).isEqualTo(2);
          fill.updateIn(first).fill(out, (byte) 3);
          assertThat(run(first, stream, out)).isEqualTo(3);
          assertThat(run(second, stream, out)).isEqualTo(2);
          fill.setEnabledIn(first, false);
          assertThat(fill.isEnabledIn(first)).isFalse();
          assertThat(run(first, stream, out)).isZero();
          fill.setEnabledIn(first, true);
          assertThat(fill.isEnabledIn(first)).isTrue();
          assertThat(run(first, stream, out)).isEqualTo(3);
        }
      }
    }
    Graph.awaitGone(pool, stream);
  }

  private static int run(CudaGraphExec executable, CudaStream stream, Buffer out) {
    out.fill((byte) 0, stream);
    executable.launch(stream);
    stream.synchronize();
    int value = Bytes.of(out)[0];
    assertThat(Bytes.areAll(out, value)).isTrue();
    return value;
  }

  @CudaTest
  void updatedExecutable_keepsTheNewBuffer_andGivesUpNothingTooEarly(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer out = pool.allocate(BYTES, stream)) {
      Buffer source = pool.allocate(BYTES, stream);
      source.fill((byte) 1, stream);
      GraphNode copy = definition.root().copy(out, source);
      source.close();
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        Buffer other = pool.allocate(BYTES, stream);
        other.fill((byte) 2, stream);
        copy.updateIn(executable).copy(out, other);
        other.close();
        try (Buffer reused = pool.allocate(BYTES, stream)) {
          reused.fill((byte) 7, stream);
          assertThat(run(executable, stream, out)).isEqualTo(2);
        }
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void events_areKept_andTellOfLaunches(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    CudaEvent event = cuda.device(0).createEvent();
    CudaEvent awaited = cuda.device(0).createEvent();
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer out = pool.allocate(BYTES, stream)) {
      GraphNode waits = definition.root().waitFor(awaited);
      GraphNode fill = definition.after(waits).fill(out, (byte) 4);
      definition.after(fill).record(event);
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        awaited.record(stream);
        executable.launch(stream);
        event.synchronize();
        assertThat(event.isDone()).isTrue();
        assertThat(Bytes.areAll(out, 4)).isTrue();
        event.close();
        awaited.close();
        executable.launch(stream);
        stream.synchronize();
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void functions_runInEachLaunch_inOrder(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    AtomicInteger calls = new AtomicInteger();
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer out = pool.allocate(BYTES, stream)) {
      GraphNode called = definition.root().callback(calls::incrementAndGet);
      GraphNode joined = definition.after(called).empty();
      definition.after(joined).fill(out, (byte) 6);
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        for (int i = 1; i <= 20; i++) {
          executable.launch(stream);
          stream.synchronize();
          assertThat(calls).hasValue(i);
        }
      }
      assertThat(Bytes.areAll(out, 6)).isTrue();
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void embeddedGraph_isACopy_thatKeepsItsMemory(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer out = pool.allocate(BYTES, stream)) {
      GraphNode embedded;
      try (Buffer inside = pool.allocate(BYTES, stream);
          CudaGraph child =
              stream.capture(() -> {
                inside.fill((byte) 5, stream);
                inside.copyTo(out, stream);
              })) {
        embedded = definition.root().embed(child);
      }
      assertThat(embedded.type()).isEqualTo(GraphNodeType.GRAPH);
      try (CudaGraphExec executable = definition.graph().instantiate();
          Buffer reused = pool.allocate(BYTES, stream)) {
        reused.fill((byte) 8, stream);
        assertThat(run(executable, stream, out)).isEqualTo(5);
        assertThat(Bytes.areAll(reused, 8)).isTrue();
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void allocationNodes_giveTheSameAddressInEachLaunch(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer out = pool.allocate(BYTES, stream)) {
      GraphNode allocated = definition.root().allocate(BYTES);
      assertThat(allocated.address()).isNotZero();
      assertThatThrownBy(() -> cuda.wrap(allocated.address(), BYTES, allocated))
          .hasMessageContaining("is not known to CUDA");
      try (Buffer inside = allocated.buffer(stream)) {
        assertThat(inside.address()).isEqualTo(allocated.address());
        assertThat(inside.byteSize()).isEqualTo(BYTES);
        GraphNode filled = definition.after(allocated).fill(inside, (byte) 3);
        GraphNode copied = definition.after(filled).copy(out, inside);
        definition.after(copied).free(allocated);
        try (CudaGraphExec executable = definition.graph().instantiate()) {
          assertThat(run(executable, stream, out)).isEqualTo(3);
          assertThat(run(executable, stream, out)).isEqualTo(3);
        }
      }
      assertThatThrownBy(() -> definition.root().empty().address())
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("EMPTY (expected: an allocation)");
      assertThatThrownBy(() -> definition.root().empty().buffer(stream))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("EMPTY (expected: an allocation)");
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void liveViews_addAndRemove(Cuda cuda, @NonBlocking CudaStream stream) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      Set<GraphNode> nodes = definition.nodes();
      Set<GraphDependency> edges = definition.edges();
      GraphNode a = definition.root().empty();
      GraphNode b = definition.root().empty();
      GraphNode c = definition.after(b).empty();
      assertThat(nodes).containsExactlyInAnyOrder(a, b, c);
      assertThat(edges.add(new GraphDependency(a, b))).isTrue();
      assertThat(edges.add(new GraphDependency(a, b))).isFalse();
      assertThatThrownBy(() -> edges.add(new GraphDependency(c, a)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("a cycle");
      assertThatThrownBy(() -> edges.add(new GraphDependency(a, a)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("a cycle");
      assertThat(edges).hasSize(2);
      assertThat(edges.remove(new GraphDependency(a, b))).isTrue();
      assertThat(edges.remove(new GraphDependency(a, b))).isFalse();
      assertThat(nodes.remove(b)).isTrue();
      assertThat(nodes.remove(b)).isFalse();
      assertThat(edges).isEmpty();
      assertThatThrownBy(b::type)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("was removed");
      assertThatThrownBy(() -> definition.after(b).empty())
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("was removed");
      assertThat(nodes).containsExactlyInAnyOrder(a, c);
      nodes.clear();
      assertThat(nodes).isEmpty();
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        executable.launch(stream);
        stream.synchronize();
      }
    }
  }

  @CudaTest
  void capturedGraph_hasNodesThatCanChange(MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer out = pool.allocate(BYTES, stream);
        GraphDefinition definition =
            GraphDefinition.of(stream.capture(() -> out.fill((byte) 1, stream)))) {
      GraphNode fill = definition.nodes().iterator().next();
      fill.update().fill(out, (byte) 2);
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        assertThat(run(executable, stream, out)).isEqualTo(2);
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void prioritiesOfKernels_areSetAndRead(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (CudaModule module = TestKernels.launches(cuda);
        GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer a = pool.allocate(BYTES, stream)) {
      GraphNode kernel =
          definition
              .root()
              .launch(module.kernel("scale"), LaunchConfig.of(FLOATS / 256, 256), a, 1f, FLOATS);
      int highest = cuda.device(0).priorityRange().greatest();
      kernel.setPriority(highest);
      assertThat(kernel.priority()).isEqualTo(highest);
      try (CudaGraphExec executable =
          definition.graph().instantiate(GraphOptions.DEFAULTS.withNodePriorities(true))) {
        executable.launch(stream);
        stream.synchronize();
      }
      GraphNode fill = definition.root().fill(a, (byte) 0);
      assertThatThrownBy(fill::priority)
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("%s is of type MEMSET (expected: a kernel node)", fill);
      assertThatThrownBy(() -> fill.setPriority(highest))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("%s is of type MEMSET (expected: a kernel node)", fill);
      assertThat(fill.handle()).isNotZero().isNotEqualTo(kernel.handle());
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void badNodes_areRefused_beforeAnythingChanges(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        GraphDefinition other = new GraphDefinition(cuda.device(0));
        Buffer a = pool.allocate(BYTES, stream);
        Buffer small = pool.allocate(BYTES / 2, stream)) {
      GraphNode fill = definition.root().fill(a, (byte) 1);
      GraphNode theirs = other.root().empty();
      refused(() -> definition.after(theirs).empty(), "expected: a node of graph");
      refused(
          () -> definition.after(fill, fill),
          "nodes: [%s, %1$s] (expected: each once)".formatted(fill));
      refused(() -> definition.root().copy(small, a), "expected: at most the 2048");
      refused(
          () -> definition.root().copy(a, a), "source: %s and target %s overlap".formatted(a, a));
      Buffer behind = a.slice(BYTES / 2, BYTES / 4); // what is written ends before it
      assertThat(other.root().copy(a, behind).type()).isEqualTo(GraphNodeType.MEMCPY);
      refused(() -> definition.root().allocate(0), "bytes: 0 (expected: > 0)");
      refused(() -> fill.update().copy(a, small), "is of type MEMSET and cannot become MEMCPY");
      refused(() -> fill.update().callback(() -> {}), "cannot become HOST");
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        refused(
            () -> fill.updateIn(executable).copy(a, small),
            "is of type MEMSET and cannot become MEMCPY");
      }
      try (CudaGraphExec executable = other.graph().instantiate()) {
        refused(() -> fill.updateIn(executable).fill(a, (byte) 1), "was not instantiated from");
        refused(() -> fill.setEnabledIn(executable, false), "was not instantiated from");
      }
      assertThat(definition.nodes()).containsExactly(fill);
      Buffer closed = pool.allocate(BYTES, stream);
      closed.close();
      assertThatThrownBy(() -> definition.root().fill(closed, (byte) 1))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("is closed");
    }
    GraphDefinition over = new GraphDefinition(cuda.device(0));
    GraphNode left = over.root().empty();
    over.close();
    assertThatThrownBy(() -> over.root().empty())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
    assertThatThrownBy(left::type)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
    Graph.awaitGone(pool, stream);
  }

  private static void refused(Runnable call, String text) {
    assertThatThrownBy(call::run)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(text);
  }

  @CudaTest
  void iteratorsOfLiveViews_removeWhatTheyGaveLast_andThatOnce(Cuda cuda) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      GraphNode one = definition.root().empty();
      GraphNode two = definition.after(one).empty();
      GraphNode three = definition.after(one, two).empty();
      assertThat(definition.edges().removeIf(edge -> edge.to().equals(three))).isTrue();
      assertThat(definition.edges()).containsExactly(new GraphDependency(one, two));
      Iterator<GraphNode> nodes = definition.nodes().iterator();
      assertThatThrownBy(nodes::remove).isInstanceOf(IllegalStateException.class);
      GraphNode first = nodes.next();
      nodes.remove();
      assertThatThrownBy(nodes::remove).isInstanceOf(IllegalStateException.class);
      GraphNode second = nodes.next();
      assertThat(definition.nodes()).hasSize(2).contains(second).doesNotContain(first);
    }
  }

  @CudaTest(simulatedOnly = true)
  void removalOfSeveral_saysWhetherOneWasThere(Cuda cuda) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      GraphNode one = definition.root().empty();
      GraphNode two = definition.root().empty();
      GraphNode three = definition.root().empty();
      assertThat(definition.after(two, one).dependencies()).containsExactly(two, one);
      assertThat(definition.root().dependencies()).isEmpty();
      assertThat(definition.nodes().removeAll(List.of(one, two))).isTrue();
      assertThat(definition.nodes().removeAll(List.of(three, one))).isTrue();
      assertThat(definition.nodes().removeAll(List.of(two, three))).isFalse();
      assertThat(definition.nodes()).isEmpty();
    }
  }
}
