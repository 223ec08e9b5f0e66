package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import io.cuvette.testkit.support.TestKernels;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * Random programs of kernels, copies, fills, events, forks, and memory that they take and free give
 * the memory of a model, whether their calls run at once or as a graph: captured and replayed,
 * copied, part of another, or taken over by an executable that did something else. Each way goes on
 * with what the one before has left.
 */
class RandomGraphProgramsTest {
  private static final int WAYS = 8;
  private static final int PROGRAMS_ON_A_GPU = 100;
  private static final int SLOTS = ReplayedProgram.SLOTS;
  private static final int BYTES = ReplayedProgram.BYTES;

  private enum Way {
    EAGER,
    CAPTURED,
    COPIED,
    EMBEDDED,
    UPDATED
  }

  /** The memory of one program, and its model. Confined to the test. */
  private static final class Run implements AutoCloseable {
    private final SplittableRandom random;
    private final MemoryPool pool;
    private final CudaKernel kernel;
    private final CudaStream[] streams;
    private final ReplayedProgram program;
    private final boolean waitsByEvent;
    private final Buffer[] slots = new Buffer[SLOTS];
    private final byte[][] model = new byte[SLOTS][];
    private final Buffer result;

    Run(SplittableRandom random, MemoryPool pool, CudaKernel kernel, CudaStream... streams) {
      this.random = random;
      this.pool = pool;
      this.kernel = kernel;
      this.streams = streams;
      this.program = ReplayedProgram.random(random);
      this.waitsByEvent = random.nextBoolean();
      this.result = pool.allocate((long) SLOTS * BYTES, streams[0]);
      for (int i = 0; i < SLOTS; i++) {
        slots[i] = pool.allocate(BYTES, streams[0]);
        model[i] = Bytes.random(random.nextLong(), BYTES);
        try (var _ = streams[0].use()) {
          Bytes.put(slots[i], model[i]);
        }
      }
    }

    private void queue(ReplayedProgram any) {
      any.queue(slots, result, streams, pool, kernel, this::follow);
    }

    private void follow(CudaStream stream, CudaStream other) {
      if (waitsByEvent) {
        try (CudaEvent event = other.record()) {
          stream.waitFor(event);
        }
      } else {
        stream.waitFor(other);
      }
    }

    private CudaGraph capture(ReplayedProgram any) {
      return streams[0].capture(() -> queue(any));
    }

    void go(Way way) {
      int times = random.nextInt(1, 4);
      switch (way) {
        case EAGER -> {
          for (int i = 0; i < times; i++) {
            queue(program);
          }
        }
        case CAPTURED -> {
          try (CudaGraph graph = capture(program)) {
            launch(graph, times);
          }
        }
        case COPIED -> {
          CudaGraph graph = capture(program);
          try (CudaGraph copy = graph.copy()) {
            graph.close();
            launch(copy, times);
          }
        }
        case EMBEDDED -> {
          CudaGraph graph = capture(program);
          try (CudaGraph around = streams[0].capture(() -> streams[0].captureChild(graph))) {
            graph.close();
            launch(around, times);
          }
        }
        case UPDATED -> update(times);
      }
      for (int i = 0; i < times; i++) {
        program.run(model);
      }
      check(way);
    }

    private void launch(CudaGraph graph, int times) {
      try (CudaGraphExec executable = graph.instantiate()) {
        launch(executable, times);
      }
    }

    private void launch(CudaGraphExec executable, int times) {
      for (int i = 0; i < times; i++) {
        executable.launch(streams[0]);
      }
    }

    private void update(int times) {
      ReplayedProgram other = program.withOtherNumbers(random);
      try (CudaGraph before = capture(other);
          CudaGraphExec executable = before.instantiate()) {
        if (random.nextBoolean()) {
          executable.launch(streams[0]);
          other.run(model);
        }
        try (CudaGraph graph = capture(program)) {
          executable.update(graph);
        }
        launch(executable, times);
      }
    }

    private void check(Way way) {
      streams[0].synchronize();
      byte[] content = Bytes.of(result);
      for (int i = 0; i < SLOTS; i++) {
        assertThat(Arrays.copyOfRange(content, i * BYTES, (i + 1) * BYTES))
            .as("slot %d of %s, %s", i, program, way)
            .isEqualTo(model[i]);
        assertThat(Bytes.of(slots[i])).isEqualTo(model[i]);
      }
    }

    @Override
    public void close() {
      Arrays.asList(slots).forEach(Buffer::close);
      result.close();
    }
  }

  @CudaTest(seeds = 40)
  void randomPrograms_giveTheMemoryOfTheModel_inEachWay(
      Subject subject,
      Cuda cuda,
      MemoryPool pool,
      @NonBlocking CudaStream stream,
      @NonBlocking CudaStream fork) {
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("countBytes");
      for (int i = subject.isSimulated() ? 1 : PROGRAMS_ON_A_GPU; i > 0; i--) {
        SplittableRandom random = new SplittableRandom(31 * subject.seed() + i);
        try (Run run = new Run(random, pool, kernel, stream, fork)) {
          for (int way = 0; way < WAYS; way++) {
            run.go(Way.values()[random.nextInt(Way.values().length)]);
          }
        }
        Graph.awaitGone(pool, stream);
      }
    }
  }
}
