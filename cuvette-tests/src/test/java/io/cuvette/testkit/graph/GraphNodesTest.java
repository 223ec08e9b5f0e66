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
import io.cuvette.GraphPlace;
import io.cuvette.LaunchConfig;
import io.cuvette.MemoryPool;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.assertj.core.api.ThrowableAssert;

/** Nodes that change and are removed, and what they say of themselves. */
class GraphNodesTest {
  private static final int BYTES = 1 << 12;
  private static final int FLOATS = BYTES / Float.BYTES;

  @CudaTest
  void nodesThatChangeAgainAndAgain_keepWhatTheyUseNow_andNoMore(
      Cuda cuda, @NonBlocking CudaStream stream) {
    try (MemoryPool pool = new MemoryPool(cuda);
        GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer out = pool.allocate(BYTES, stream);
        Buffer first = pool.allocate(BYTES, stream)) {
      GraphNode copy = definition.root().copy(out, first);
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        for (int i = 1; i <= 30; i++) {
          try (Buffer in = pool.allocate(BYTES, stream)) {
            in.fill((byte) i, stream);
            copy.update().copy(out, in);
            copy.updateIn(executable).copy(out, in);
          }
          try (Buffer reused = pool.allocate(BYTES, stream)) {
            reused.fill((byte) -1, stream);
          }
          assertThat(run(executable, stream, out)).isEqualTo(i);
        }
        try (CudaGraphExec later = definition.graph().instantiate()) {
          assertThat(run(later, stream, out)).isEqualTo(30);
        }
      }
      assertThat(pool.stats().heldBytes()).isLessThanOrEqualTo(8 * BYTES);
      copy.remove();
      Graph.awaitGone(pool, stream);
    }
  }

  @CudaTest
  void graphsThatEmbedEachOther_giveTheirMemoryBack(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (GraphDefinition one = new GraphDefinition(cuda.device(0));
        GraphDefinition other = new GraphDefinition(cuda.device(0));
        Buffer a = pool.allocate(BYTES, stream);
        Buffer b = pool.allocate(BYTES, stream)) {
      GraphNode filled = one.root().fill(a, (byte) 3);
      other.root().fill(b, (byte) 4);
      GraphNode itself = one.after(filled).embed(one.graph());
      one.after(itself).embed(other.graph());
      other.root().embed(one.graph());
      try (CudaGraphExec executable = other.graph().instantiate()) {
        assertThat(run(executable, stream, a)).isEqualTo(3);
        assertThat(run(executable, stream, b)).isEqualTo(4);
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void nodeThatChanges_takesNothingFromCopiesOfIt(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer out = pool.allocate(BYTES, stream);
        Buffer first = pool.allocate(BYTES, stream)) {
      first.fill((byte) 1, stream);
      GraphNode copy = definition.root().copy(out, first);
      try (Buffer second = pool.allocate(BYTES, stream)) {
        second.fill((byte) 2, stream);
        copy.update().copy(out, second);
      }
      try (CudaGraph before = definition.graph().copy()) {
        definition.after(copy).embed(definition.graph());
        copy.update().copy(out, first);
        List<Buffer> others = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
          others.add(pool.allocate(BYTES, stream));
          others.getLast().fill((byte) 9, stream);
        }
        try (CudaGraphExec executable = definition.graph().instantiate();
            CudaGraphExec earlier = before.instantiate()) {
          assertThat(run(executable, stream, out)).isEqualTo(2);
          assertThat(run(earlier, stream, out)).isEqualTo(2);
        }
        others.forEach(Buffer::close);
      }
    }
    Graph.awaitGone(pool, stream);
  }

  /** The driver gives the handle of a node that was removed to one that is added. */
  @CudaTest
  void nodeThatWasRemoved_isNotTheOneThatHasItsHandleNow(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer a = pool.allocate(BYTES, stream)) {
      GraphNode first = definition.root().empty();
      GraphNode gone = definition.after(first).fill(a, (byte) 1);
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        gone.remove();
        List<GraphNode> later = new ArrayList<>();
        do {
          later.add(definition.after(first).fill(a, (byte) 2));
        } while (later.getLast().handle() != gone.handle() && later.size() < 100);
        assertThat(later).doesNotContain(gone);
        assertThat(definition.nodes()).hasSize(later.size() + 1).doesNotContain(gone);
        assertThat(definition.edges()).doesNotContain(new GraphDependency(first, gone));
        wasRemoved(gone::type);
        wasRemoved(gone::remove);
        wasRemoved(gone::parameters);
        wasRemoved(gone::dependencies);
        wasRemoved(gone::dependents);
        wasRemoved(() -> gone.update().fill(a, (byte) 3));
        wasRemoved(() -> definition.after(gone).empty());
        wasRemoved(() -> definition.edges().add(new GraphDependency(first, gone)));
        wasRemoved(() -> gone.setEnabledIn(executable, false));
        assertThat(definition.edges().remove(new GraphDependency(first, gone))).isFalse();
        assertThat(definition.nodes().remove(gone)).isFalse();
        assertThat(definition.edges()).hasSize(later.size());
        GraphNode last = later.getLast();
        String text =
            "node 0x%x was added after %s was instantiated (expected: a node that it has)"
                .formatted(last.handle(), executable);
        refused(() -> last.updateIn(executable).fill(a, (byte) 4), text);
        refused(() -> last.setEnabledIn(executable, false), text);
        assertThat(run(executable, stream, a)).isEqualTo(1);
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void fillsOfEachSize_fillWithTheirValue_inTheGraphAndAfterAChange(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer out = pool.allocate(BYTES, stream)) {
      GraphNode bytes = definition.root().fill(out.slice(0, 4), (byte) 0x12);
      GraphNode shorts = definition.after(bytes).fillShorts(out.slice(4, 4), (short) 0x3456);
      GraphNode ints = definition.after(shorts).fillInts(out.slice(8, 4), 0x789ABCDE);
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        executable.launch(stream);
        stream.synchronize();
        assertThat(firstInts(out)).containsExactly(0x12121212, 0x34563456, 0x789ABCDE);
        assertThat(shorts.updateIn(executable).fillShorts(out.slice(4, 4), (short) 1))
            .isEqualTo(shorts);
        assertThat(ints.updateIn(executable).fillInts(out.slice(8, 4), 2)).isEqualTo(ints);
        assertThat(bytes.updateIn(executable).fill(out.slice(0, 4), (byte) 3)).isEqualTo(bytes);
        executable.launch(stream);
        stream.synchronize();
        assertThat(firstInts(out)).containsExactly(0x03030303, 0x00010001, 2);
      }
    }
    Graph.awaitGone(pool, stream);
  }

  private static int[] firstInts(Buffer buffer) {
    int[] found = new int[3];
    buffer.slice(0, 12).copyTo(MemorySegment.ofArray(found));
    return found;
  }

  @CudaTest
  void nodes_areEqualToThemselvesAlone_andSetsOfThemHaveNothingElse(Cuda cuda) {
    Object text = "a node";
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        GraphDefinition other = new GraphDefinition(cuda.device(0))) {
      GraphNode mine = definition.root().empty();
      GraphNode theirs = other.root().empty();
      assertThat(mine).isNotEqualTo(theirs).isNotEqualTo(text).isNotEqualTo(null);
      assertThat(definition.nodes()).contains(mine).doesNotContain(theirs);
      for (Object element : new Object[] {theirs, text, new GraphDependency(mine, mine)}) {
        assertThat(definition.nodes().contains(element)).isFalse();
        assertThat(definition.nodes().remove(element)).isFalse();
        assertThat(definition.edges().contains(element)).isFalse();
        assertThat(definition.edges().remove(element)).isFalse();
      }
      assertThat(other.nodes()).containsExactly(theirs);
    }
  }

  private static void wasRemoved(ThrowableAssert.ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("was removed from graph");
  }

  @CudaTest
  void whatNodesDo_canBeRead(Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (CudaModule module = TestKernels.launches(cuda);
        GraphDefinition definition = new GraphDefinition(cuda.device(0));
        CudaEvent event = cuda.device(0).createEvent();
        Buffer a = pool.allocate(BYTES, stream);
        Buffer b = pool.allocate(BYTES, stream)) {
      GraphPlace root = definition.root();
      GraphNode copy = root.copy(b, a);
      assertThat(copy.parameters())
          .isEqualTo(new GraphNodeParams.Copy(b.address(), a.address(), BYTES));
      GraphNode fill = root.fillInts(a, 7);
      fill.update().fillInts(b, 9);
      assertThat(fill.parameters())
          .isEqualTo(new GraphNodeParams.Fill(b.address(), 9, Integer.BYTES, BYTES / 4));
      assertThat(root.empty().parameters()).isEqualTo(new GraphNodeParams.Empty());
      assertThat(root.record(event).parameters())
          .isEqualTo(new GraphNodeParams.EventRecord(event.handle()));
      assertThat(root.waitFor(event).parameters())
          .isEqualTo(new GraphNodeParams.EventWait(event.handle()));
      GraphNode allocated = root.allocate(BYTES);
      assertThat(allocated.parameters())
          .isInstanceOfSatisfying(
              GraphNodeParams.Allocation.class,
              made -> assertThat(made.address()).isEqualTo(allocated.address()));
      assertThat(definition.after(allocated).free(allocated).parameters())
          .isEqualTo(new GraphNodeParams.Free(allocated.address()));
      assertThat(root.callback(() -> {}).parameters()).isInstanceOf(GraphNodeParams.Host.class);
      LaunchConfig config = LaunchConfig.of(FLOATS / 256, 256);
      assertThat(root.launch(module.kernel("scale"), config, a, 1f, FLOATS).parameters())
          .isInstanceOfSatisfying(
              GraphNodeParams.Kernel.class,
              kernel -> {
                assertThat(kernel.shape().gridX()).isEqualTo(FLOATS / 256);
                assertThat(kernel.shape().blockX()).isEqualTo(256);
              });
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

  private static void refused(Runnable call, String text) {
    assertThatThrownBy(call::run)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(text);
  }

  /** One byte more of either is in the other. */
  @CudaTest
  void memoryBesideOther_isCopiedByANode_andWhatOverlapsIsRefused(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    int half = BYTES / 2;
    try (Buffer all = pool.allocate(BYTES, stream);
        GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      for (boolean up : new boolean[] {true, false}) {
        Buffer from = all.slice(up ? 0 : half, half);
        Buffer to = all.slice(up ? half : 0, half);
        from.fill((byte) (up ? 1 : 2), stream);
        GraphNode copy = definition.root().copy(to, from);
        try (CudaGraphExec executable = definition.graph().instantiate()) {
          executable.launch(stream);
          stream.synchronize();
          assertThat(Bytes.areAll(all, up ? 1 : 2)).isTrue();
          copy.updateIn(executable).copy(to.slice(0, half - 1), from.slice(0, half - 1));
        }
        copy.update().copy(to, from);
        for (Buffer wrong : List.of(all.slice(up ? half - 1 : 1, half), from)) {
          assertThatThrownBy(() -> copy.update().copy(wrong, from))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("overlap (expected: memory apart)");
          assertThatThrownBy(() -> definition.root().copy(wrong, from))
              .isInstanceOf(IllegalArgumentException.class);
        }
        assertThat(definition.nodes()).containsExactly(copy);
        copy.remove();
      }
    }
    Graph.awaitGone(pool, stream);
  }

  /** As if it had been removed here, once the nodes were asked for. */
  @CudaTest(simulatedOnly = true)
  void nodeThatOtherCodeDestroys_isGone(Cuda cuda) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      GraphNode kept = definition.root().empty();
      GraphNode node = definition.root().empty();
      cuda.driver().graphs().graphDestroyNode(node.handle());
      assertThat(definition.nodes()).containsExactly(kept);
      wasRemoved(node::type);
      wasRemoved(() -> definition.edges().add(new GraphDependency(kept, node)));
      wasRemoved(() -> definition.edges().add(new GraphDependency(node, kept)));
    }
  }
}
