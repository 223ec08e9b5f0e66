package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.GraphCondition;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphNode;
import io.cuvette.GraphPlace;
import io.cuvette.LaunchConfig;
import io.cuvette.MemoryPool;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Nodes that run what they have if a number says so, which a kernel sets. */
class GraphConditionTest {
  private static final LaunchConfig ONE = LaunchConfig.of(1, 1);
  private static final int CUDA_12_8 = 12_080;

  /** Some memory with a result and with a number that decides. */
  private static final class Bench implements AutoCloseable {
    final Cuda cuda;
    final CudaStream stream;
    final CudaModule module;
    final GraphDefinition definition;
    final Buffer result;
    final Buffer number;

    Bench(Cuda cuda, MemoryPool pool, CudaStream stream) {
      Assumptions.assumeTrue(cuda.driverVersion() >= CUDA_12_8, "conditional nodes of CUDA 12.8");
      this.cuda = cuda;
      this.stream = stream;
      this.module = TestKernels.graphs(cuda);
      this.definition = new GraphDefinition(cuda.device(0));
      this.result = pool.allocate(Integer.BYTES, stream);
      this.number = pool.allocate(Integer.BYTES, stream);
      stream.synchronize();
    }

    GraphNode affine(GraphPlace place, int factor, int more) {
      return place.launch(module.kernel("affine"), ONE, result, factor, more, 1);
    }

    GraphNode choose(GraphPlace place, GraphCondition condition) {
      return place.launch(module.kernel("choose"), ONE, condition.handle(), number);
    }

    GraphNode countDown(GraphPlace place, GraphCondition condition) {
      return place.launch(module.kernel("countDown"), ONE, condition.handle(), number);
    }

    /** What a launch gives if the number is this. */
    int with(CudaGraphExec executable, int value) {
      number.fillInts(value, stream);
      return again(executable);
    }

    int again(CudaGraphExec executable) {
      result.fillInts(0, stream);
      executable.launch(stream);
      stream.synchronize();
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
        result.copyTo(out);
        return out.get(ValueLayout.JAVA_INT, 0);
      }
    }

