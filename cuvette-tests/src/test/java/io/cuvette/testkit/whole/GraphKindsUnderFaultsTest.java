package io.cuvette.testkit.whole;

import io.cuvette.Buffer;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.GraphCondition;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphMemoryResource;
import io.cuvette.GraphNode;
import io.cuvette.GraphOptions;
import io.cuvette.LaunchConfig;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.FaultSweeps.CudaUse;
import io.cuvette.testkit.support.TestKernels;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What graphs can hold besides kernels, copies and fills, with each driver call failing. */
@Tag("simulated")
class GraphKindsUnderFaultsTest {

  /** The uses, each of which closes what it opens. */
  enum Use implements CudaUse {
    CAPTURED_NODES {
      @Override
      public void run(Cuda cuda) {
        try (CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
            Buffer result = cuda.allocate(1000, stream);
            CudaGraph child =
                stream.capture(() -> {
                  try (Buffer inside = cuda.allocate(1000, stream)) {
                    inside.fill((byte) 1, stream);
                    result.copyFrom(inside, stream);
                  }
                });
            CudaGraph graph =
                stream.capture(() -> {
                  stream.captureCallback(() -> {});
                  stream.captureChild(child);
                });
            CudaGraphExec executable = graph.instantiate()) {
          executable.launch(stream);
          stream.synchronize();
        }
      }
    },
    MEMORY_OF_GRAPHS {
      @Override
      public void run(Cuda cuda) {
        GraphMemoryResource resource = new GraphMemoryResource(cuda.device(0));
        try (CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
          stream.beginCapture(CaptureOptions.DEFAULTS);
          try (Buffer left = resource.allocate(1000, stream)) {
            try (Buffer inside = resource.allocate(1000, stream)) {
              inside.fill((byte) 1, stream);
              left.copyFrom(inside, stream);
            }
            try (CudaGraph graph = stream.endCapture();
                CudaGraphExec executable =
                    graph.instantiate(GraphOptions.DEFAULTS.withFreeOnLaunch(true))) {
              executable.launch(stream);
              executable.launch(stream);
            }
          }
          stream.synchronize();
          resource.trim();
        }
      }
    },
    CONDITIONS {
      @Override
      public void run(Cuda cuda) {
        try (CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
            CudaModule module = TestKernels.graphs(cuda);
            Buffer number = cuda.allocate(4, stream);
            GraphDefinition graph = new GraphDefinition(cuda.device(0))) {
          GraphCondition goesOn = graph.createCondition(1);
          GraphNode loop = graph.root().whileLoop(goesOn);
          GraphDefinition body = loop.bodies().getFirst();
          GraphNode _ =
              body.root()
                  .launch(
                      module.kernel("countDown"), LaunchConfig.of(1, 1), goesOn.handle(), number);
          number.fillInts(2, stream);
          try (CudaGraphExec executable = graph.graph().instantiate()) {
            executable.launch(stream);
            stream.synchronize();
          }
          loop.remove();
        }
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  @Timeout(150)
  void use_leavesNothingBehind_endsInTime_andFailsWithATypedError(Use use) throws Exception {
    UnderFaultsTest.sweep()
        .recoveringFrom(CudaStatus.LAUNCH_FAILED, "eventQuery")
        .recoveringFrom("memFree")
        .recoveringFrom(CudaStatus.INVALID_VALUE, "deviceGetAttribute")
        // After the graph, when nobody closes the module any more: it is tried again.
        .recoveringFrom("libraryUnload")
        // No launch has allocated it, the driver says so.
        .recoveringFrom(CudaStatus.INVALID_VALUE, "memFreeAsync")
        .allowing(IllegalStateException.class)
        .run(FaultSweeps.usingTidily(use))
        .orThrow();
  }
}
