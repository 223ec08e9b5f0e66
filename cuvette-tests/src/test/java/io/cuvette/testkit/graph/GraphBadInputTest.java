package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CaptureMode;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphDependency;
import io.cuvette.GraphMemoryResource;
import io.cuvette.GraphNode;
import io.cuvette.GraphOptions;
import io.cuvette.MemoryPool;
import io.cuvette.PoolStats;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.StreamHandle;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** Each wrong use of graphs is one clear error, before anything changed. */
class GraphBadInputTest {
  private static final int BYTES = 4096;

  @CudaTest
  void launchIntoAClosedExecutable_isRefused(MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer out = filled(pool, stream, 1);
        CudaGraph graph = stream.capture(() -> out.fill((byte) 2, stream))) {
      CudaGraphExec executable = graph.instantiate();
      executable.close();
      assertThatIllegalStateException()
          .isThrownBy(() -> executable.launch(stream))
          .withMessageContaining("is closed");
      assertThatIllegalStateException().isThrownBy(() -> executable.update(graph));
      assertThatIllegalStateException().isThrownBy(() -> executable.upload(stream));
      stream.synchronize();
      assertThat(Bytes.areAll(out, 1)).isTrue();
    }
  }

  /** Whatever else is wrong with it. */
  @CudaTest
  void memoryThatIsClosed_isNamedAsThat(Cuda cuda, MemoryPool pool) {
    Buffer closed = pool.allocate(0);
    closed.close();
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer open = pool.allocate(BYTES)) {
      for (ThrowingCallable call :
          List.<ThrowingCallable>of(
              () -> definition.root().fill(closed, (byte) 1),
              () -> definition.root().copy(closed, open),
              () -> definition.root().copy(open, closed))) {
        assertThatIllegalStateException().isThrownBy(call).withMessageContaining("is closed");
      }
    }
  }

  /** Launches of one executable run one after the other: nothing to refuse. */
  @CudaTest(seeds = 20)
  void launchWhileTheGraphRuns_comesBehindIt(
      MemoryPool pool, @NonBlocking CudaStream stream, @NonBlocking CudaStream other) {
    try (Buffer in = filled(pool, stream, 3);
        Buffer out = filled(pool, stream, 1);
        CudaGraph graph =
            stream.capture(() -> {
              out.copyFrom(in, stream);
              in.fill((byte) 4, stream);
            });
        CudaGraphExec executable = graph.instantiate()) {
      stream.synchronize();
      executable.launch(stream);
      executable.launch(other);
      other.synchronize();
      assertThat(Bytes.areAll(out, 4)).isTrue();
    }
  }

  @CudaTest
  void captureOfTheNullStream_isRefused(Cuda cuda) {
    CudaStream stream = cuda.device(0).nullStream();
    assertThatIllegalStateException()
        .isThrownBy(() -> stream.capture(() -> {}))
        .withMessageContaining("cannot be captured (expected: another stream of the device)");
    stream.synchronize();
  }

  @CudaTest
  void captureLeftOpen_isEndedWithItsStream(Cuda cuda, MemoryPool pool) {
    CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    stream.beginCapture(CaptureOptions.DEFAULTS);
    assertThatIllegalStateException()
        .isThrownBy(() -> stream.beginCapture(CaptureOptions.DEFAULTS))
        .withMessageContaining("expected: endCapture before");
    pool.allocate(BYTES, stream).close();
    stream.close();
    assertThatIllegalStateException().isThrownBy(stream::endCapture);
    assertNothingIsKept(cuda, pool);
  }

  /** Only the thread that began it can end it then: the driver refuses all others. */
  @CudaTest
  void captureOfAnotherThreadsStream_isEndedInTheThreadThatBegan(Cuda cuda, MemoryPool pool) {
    for (CaptureMode mode : CaptureMode.values()) {
      CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      assertThatIllegalStateException()
          .isThrownBy(() ->
              stream.capture(
                  new CaptureOptions(mode, null),
                  () -> {
                    pool.allocate(BYTES, stream).close();
                    Thread.ofPlatform().start(stream::close).join();
                  }))
          .withMessageContaining("is closed");
      CudaStream second = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      assertThatThrownBy(() ->
              second.capture(
                  new CaptureOptions(mode, null),
                  () -> {
                    pool.allocate(BYTES, second).close();
                    Thread.ofPlatform().start(second::close).join();
                    throw new InterruptedException("of the body");
                  }))
          .isInstanceOf(InterruptedException.class)
          .hasNoSuppressedExceptions();
      assertNothingIsKept(cuda, pool);
    }
  }

  /** Asked by a thread that began no capture, and can end none. */
  private static void assertNothingIsKept(Cuda cuda, MemoryPool pool) {
    AtomicReference<PoolStats> seen = new AtomicReference<>();
    Thread other =
        Thread.ofPlatform()
            .start(() -> {
              cuda.leaksFound();
              seen.set(pool.stats());
            });
    try {
      other.join();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
    assertThat(seen.get().pendingBytes()).isZero();
    assertThat(seen.get().graphBytes()).isZero();
  }

  @CudaTest
  void secondLaunchWithoutAFree_namesTheWayOut(Cuda cuda, @NonBlocking CudaStream stream) {
    GraphMemoryResource resource = new GraphMemoryResource(cuda.device(0));
    List<Buffer> left = new ArrayList<>();
    try (CudaGraph graph =
        stream.capture(() -> {
          Buffer made = resource.allocate(BYTES, stream);
          made.fill((byte) 5, stream);
          left.add(made);
        })) {
      try (CudaGraphExec executable = graph.instantiate()) {
        executable.launch(stream);
        assertThatThrownBy(() -> executable.launch(stream))
            .isInstanceOfSatisfying(
                CudaException.class,
                e -> assertThat(e.status()).isEqualTo(CudaStatus.INVALID_VALUE))
            .hasMessageContaining("is not freed")
            .hasMessageContaining("GraphOptions.freeOnLaunch");
        stream.synchronize();
        assertThat(Bytes.areAll(left.getFirst(), 5)).isTrue();
        left.getFirst().close();
        stream.synchronize();
      }
      try (CudaGraphExec executable =
          graph.instantiate(GraphOptions.DEFAULTS.withFreeOnLaunch(true))) {
        executable.launch(stream);
        executable.launch(stream);
        stream.synchronize();
      }
    }
    cuda.driver().memory().memFree(0, left.getFirst().address());
    resource.trim();
  }

  @CudaTest
  void cycleAndNodeOfAnotherGraph_areRefused(Cuda cuda) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        GraphDefinition other = new GraphDefinition(cuda.device(0))) {
      GraphNode first = definition.root().empty();
      GraphNode second = definition.after(first).empty();
      GraphNode foreign = other.root().empty();
      assertThatIllegalArgumentException()
          .isThrownBy(() -> definition.edges().add(new GraphDependency(second, first)))
          .withMessageContaining("a cycle");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> definition.edges().add(new GraphDependency(first, foreign)))
          .withMessageContaining("expected: a node of");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> definition.after(foreign))
          .withMessageContaining("expected: a node of");
      assertThat(definition.nodes()).hasSize(2);
      assertThat(definition.edges()).containsExactly(new GraphDependency(first, second));
      definition.graph().instantiate().close();
    }
  }

  @CudaTest
  void updateWithAnotherTopology_saysWhy(MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer out = filled(pool, stream, 1);
        CudaGraph graph = stream.capture(() -> out.fill((byte) 2, stream));
        CudaGraph longer =
            stream.capture(() -> {
              out.fill((byte) 3, stream);
              out.fill((byte) 4, stream);
            });
        CudaGraphExec executable = graph.instantiate()) {
      assertThatThrownBy(() -> executable.update(longer))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("other nodes or edges")
          .hasMessageContaining("the executable is as it was");
      executable.launch(stream);
      stream.synchronize();
      assertThat(Bytes.areAll(out, 2)).isTrue();
    }
  }

  @CudaTest
  void streamThatIsNotJoined_isNamedAndBothGoOn(
      MemoryPool pool, @NonBlocking CudaStream stream, @NonBlocking CudaStream fork) {
    try (Buffer out = filled(pool, stream, 1)) {
      stream.synchronize();
      assertThatThrownBy(() ->
              stream.capture(() -> {
                fork.waitFor(stream);
                out.fill((byte) 2, fork);
              }))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("expected: waitFor of that stream in this one before the end");
      out.fill((byte) 3, stream);
      stream.synchronize();
      fork.synchronize();
      assertThat(Bytes.areAll(out, 3)).isTrue();
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void launchAfterTheArenaOfACopyWasClosed_isRefused(
      MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer out = filled(pool, stream, 1);
        Arena arena = Arena.ofShared()) {
      Arena closed = Arena.ofShared();
      MemorySegment source = closed.allocate(BYTES).fill((byte) 6);
      MemorySegment other = arena.allocate(BYTES).fill((byte) 7);
      try (CudaGraph graph = stream.capture(() -> out.copyFrom(source, stream));
          CudaGraph next = stream.capture(() -> out.copyFrom(other, stream));
          CudaGraph around = stream.capture(() -> stream.captureChild(graph));
          CudaGraph copy = graph.copy();
          GraphDefinition definition = new GraphDefinition(stream.device());
          CudaGraphExec executable = graph.instantiate();
          CudaGraphExec ofParent = around.instantiate();
          CudaGraphExec ofCopy = copy.instantiate()) {
        GraphNode _ = definition.root().embed(graph);
        try (CudaGraphExec ofNodes = definition.graph().instantiate()) {
          executable.launch(stream);
          stream.synchronize();
          assertThat(Bytes.areAll(out, 6)).isTrue();
          out.fill((byte) 1, stream);
          closed.close();
          for (CudaGraphExec each : List.of(executable, ofParent, ofCopy, ofNodes)) {
            assertThatIllegalStateException()
                .isThrownBy(() -> each.launch(stream))
                .withMessageContaining("whose arena is closed (expected: an arena that is open");
          }
        }
        stream.synchronize();
        assertThat(Bytes.areAll(out, 1)).isTrue();
        executable.update(next);
        executable.launch(stream);
        stream.synchronize();
        assertThat(Bytes.areAll(out, 7)).isTrue();
      }
    }
  }

  private static Buffer filled(MemoryPool pool, CudaStream stream, int value) {
    Buffer made = pool.allocate(BYTES, stream);
    made.fill((byte) value, stream);
    return made;
  }

  @CudaTest(simulatedOnly = true)
  void nodesThatFillPartsOfAValue_areRefused(Cuda cuda, @NonBlocking CudaStream stream) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer buffer = cuda.allocate(10, stream)) {
      Buffer shifted = buffer.slice(1, 8);
      GraphNode fill = definition.root().fill(shifted, (byte) 1);
      for (ThrowingCallable wrong :
          List.<ThrowingCallable>of(
              () -> definition.root().fillInts(buffer, 1),
              () -> definition.root().fillInts(shifted, 1),
              () -> definition.root().fillShorts(shifted, (short) 1),
              () -> definition.root().fillShorts(buffer.slice(0, 9), (short) 1),
              () -> fill.update().fillInts(shifted, 1))) {
        assertThatIllegalArgumentException()
            .isThrownBy(wrong)
            .withMessageContaining("address and size are multiples of ");
      }
      assertThat(definition.nodes()).containsExactly(fill);
      stream.synchronize();
    }
  }

  /** Also where the driver knows the capture, since others may. */
  @CudaTest(simulatedOnly = true)
  void launchIntoACapture_ofAStreamThatOthersHave_isRefused_andItGoesOn(
      Cuda cuda, @NonBlocking CudaStream stream, CudaStream blocking) {
    assertThat(stream.handle()).isNotZero();
    try (CudaGraph empty = stream.capture(() -> {});
        CudaGraphExec executable = empty.instantiate()) {
      stream
          .capture(() -> {
            for (ThrowingCallable wrong :
                List.<ThrowingCallable>of(
                    () -> executable.launch(stream), () -> executable.upload(stream))) {
              assertThatIllegalStateException()
                  .isThrownBy(wrong)
                  .withMessageContaining("is capturing a graph (expected: a stream that is not");
            }
          })
          .close();
      CudaStream nullStream = cuda.device(0).nullStream();
      blocking
          .capture(() -> {
            for (ThrowingCallable wrong :
                List.<ThrowingCallable>of(
                    () -> executable.launch(nullStream), () -> executable.upload(nullStream))) {
              assertThatIllegalStateException()
                  .isThrownBy(wrong)
                  .withMessageContaining("is capturing a graph");
            }
          })
          .close();
      executable.launch(stream);
      stream.synchronize();
    }
  }

  /** Also if the capture is of a stream that only somebody else knows. */
  @CudaTest(simulatedOnly = true)
  void launchInTheNullStream_whileOthersCapture_isRefused_andTheirCaptureGoesOn(Cuda cuda) {
    CudaStream nullStream = cuda.device(0).nullStream();
    CaptureCalls captures = cuda.driver().captures();
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        CudaGraphExec executable = definition.graph().instantiate()) {
      long blocking = cuda.driver().streams().streamCreateWithPriority(0, 0, 0);
      captures.streamBeginCapture(0, blocking, 2);
      for (ThrowingCallable wrong :
          List.<ThrowingCallable>of(
              () -> executable.launch(nullStream), () -> executable.upload(nullStream))) {
        assertThatIllegalStateException()
            .isThrownBy(wrong)
            .withMessageContaining("is capturing a graph (expected: a stream that is not");
      }
      cuda.driver().graphs().graphDestroy(captures.streamEndCapture(0, blocking));
      cuda.driver().streams().streamDestroy(0, blocking);
      executable.launch(nullStream);
      nullStream.synchronize();
    }
  }

  /** Also if somebody else began it, in the stream that every thread has. */
  @CudaTest(simulatedOnly = true)
  void launchIntoACapture_ofTheThreadsOwnStream_isRefused_andItGoesOn(
      Cuda cuda, CudaStream stream) {
    CudaStream own = cuda.device(0).perThreadStream();
    try (CudaGraph empty = stream.capture(() -> {});
        CudaGraphExec executable = empty.instantiate()) {
      cuda.driver().captures().streamBeginCapture(0, StreamHandle.PER_THREAD, 2);
      for (ThrowingCallable wrong :
          List.<ThrowingCallable>of(() -> executable.launch(own), () -> executable.upload(own))) {
        assertThatIllegalStateException()
            .isThrownBy(wrong)
            .withMessageContaining("is capturing a graph (expected: a stream that is not");
      }
      long graph = cuda.driver().captures().streamEndCapture(0, StreamHandle.PER_THREAD);
      cuda.driver().graphs().graphDestroy(graph);
      executable.launch(own);
      own.synchronize();
    }
  }
}
