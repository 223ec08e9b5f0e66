package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cuvette.Buffer;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphMemory;
import io.cuvette.GraphMemoryResource;
import io.cuvette.GraphNode;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Kind;
import java.util.List;
import java.util.function.Consumer;

/** A graph is of one device: what is another's is refused, before anything changed. */
class GraphsOfOthersTest {
  private static final int BYTES = 64;

  @CudaTest(devices = 2, simulatedOnly = true)
  void captureWithMemoryOfAnotherDevice_isRefused_andNothingBegins(
      Cuda cuda, @NonBlocking CudaStream stream) {
    try (GraphMemory far = cuda.device(1).createGraphMemory()) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> stream.beginCapture(CaptureOptions.DEFAULTS.withMemory(far)))
          .withMessage("beginCapture: memory of device 1 (expected: of device 0)");
      assertThat(stream.isCapturing()).isFalse();
    }
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void updateByAGraphOfAnotherDevice_isRefused(
      @NonBlocking CudaStream stream, @OnDevice(1) @NonBlocking CudaStream far) {
    try (CudaGraph own = stream.capture(() -> {});
        CudaGraph other = far.capture(() -> {});
        CudaGraphExec executable = own.instantiate()) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> executable.update(other))
          .withMessage("update: graph of device 1 (expected: of device 0)");
      executable.update(own);
      executable.launch(stream);
      stream.synchronize();
    }
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void nodesForWhatIsOfAnotherDevice_areRefused(
      Cuda cuda, CudaStream stream, @OnDevice(1) @NonBlocking CudaStream far) {
    CudaDevice second = cuda.device(1);
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        CudaGraph child = far.capture(() -> {});
        CudaEvent event = second.createEvent();
        Buffer own = cuda.allocate(BYTES, stream);
        Buffer other = cuda.allocate(BYTES, far)) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> definition.root().embed(child))
          .withMessageStartingWith("graph: ")
          .withMessageEndingWith(" of device 1 (expected: of device 0)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> definition.root().record(event))
          .withMessageEndingWith(" of device 1 (expected: an event of device 0)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> definition.root().waitFor(event))
          .withMessageEndingWith(" of device 1 (expected: an event of device 0)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> definition.root().copy(own, other))
          .withMessageStartingWith("source: ")
          .withMessageEndingWith(" of device 1 (expected: of device 0, for which the graph is)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> definition.root().fill(other, (byte) 1))
          .withMessageStartingWith("target: ");
      assertThat(definition.nodes()).isEmpty();
    }
  }

  @CudaTest(simulatedOnly = true)
  void nodeForMemoryOfAnotherCuda_isRefused(Cuda cuda) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Cuda another = Cuda.open(CudaOptions.DEFAULTS.withDevice("sim"));
        Buffer foreign = another.allocate(BYTES)) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> definition.root().fill(foreign, (byte) 1))
          .withMessageStartingWith("target: ")
          .withMessageEndingWith(" belongs to another Cuda");
      assertThat(definition.nodes()).isEmpty();
    }
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void memoryOfANode_isForStreamsOfItsDevice(
      Cuda cuda, CudaStream stream, @OnDevice(1) CudaStream far) {
    GraphMemoryResource resource = new GraphMemoryResource(cuda.device(0));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> resource.allocate(BYTES, far))
        .withMessageEndingWith(" of device 1 (expected: a stream of device 0)");
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      GraphNode node = definition.root().allocate(BYTES);
      assertThatIllegalArgumentException()
          .isThrownBy(() -> node.buffer(far))
          .withMessageEndingWith(" of device 1 (expected: of device 0, whose memory it is)");
      try (Buffer memory = node.buffer(stream)) {
        assertThat(memory.byteSize()).isEqualTo(BYTES);
      }
    }
  }

  /** It is every device's. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void memoryOfTheHost_isForNodesOfEachDevice(Cuda cuda, @NonBlocking CudaStream stream) {
    for (Kind kind : List.of(Kind.MANAGED, Kind.PINNED)) {
      try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
          Buffer memory = kind.allocate(cuda.device(1), BYTES);
          Buffer other = kind.allocate(cuda.device(1), BYTES)) {
        cuda.device(1).synchronize();
        GraphNode fill = definition.root().fill(memory, (byte) 3);
        GraphNode _ = definition.after(fill).copy(other, memory);
        try (CudaGraphExec executable = definition.graph().instantiate()) {
          executable.launch(stream);
          stream.synchronize();
        }
        assertThat(Bytes.areAll(other, 3)).as("%s", kind).isTrue();
      }
    }
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void graphOfAnotherDevice_isNoChildOfACapture_whichGoesOn(
      @NonBlocking CudaStream stream, @OnDevice(1) @NonBlocking CudaStream far) {
    try (CudaGraph child = far.capture(() -> {});
        CudaGraph graph =
            stream.capture(() ->
                assertThatIllegalArgumentException()
                    .isThrownBy(() -> stream.captureChild(child))
                    .withMessageStartingWith("graph: ")
                    .withMessageEndingWith(" of device 1 (expected: of device 0)"));
        CudaGraphExec executable = graph.instantiate()) {
      executable.launch(stream);
      stream.synchronize();
    }
  }

  @CudaTest(simulatedOnly = true)
  void streamOfAnotherCuda_andAClosedOne_launchAndUploadNothing(
      Cuda cuda, @NonBlocking CudaStream stream) {
    CudaStream closed = cuda.device(0).createStream();
    closed.close();
    try (Buffer out = cuda.allocate(BYTES, stream);
        CudaGraph graph = stream.capture(() -> out.fill((byte) 2, stream));
        CudaGraphExec executable = graph.instantiate();
        Cuda another = Cuda.open(CudaOptions.DEFAULTS.withDevice("sim"));
        CudaStream foreign = another.device(0).createStream()) {
      out.fill((byte) 1, stream);
      for (Consumer<CudaStream> use :
          List.<Consumer<CudaStream>>of(executable::launch, executable::upload)) {
        assertThatIllegalArgumentException()
            .isThrownBy(() -> use.accept(foreign))
            .withMessageContaining("belongs to another Cuda");
        assertThatIllegalStateException()
            .isThrownBy(() -> use.accept(closed))
            .withMessageContaining("is closed");
      }
      stream.synchronize();
      assertThat(Bytes.areAll(out, 1)).isTrue();
    }
  }

  @CudaTest(simulatedOnly = true)
  void graphOfAClosedCuda_isNotMade() {
    CudaDevice device;
    try (Cuda another = Cuda.open(CudaOptions.DEFAULTS.withDevice("sim"))) {
      device = another.device(0);
    }
    assertThatIllegalStateException()
        .isThrownBy(() -> new GraphDefinition(device))
        .withMessageContaining("closed");
  }
}
