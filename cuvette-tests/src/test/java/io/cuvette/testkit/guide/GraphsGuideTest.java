package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.GraphCondition;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphMemory;
import io.cuvette.GraphNode;
import io.cuvette.LaunchConfig;
import io.cuvette.StreamOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Assumptions;

/** The programs of docs/guide/graphs.md. */
class GraphsGuideTest {
  @CudaTest
  void captureAndLaunch(Cuda cuda, @NonBlocking CudaStream stream) {
    try (Buffer result = cuda.allocate(1024, stream);
        CudaGraph graph =
            stream.capture(() -> {
              try (Buffer step = cuda.allocate(1024, stream)) {
                step.fill((byte) 7, stream);
                step.copyTo(result, stream);
              }
            });
        CudaGraphExec executable = graph.instantiate()) {
      for (int i = 0; i < 1000; i++) {
        executable.launch(stream);
      }
      stream.synchronize();
      byte[] back = new byte[1024];
      result.copyTo(MemorySegment.ofArray(back));
      assertThat(back).containsOnly(7);
    }
    Graph.awaitGone(cuda.defaultMemoryPool(), stream);
  }

  @CudaTest
  void nodeByNode(Cuda cuda, @NonBlocking CudaStream stream) {
    CudaGraphExec executable;
    Buffer a = cuda.allocate(1024, stream);
    Buffer b = cuda.allocate(1024, stream);
    Buffer c = cuda.allocate(1024, stream);
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      GraphNode first = definition.root().fillInts(a, 1);
      GraphNode second = definition.root().fillInts(b, 2);
      definition.after(first, second).copy(c, a);
      executable = definition.graph().instantiate();
    }
    try (executable;
        a;
        b;
        c) {
      executable.launch(stream);
      stream.synchronize();
      assertThat(Bytes.of(c)).isEqualTo(Bytes.of(a));
    }
    Graph.awaitGone(cuda.defaultMemoryPool(), stream);
  }

  @CudaTest
  void loop(Cuda cuda, @NonBlocking CudaStream stream) {
    Assumptions.assumeTrue(cuda.driverVersion() >= 12_030, "conditional nodes of CUDA 12.3");
    try (CudaModule module = TestKernels.graphs(cuda);
        Buffer turns = cuda.allocate(4, stream)) {
      try (CudaGraphExec executable = loop(cuda, module.kernel("countDown"), turns)) {
        turns.fillInts(5, stream);
        executable.launch(stream);
        stream.synchronize();
      }
      assertThat(Bytes.areAll(turns, 0)).isTrue();
    }
    Graph.awaitGone(cuda.defaultMemoryPool(), stream);
  }

  static CudaGraphExec loop(Cuda cuda, CudaKernel countDown, Buffer turns) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      GraphCondition goesOn = definition.createCondition(1); // its number at the start of a launch
      GraphNode loop = definition.root().whileLoop(goesOn);
      GraphDefinition body = loop.bodies().getFirst();
      LaunchConfig one = LaunchConfig.of(1, 1);
      body.root().launch(countDown, one, goesOn.handle(), turns); // cudaGraphSetConditional
      return definition.graph().instantiate();
    }
  }

  @CudaTest
  void fork(Cuda cuda, @NonBlocking CudaStream stream) {
    CudaStream fork = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    Buffer first = cuda.allocate(1024, stream);
    Buffer second = cuda.allocate(1024, stream);
    CudaGraph graph =
        stream.capture(() -> {
          fork.waitFor(stream);
          first.fill((byte) 1, stream);
          second.fill((byte) 2, fork);
          stream.waitFor(fork);
        });
    try (fork;
        graph;
        first;
        second;
        CudaGraphExec executable = graph.instantiate()) {
      executable.launch(stream);
      stream.synchronize();
      assertThat(Bytes.areAll(first, 1)).isTrue();
      assertThat(Bytes.areAll(second, 2)).isTrue();
    }
    Graph.awaitGone(cuda.defaultMemoryPool(), stream);
  }

  @CudaTest
  void sharedMemory(Cuda cuda, @NonBlocking CudaStream stream) {
    Buffer result = cuda.allocate(1024, stream);
    List<CudaGraphExec> executables = ofBatches(cuda, stream, result);
    for (CudaGraphExec each : executables) {
      each.launch(stream);
    }
    stream.synchronize();
    assertThat(Bytes.areAll(result, 1)).isTrue();
    executables.forEach(CudaGraphExec::close);
    result.close();
    Graph.awaitGone(cuda.defaultMemoryPool(), stream);
  }

  static List<CudaGraphExec> ofBatches(Cuda cuda, CudaStream stream, Buffer result) {
    List<CudaGraphExec> executables = new ArrayList<>();
    try (GraphMemory memory = cuda.device(0).createGraphMemory()) {
      CaptureOptions options = CaptureOptions.DEFAULTS.withMemory(memory);
      for (int batch : new int[] {128, 64, 32, 16, 8, 4, 2, 1}) { // the largest first
        CudaGraph graph = stream.capture(options, () -> step(cuda, stream, batch, result));
        executables.add(graph.instantiate());
        graph.close();
      }
    }
    return executables;
  }

  private static void step(Cuda cuda, CudaStream stream, int batch, Buffer result) {
    try (Buffer layer = cuda.allocate(batch * 4096L, stream)) {
      layer.fill((byte) batch, stream);
      layer.slice(0, 1024).copyTo(result, stream);
    }
  }
}
