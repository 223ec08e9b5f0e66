package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CaptureMode;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphMemory;
import io.cuvette.GraphNode;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Assumptions;

/** Programs that do with graphs what nobody should, or do it all at the same time. */
class HostileGraphProgramsTest {
  private static final int BYTES = 4096;
  private static final int THREADS = 4;

  private static CudaStream newStream(Cuda cuda) {
    return cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  }

  private static Buffer filled(MemoryResource from, CudaStream stream, int value) {
    Buffer made = from.allocate(BYTES, stream);
    made.fill((byte) value, stream);
    return made;
  }

  /** What others do with memory that came back: everything that was there before is gone. */
  private static void overwrite(MemoryResource from, CudaStream stream) {
    try (Buffer any = filled(from, stream, 77)) {
      assertThat(any.isClosed()).isFalse();
    }
  }

  /** Some threads at once, each with two streams. */
  private static void together(
      Cuda cuda, SplittableRandom random, BiConsumer<CudaStream[], SplittableRandom> program)
      throws InterruptedException {
    Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      SplittableRandom own = random.split();
      Thread.Builder builder = i % 2 == 0 ? Thread.ofPlatform() : Thread.ofVirtual();
      threads.add(
          builder.start(() -> {
            try (CudaStream one = newStream(cuda);
                CudaStream two = newStream(cuda)) {
              program.accept(new CudaStream[] {one, two}, own);
            } catch (RuntimeException | Error e) {
              failures.add(e);
            }
          }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(failures).isEmpty();
  }

  @CudaTest(seeds = 5)
  void threadsThatShareGraphMemory_findTheirOwnResults(
      Subject subject, Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream)
      throws InterruptedException {
    try (GraphMemory memory = cuda.device(0).createGraphMemory()) {
      CaptureOptions shared = CaptureOptions.DEFAULTS.withMemory(memory);
      together(
          cuda,
          subject.random(),
          (streams, random) -> {
            for (int i = 0; i < 4; i++) {
              replay(
                  pool, random.nextBoolean() ? shared : CaptureOptions.DEFAULTS, streams, random);
            }
          });
    }
    Graph.awaitGone(pool, stream);
  }

  private static void replay(
      MemoryPool pool, CaptureOptions options, CudaStream[] streams, SplittableRandom random) {
    int value = random.nextInt(1, 70);
    CudaStream stream = streams[0];
    try (Buffer result = pool.allocate(BYTES, stream)) {
      Buffer source = filled(pool, stream, value);
      stream.synchronize();
      CudaGraph graph =
          stream.capture(
              options,
              () -> {
                try (Buffer step = pool.allocate(BYTES, stream)) {
                  step.copyFrom(source, stream);
                  result.copyFrom(step, stream);
                }
                source.close();
              });
      try (CudaGraphExec executable = graph.instantiate()) {
        graph.close();
        for (int i = 0; i < 3; i++) {
          CudaStream in = streams[random.nextInt(2)];
          overwrite(pool, in);
          executable.launch(in);
          in.synchronize();
          assertThat(Bytes.areAll(result, value)).isTrue();
        }
        executable.launch(stream);
      }
    }
  }

  @CudaTest(seeds = 5)
  void executablesThatChange_whileTheirGraphDoes_useWhatTheyWereGiven(
      Subject subject, Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream)
      throws InterruptedException {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer unused = filled(pool, stream, 0);
        Buffer out = pool.allocate(BYTES, stream)) {
      stream.synchronize();
      GraphNode node = definition.root().copy(out, unused);
      together(
          cuda,
          subject.random(),
          (streams, random) -> change(definition, node, out, pool, streams[0], random));
    }
    Graph.awaitGone(pool, stream);
  }

  private static void change(
      GraphDefinition definition,
      GraphNode node,
      Buffer unused,
      MemoryPool pool,
      CudaStream stream,
      SplittableRandom random) {
    try (Buffer out = pool.allocate(BYTES, stream);
        CudaGraphExec executable = definition.graph().instantiate()) {
      for (int i = 0; i < 8; i++) {
        int value = random.nextInt(1, 70);
        try (Buffer in = filled(pool, stream, value)) {
          node.updateIn(executable).copy(out, in);
          if (random.nextInt(4) == 0) {
            node.update().copy(unused, in);
          }
        }
        executable.launch(stream);
        overwrite(pool, stream);
        if (random.nextBoolean()) {
          stream.synchronize();
          assertThat(Bytes.areAll(out, value)).isTrue();
        }
      }
    }
  }

  @CudaTest
  void bodyThatEndsItsOwnCapture_isTold_andKeepsItsGraph(
      MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer out = filled(pool, stream, 1)) {
      List<CudaGraph> ended = new ArrayList<>();
      assertThatIllegalStateException()
          .isThrownBy(() ->
              stream.capture(() -> {
                out.fill((byte) 2, stream);
                ended.add(stream.endCapture());
              }))
          .withMessageContaining("is not capturing");
      assertThatThrownBy(() ->
              stream.capture(() -> {
                ended.add(stream.endCapture());
                stream.beginCapture(CaptureOptions.DEFAULTS);
                throw new InterruptedException("of the body");
              }))
          .isInstanceOf(InterruptedException.class);
      assertThat(stream.isCapturing()).isFalse();
      try (CudaGraphExec executable = ended.getFirst().instantiate()) {
        executable.launch(stream);
        stream.synchronize();
      }
      assertThat(Bytes.areAll(out, 2)).isTrue();
      ended.forEach(CudaGraph::close);
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void forkThatIsClosedBeforeItsJoin_leavesNothing(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    for (CaptureMode mode : CaptureMode.values()) {
      assertThatThrownBy(() ->
              stream.capture(
                  new CaptureOptions(mode, null),
                  () -> {
                    try (CudaStream fork = newStream(cuda)) {
                      fork.waitFor(stream);
                      overwrite(pool, fork);
                    }
                  }))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("expected: waitFor of that stream");
    }
    stream.synchronize();
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void captureThatIsShortOfMemory_goesOn(Cuda cuda, @NonBlocking CudaStream stream) {
    try (MemoryPool pool = new MemoryPool(cuda)) {
      pool.setLimit(new MemoryLimit.Bytes(3 * BYTES));
      try (Buffer out = pool.allocate(BYTES, stream);
          CudaGraph graph =
              stream.capture(() -> {
                try (Buffer step = filled(pool, stream, 4)) {
                  assertThatThrownBy(() -> pool.allocate(2 * BYTES, stream))
                      .isInstanceOf(OutOfDeviceMemoryException.class);
                  out.copyFrom(step, stream);
                }
              });
          CudaGraphExec executable = graph.instantiate()) {
        assertThatThrownBy(() -> pool.allocate(2 * BYTES, stream))
            .isInstanceOf(OutOfDeviceMemoryException.class)
            .hasMessageContaining("graphs");
        executable.launch(stream);
        stream.synchronize();
        assertThat(Bytes.areAll(out, 4)).isTrue();
      }
      Graph.awaitGone(pool, stream);
      pool.allocate(3 * BYTES, stream).close();
    }
  }

  @CudaTest
  void poolThatIsClosedInsideACapture_leavesItsMemoryToTheGraph(
      Cuda cuda, MemoryPool results, @NonBlocking CudaStream stream) {
    MemoryPool pool = new MemoryPool(cuda);
    try (Buffer out = results.allocate(BYTES, stream);
        CudaGraph graph =
            stream.capture(() -> {
              try (Buffer step = filled(pool, stream, 4)) {
                pool.close();
                out.copyFrom(step, stream);
              }
            });
        CudaGraphExec executable = graph.instantiate()) {
      overwrite(MemoryResource.direct(), stream);
      executable.launch(stream);
      stream.synchronize();
      assertThat(Bytes.areAll(out, 4)).isTrue();
    }
    Graph.awaitGone(results, stream);
  }

  @CudaTest(seeds = 5)
  void elasticMemoryOfAGraph_staysWhereItIs_whatIsTrimmedAround(
      Subject subject, Cuda cuda, MemoryPool results, @NonBlocking CudaStream stream) {
    Assumptions.assumeTrue(subject.isSimulated(), "a model of the pool's pages");
    SplittableRandom random = subject.random();
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
        Buffer out = results.allocate(BYTES, stream)) {
      Buffer before = pool.allocate(random.nextInt(1, 200) << 16, stream);
      CudaGraph graph =
          stream.capture(() -> {
            try (Buffer step = filled(pool, stream, 5)) {
              out.copyFrom(step, stream);
            }
          });
      before.close();
      try (graph;
          CudaGraphExec executable = graph.instantiate()) {
        for (int i = 0; i < 6; i++) {
          pool.trim(0);
          try (Buffer any = pool.allocate(random.nextInt(1, 200) << 16, stream)) {
            any.fill((byte) 9, stream);
          }
          out.fill((byte) 0, stream);
          executable.launch(stream);
          stream.synchronize();
          assertThat(Bytes.areAll(out, 5)).isTrue();
        }
      }
    }
    Graph.awaitGone(results, stream);
  }

  @CudaTest(seeds = 5)
  void launchesInFlight_areDone_whenTheCudaIsClosed(Subject subject) {
    for (boolean isCapturing : new boolean[] {false, true}) {
      AtomicInteger ran = new AtomicInteger();
      Cuda cuda = subject.open(options -> options);
      CudaStream stream = newStream(cuda);
      CudaGraphExec executable;
      try (CudaGraph graph = stream.capture(() -> stream.captureCallback(ran::incrementAndGet))) {
        executable = graph.instantiate();
      }
      for (int i = 0; i < 3; i++) {
        executable.launch(stream);
      }
      if (isCapturing) {
        stream.beginCapture(CaptureOptions.DEFAULTS);
      }
      cuda.close();
      assertThat(ran).hasValue(3);
      assertThatIllegalStateException().isThrownBy(() -> executable.launch(stream));
    }
  }
}