    @Override
    public void close() {
      definition.close();
      result.close();
      number.close();
      module.close();
    }
  }

  @CudaTest
  void if_runsItsBody_orTheOther(Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Bench bench = new Bench(cuda, pool, stream)) {
      GraphDefinition graph = bench.definition;
      GraphCondition first = graph.createCondition();
      GraphNode one = graph.after(bench.choose(graph.root(), first)).ifThen(first);
      GraphDefinition then = one.bodies().getFirst();
      bench.affine(then.after(bench.affine(then.root(), 1, 1)), 10, 0);
      GraphCondition second = graph.createCondition(7);
      GraphNode two = graph.after(one).ifElse(second);
      bench.affine(two.bodies().getFirst().root(), 2, 1);
      bench.affine(two.bodies().getLast().root(), 0, -1);
      assertThat(one.type()).isEqualTo(GraphNodeType.CONDITIONAL);
      assertThat(two.bodies()).hasSize(2).allMatch(GraphDefinition::isBody);
      assertThat(then.nodes()).hasSize(2);
      assertThat(then.edges()).hasSize(1);
      try (CudaGraphExec executable = graph.graph().instantiate()) {
        assertThat(bench.with(executable, 1)).isEqualTo(21);
        assertThat(bench.with(executable, 0)).isEqualTo(1);
        assertThat(bench.with(executable, -5)).isEqualTo(21);
      }
    }
    Graph.awaitGone(pool, stream);
  }

  /** Which the sanitizer knows as well: it finds no read of bytes that were never written. */
  @CudaTest
  void memoryThatOnlyABodyWrites_isWritten(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Bench bench = new Bench(cuda, pool, stream);
        Buffer written = pool.allocate(Integer.BYTES, stream)) {
      GraphNode node = bench.definition.root().ifThen(bench.definition.createCondition(1));
      GraphNode fill = node.bodies().getFirst().root().fillInts(written, 5);
      try (CudaGraphExec executable = bench.definition.graph().instantiate()) {
        executable.launch(stream);
        stream.synchronize();
        assertThat(Bytes.of(written)[0]).isEqualTo((byte) 5);
      }
      fill.remove();
      node.remove();
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void switch_runsTheBodyOfItsNumber(Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Bench bench = new Bench(cuda, pool, stream)) {
      GraphDefinition graph = bench.definition;
      GraphCondition condition = graph.createCondition(0);
      GraphNode node = graph.after(bench.choose(graph.root(), condition)).switchCase(condition, 3);
      List<GraphDefinition> bodies = node.bodies();
      for (int i = 0; i < bodies.size(); i++) {
        bench.affine(bodies.get(i).root(), 0, 100 + i);
      }
      try (CudaGraphExec executable = graph.graph().instantiate()) {
        for (int i = 0; i < bodies.size(); i++) {
          assertThat(bench.with(executable, i)).isEqualTo(100 + i);
        }
        assertThat(bench.with(executable, bodies.size())).isZero();
        assertThat(bench.with(executable, -1)).isZero();
      }
    }
    Graph.awaitGone(pool, stream);
  }

  /** With a condition within, a graph as a node, and memory that is closed meanwhile. */
  @CudaTest
  void loop_runsUntilItsNumberIsZero(Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Bench bench = new Bench(cuda, pool, stream)) {
      GraphDefinition graph = bench.definition;
      GraphCondition goesOn = graph.createCondition(1);
      GraphNode loop = graph.root().whileLoop(goesOn);
      GraphDefinition body = loop.bodies().getFirst();
      GraphNode counted = bench.countDown(body.root(), goesOn);
      GraphCondition isLast = body.createCondition();
      GraphNode asked = bench.choose(body.after(counted), isLast);
      GraphNode inner = body.after(asked).ifElse(isLast);
      bench.affine(inner.bodies().getFirst().root(), 2, 1);
      Buffer closed = pool.allocate(Integer.BYTES, stream);
      try (GraphDefinition child = new GraphDefinition(cuda.device(0))) {
        GraphNode filled = child.root().fillInts(closed, 50);
        child.after(filled).copy(bench.result, closed);
        GraphNode _ = inner.bodies().getLast().root().embed(child.graph());
      }
      closed.close();
      try (CudaGraphExec executable = graph.graph().instantiate()) {
        graph.close();
        try (Buffer other = pool.allocate(Integer.BYTES, stream)) {
          other.fillInts(-1, stream);
          assertThat(bench.with(executable, 1)).isEqualTo(50);
          assertThat(bench.with(executable, 4)).isEqualTo(50);
          // The loop is looked at before each turn: its default is 1 in each launch.
          assertThat(bench.again(executable)).isEqualTo(1);
        }
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void whatIsWrong_isRefused_andNothingChanges(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Bench bench = new Bench(cuda, pool, stream);
        GraphDefinition other = new GraphDefinition(cuda.device(0));
        CudaEvent event = cuda.device(0).createEvent()) {
      GraphDefinition graph = bench.definition;
      GraphCondition condition = graph.createCondition(1);
      refused(() -> other.root().ifThen(condition), "expected: one of graph");
      refused(() -> graph.root().switchCase(condition, 0), "bodies: 0 (expected: >= 1)");
      GraphNode node = graph.root().ifThen(condition);
      refused(() -> graph.root().whileLoop(condition), "is read by another node");
      GraphDefinition body = node.bodies().getFirst();
      refused(() -> body.root().ifThen(graph.createCondition()), "expected: one of body");
      refused(() -> body.root().callback(() -> {}), "node of type HOST in the body");
      refused(() -> body.root().record(event), "node of type EVENT_RECORD in the body");
      refused(() -> body.root().allocate(64), "node of type MEM_ALLOC in the body");
      GraphNode _ = other.root().callback(() -> {});
      refused(() -> body.root().embed(other.graph()), "node of type HOST in the body");
      refused(() -> body.after(node).empty(), "expected: a node of body");
      assertThat(body.nodes()).isEmpty();
      assertThat(graph.nodes()).containsExactly(node);
      GraphNode plain = graph.root().empty();
      assertThatIllegalStateException()
          .isThrownBy(plain::bodies)
          .withMessageContaining("EMPTY (expected: a conditional node that was added here)");
      GraphNode inside = body.root().empty();
      body.close();
      assertThat(body.nodes()).containsExactly(inside);
      node.remove();
      assertThatIllegalStateException()
          .isThrownBy(() -> body.nodes().size())
          .withMessageContaining("was removed");
      assertThatIllegalStateException().isThrownBy(inside::type);
      graph.close();
      assertThatIllegalStateException().isThrownBy(graph::createCondition);
      assertThatIllegalStateException().isThrownBy(() -> body.nodes().size());
    }
    Graph.awaitGone(pool, stream);
  }

  /** Also what the nodes of its bodies changed to. */
  @CudaTest
  void nodeThatIsRemoved_letsGoOfTheMemoryOfItsBodies(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Bench bench = new Bench(cuda, pool, stream)) {
      GraphDefinition graph = bench.definition;
      GraphNode choice = graph.root().ifThen(graph.createCondition());
      GraphNode fill = choice.bodies().getFirst().root().fillInts(bench.number, 1);
      Buffer used = pool.allocate(Integer.BYTES, stream);
      fill.update().fillInts(used, 1);
      used.close();
      assertThat(pool.stats().pendingBytes()).isPositive();
      choice.remove();
      assertThat(pool.stats().pendingBytes()).isZero();
    }
    Graph.awaitGone(pool, stream);
  }

  private static void refused(Runnable call, String text) {
    assertThatIllegalArgumentException().isThrownBy(call::run).withMessageContaining(text);
  }

  @Tag("simulated")
  @Test
  void olderDrivers_sayWhatTheyLack() {
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDevice("sim:driver=12020"));
        GraphDefinition graph = new GraphDefinition(cuda.device(0))) {
      for (ThrowingCallable form :
          List.<ThrowingCallable>of(graph::createCondition, () -> graph.createCondition(1))) {
        assertThatThrownBy(form)
            .isInstanceOf(UnsupportedOperationException.class)
            .hasMessage("conditional nodes need CUDA 12.3 (the driver has 12.2)");
      }
    }
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDevice("sim:driver=12030"));
        GraphDefinition graph = new GraphDefinition(cuda.device(0))) {
      GraphCondition condition = graph.createCondition(1);
      for (ThrowingCallable node :
          List.<ThrowingCallable>of(
              () -> graph.root().ifElse(condition),
              () -> graph.root().switchCase(condition, 1),
              () -> graph.root().switchCase(condition, 2))) {
        assertThatThrownBy(node)
            .isInstanceOf(UnsupportedOperationException.class)
            .hasMessage(
                "conditional nodes with several bodies need CUDA 12.8 (the driver has 12.3)");
      }
      assertThat(graph.root().ifThen(condition).bodies()).hasSize(1);
    }
  }

  @CudaTest(simulatedOnly = true)
  void conditionWhoseNodeIsRefused_isForTheNext(Cuda cuda, ScriptedDriver driver) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      GraphCondition condition = definition.createCondition();
      driver.fail("graphAddNode", CudaStatus.NOT_SUPPORTED);
      assertThatThrownBy(() -> definition.root().ifThen(condition))
          .isInstanceOf(CudaException.class);
      driver.unscript("graphAddNode");
      assertThat(definition.root().ifThen(condition).bodies()).hasSize(1);
      assertThatIllegalArgumentException()
          .isThrownBy(() -> definition.root().ifThen(condition))
          .withMessageContaining("condition: %s is read by another node".formatted(condition));
    }
  }

  @CudaTest(simulatedOnly = true)
  void condition_isOfTheGraphThatMadeIt(Cuda cuda) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      assertThat(definition.createCondition().definition()).isSameAs(definition);
      assertThat(definition.createCondition(1).definition()).isSameAs(definition);
    }
  }
}
