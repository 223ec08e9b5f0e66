package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphNode;
import io.cuvette.GraphNodeUpdate;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** What an executable keeps that is updated. */
class UpdatedMemoryTest {
  private static final int BYTES = 1 << 16;
  private static final int LOOKS = 5_000;

  private static void update(
      CudaGraphExec executable, CudaStream stream, Buffer source, Buffer target) {
    try (CudaGraph graph = stream.capture(() -> source.copyTo(target, stream))) {
      executable.update(graph);
    }
  }

  private static CudaGraphExec copy(CudaStream stream, Buffer source, Buffer target) {
    try (CudaGraph graph = stream.capture(() -> source.copyTo(target, stream))) {
      return graph.instantiate();
    }
  }

  @CudaTest(seeds = 24)
  void launchBeforeKeepsItsMemory_andUpdatesThatNeverRanNone(
      Cuda cuda, MemoryPool pool, PinnedMemoryPool pinned, @NonBlocking CudaStream stream) {
    try (Buffer result = pool.allocate(BYTES, stream);
        PinnedBuffer last = pinned.allocate(BYTES)) {
      PinnedBuffer used = pinned.allocate(BYTES);
      PinnedBuffer never = pinned.allocate(BYTES);
      used.segment().fill((byte) 5);
      last.segment().fill((byte) 7);
      try (CudaGraphExec executable = copy(stream, used, result)) {
        executable.launch(stream);
        update(executable, stream, never, result);
        update(executable, stream, last, result);
        used.close();
        never.close();
        assertThat(pinned.stats().pendingBytes()).isLessThanOrEqualTo(BYTES);
        try (PinnedBuffer taken = pinned.allocate(BYTES);
            PinnedBuffer other = pinned.allocate(BYTES)) {
          taken.segment().fill((byte) 6);
          other.segment().fill((byte) 6);
          stream.synchronize();
          assertThat(Bytes.areAll(result, 5)).isTrue();
        }
        executable.launch(stream);
        stream.synchronize();
        assertThat(Bytes.areAll(result, 7)).isTrue();
      }
    }
    Graph.awaitGone(pool, stream);
    for (int i = 0; i < LOOKS && pinned.stats().pendingBytes() > 0; i++) {
      LockSupport.parkNanos(1_000_000);
      cuda.leaksFound();
    }
    assertThat(pinned.stats().pendingBytes()).isZero();
  }

  /** What an update replaces that was not launched since the last one is let go of at once. */
  @CudaTest(simulatedOnly = true)
  void updateThatNeverRan_isFollowedByNoMark(
      ScriptedDriver driver, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer source = pool.allocate(BYTES, stream);
        Buffer target = pool.allocate(BYTES, stream);
        CudaGraphExec executable = copy(stream, source, target)) {
      executable.launch(stream);
      update(executable, stream, target, source);
      driver.note("eventRecord");
      update(executable, stream, source, target);
      assertThat(driver.notes()).isEmpty();
      stream.synchronize();
    }
  }

  private static void failAfterwards(ScriptedDriver driver, String name) {
    driver.answer(
        name,
        call -> {
          Object _ = call.proceed();
          throw new CudaException(CudaStatus.OUT_OF_MEMORY, call.name(), "on purpose");
        });
  }

  /** The driver may have done what it reports an error of. */
  @CudaTest(simulatedOnly = true)
  void memoryOfAChangeThatFailed_isKept_forTheNodeMayUseItNow(
      Cuda cuda, ScriptedDriver driver, MemoryPool pool, @NonBlocking CudaStream stream) {
    for (String call : List.of("graphNodeSetParams", "graphExecNodeSetParams")) {
      Buffer before = pool.allocate(BYTES, stream);
      Buffer after = pool.allocate(BYTES, stream);
      long place = after.address();
      stream.synchronize();
      try (GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
        GraphNode fill = definition.root().fill(before, (byte) 1);
        CudaGraphExec early = definition.graph().instantiate();
        failAfterwards(driver, call);
        boolean inDefinition = call.equals("graphNodeSetParams");
        GraphNodeUpdate update = inDefinition ? fill.update() : fill.updateIn(early);
        assertThatThrownBy(() -> update.fill(after, (byte) 5)).isInstanceOf(CudaException.class);
        driver.unscript(call);
        after.close();
        try (Buffer other = pool.allocate(BYTES, stream);
            CudaGraphExec late = definition.graph().instantiate()) {
          assertThat(other.address()).as(call).isNotEqualTo(place);
          (inDefinition ? late : early).launch(stream);
          stream.synchronize();
        }
        early.close();
      }
      before.close();
      Graph.awaitGone(pool, stream);
    }
  }

  /** What the node had changed to is let go of once, by the update. */
  @CudaTest(simulatedOnly = true)
  void nodeThatChangesAgainAfterAnUpdateOfAll_letsGoOfNothingTwice(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer first = pool.allocate(BYTES, stream);
        Buffer second = pool.allocate(BYTES, stream);
        Buffer third = pool.allocate(BYTES, stream)) {
      GraphNode fill = definition.root().fill(first, (byte) 1);
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        fill.updateIn(executable).fill(second, (byte) 2);
        executable.update(definition.graph());
        fill.updateIn(executable).fill(third, (byte) 3);
        second.fill((byte) 9, stream);
        executable.launch(stream);
        stream.synchronize();
        assertThat(Bytes.areAll(second, 9)).isTrue();
        assertThat(Bytes.areAll(third, 3)).isTrue();
      }
    }
    Graph.awaitGone(pool, stream);
  }
}
