package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphMemory;
import io.cuvette.GraphOptions;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** What a capture takes that streams have no calls for: functions of the host, and graphs. */
class CapturedNodeTest {
  private static final int BYTES = 4096;

  @CudaTest(seeds = 20)
  void functions_runInEachLaunch_betweenTheWorkAroundThem(
      Cuda cuda, @NonBlocking CudaStream stream, @NonBlocking CudaStream fork) {
    List<Integer> seen = new ArrayList<>();
    PinnedBuffer host = cuda.allocatePinned(BYTES);
    MemorySegment view = host.segment();
    try (host;
        Buffer device = cuda.allocate(BYTES, stream);
        CudaGraph graph =
            stream.capture(() -> {
              for (int i = 1; i <= 3; i++) {
                device.fill((byte) i, stream);
                fork.waitFor(stream);
                host.copyFrom(device, fork);
                fork.captureCallback(
                    () -> seen.add((int) host.segment().get(ValueLayout.JAVA_BYTE, 0)));
                stream.waitFor(fork);
              }
            });
        CudaGraphExec executable = graph.instantiate()) {
      for (int i = 0; i < 4; i++) {
        executable.launch(stream);
      }
      stream.synchronize();
      assertThat(seen).containsExactly(1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3);
    }
  }

  @CudaTest
  void graphs_areNodes_andWhatTheyUseIsKept(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    Buffer result = pool.allocate(BYTES, stream);
    CudaGraphExec executable;
    try (CudaGraph child =
        stream.capture(() -> {
          try (Buffer inside = pool.allocate(BYTES, stream)) {
            inside.fill((byte) 3, stream);
            result.copyFrom(inside, stream);
          }
        })) {
      CudaGraph graph =
          stream.capture(() -> {
            result.fill((byte) 9, stream);
            stream.captureChild(child);
          });
      executable = graph.instantiate();
      graph.close();
    }
    List<Buffer> others = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      others.add(pool.allocate(BYTES, stream));
      others.getLast().fill((byte) 1, stream);
    }
    for (int i = 0; i < 100; i++) {
      executable.launch(stream);
    }
    stream.synchronize();
    assertThat(Bytes.areAll(result, 3)).isTrue();
    others.forEach(other -> assertThat(Bytes.areAll(other, 1)).isTrue());
    others.forEach(Buffer::close);
    result.close();
    executable.close();
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void whatIsWrong_isRefused_andTheCaptureGoesOn(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    AtomicInteger runs = new AtomicInteger();
    assertThatIllegalStateException()
        .isThrownBy(() -> stream.captureCallback(runs::incrementAndGet))
        .withMessageContaining("captureCallback")
        .withMessageContaining("is not capturing a graph (expected: beginCapture before)");
    try (GraphMemory memory = cuda.device(0).createGraphMemory();
        CudaGraph shared =
            stream.capture(
                CaptureOptions.DEFAULTS.withMemory(memory),
                () -> pool.allocate(BYTES, stream).close())) {
      assertThatIllegalStateException().isThrownBy(() -> stream.captureChild(shared));
      CudaGraph closed = stream.capture(() -> {});
      closed.close();
      try (CudaGraph graph =
              stream.capture(() -> {
                assertThatIllegalArgumentException()
                    .isThrownBy(() -> stream.captureChild(shared))
                    .withMessageContaining("shares memory with others");
                assertThatIllegalStateException().isThrownBy(() -> stream.captureChild(closed));
                assertThatIllegalStateException()
                    .isThrownBy(() -> stream.addCallback(runs::incrementAndGet))
                    .withMessageContaining("expected: captureCallback");
                stream.captureCallback(runs::incrementAndGet);
              });
          CudaGraphExec executable = graph.instantiate()) {
        executable.launch(stream);
        stream.synchronize();
        assertThat(runs).hasValue(1);
      }
    }
    Graph.awaitGone(pool, stream);
  }

  /** Nothing would come after it. The driver may refuse that: its first error is what is told. */
  @CudaTest(simulatedOnly = true)
  void nodeThatTheStreamCannotGoOnFrom_isGivenBackToTheDriver(
      @NonBlocking CudaStream stream, ScriptedDriver script) {
    script.fail("streamUpdateCaptureDependencies", CudaStatus.OPERATING_SYSTEM, 1);
    script.answer("graphDestroyNode", _ -> null);
    stream
        .capture(() -> {
          assertThatThrownBy(() -> stream.captureCallback(() -> {}))
              .isInstanceOfSatisfying(
                  CudaException.class,
                  e -> assertThat(e.status()).isEqualTo(CudaStatus.OPERATING_SYSTEM));
          assertThat(script.count("graphDestroyNode")).isOne();
          stream.captureCallback(() -> {});
          assertThat(script.count("graphDestroyNode")).isOne();
        })
        .close();
  }

  /** The memory is the same, or the child has none. */
  @CudaTest(simulatedOnly = true)
  void graphsOfTheSameMemory_andOfNone_areChildrenOfACaptureWithMemory(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (GraphMemory memory = cuda.device(0).createGraphMemory();
        CudaGraph plain = stream.capture(() -> {});
        CudaGraph shared =
            stream.capture(
                CaptureOptions.DEFAULTS.withMemory(memory),
                () -> pool.allocate(BYTES, stream).close());
        CudaGraph graph =
            stream.capture(
                CaptureOptions.DEFAULTS.withMemory(memory),
                () -> {
                  stream.captureChild(plain);
                  stream.captureChild(shared);
                });
        CudaGraphExec executable = graph.instantiate()) {
      assertThat(GraphDefinition.of(graph).nodes()).hasSize(2);
      executable.launch(stream);
      stream.synchronize();
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest(simulatedOnly = true)
  void options_areThoseTheDriverIsGiven(Cuda cuda, @NonBlocking CudaStream stream) {
    try (CudaGraph graph = stream.capture(() -> {})) {
      for (int flags : new int[] {0, 1, 8, 9}) { // to free on launch, and priorities of nodes
        GraphOptions options = new GraphOptions((flags & 1) != 0, (flags & 8) != 0);
        try (CudaGraphExec executable = graph.instantiate(options)) {
          assertThat(cuda.driver().graphs().graphExecGetFlags(executable.handle()))
              .as("%s", options)
              .isEqualTo(flags);
        }
      }
    }
  }
}
