package io.cuvette.testkit.races;

import io.cuvette.Buffer;
import io.cuvette.CaptureOptions;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.GraphMemory;
import io.cuvette.GraphMemoryResource;
import io.cuvette.GraphOptions;
import io.cuvette.StreamOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** Operations of graphs, and of captures. Stateless. */
final class GraphOperations {
  private GraphOperations() {}

  static List<Operation> all() {
    List<Operation> all = new ArrayList<>();
    addCaptures(all);
    addGraphs(all);
    addExecutables(all);
    addMemory(all);
    addCapturedNodes(all);
    return all;
  }

  private static void addCaptures(List<Operation> all) {
    for (Memory memory : List.of(Memory.POOLED, Memory.DIRECT)) {
      all.add(
          Operation.of(
              "CudaStream.capture(CaptureBody)",
              memory,
              stage -> {
                CudaStream stream = stream(stage);
                Buffer buffer = stage.buffer(memory);
                return () -> stream.capture(() -> buffer.fill((byte) 1, stream)).close();
              }));
    }
    all.add(
        Operation.of(
            "CudaStream.capture(CaptureOptions, CaptureBody)",
            stage -> {
              CudaStream stream = stream(stage);
              GraphMemory memory = memory(stage);
              Buffer buffer = stage.buffer(Memory.POOLED);
              return () ->
                  stream
                      .capture(
                          CaptureOptions.DEFAULTS.withMemory(memory),
                          () -> buffer.fill((byte) 1, stream))
                      .close();
            }));
    all.add(
        Operation.of(
            "CudaStream.beginCapture(CaptureOptions)",
            stage -> {
              CudaStream stream = stream(stage);
              return () -> stream.beginCapture(CaptureOptions.DEFAULTS);
            }));
    all.add(
        Operation.of(
            "CudaStream.endCapture()",
            stage -> {
              CudaStream stream = stream(stage);
              stream.beginCapture(CaptureOptions.DEFAULTS);
              return () -> stream.endCapture().close();
            }));
  }

  private static void addGraphs(List<Operation> all) {
    all.add(graph("instantiate()", graph -> graph.instantiate().close()));
    all.add(
        graph(
            "instantiate(GraphOptions)",
            graph -> graph.instantiate(GraphOptions.DEFAULTS.withNodePriorities(true)).close()));
    all.add(graph("copy()", graph -> graph.copy().close()));
    all.add(graph("toDot(boolean)", graph -> graph.toDot(true)));
    all.add(graph("handle()", CudaGraph::handle));
    all.add(graph("close()", CudaGraph::close));
  }

  private static void addExecutables(List<Operation> all) {
    all.add(inStream("launch(LaunchStream)", CudaGraphExec::launch));
    all.add(inStream("upload(LaunchStream)", CudaGraphExec::upload));
    all.add(
        Operation.of(
            "CudaGraphExec.update(CudaGraph)",
            stage -> {
              CudaGraph graph = captured(stage);
              CudaGraphExec executable = stage.ended(Closer.GRAPH, graph.instantiate());
              CudaGraph next = stage.ended(Closer.OTHER, captured(stage));
              return () -> executable.update(next);
            }));
    all.add(executable("handle()", CudaGraphExec::handle));
    all.add(executable("close()", CudaGraphExec::close));
  }

  private static void addCapturedNodes(List<Operation> all) {
    all.add(
        capturing(
            "CudaStream.captureCallback(Runnable)",
            (stage, stream) -> stream.captureCallback(() -> {})));
    all.add(
        Operation.of(
            "CudaStream.captureChild(CudaGraph)",
            stage -> {
              CudaGraph child = stage.ended(Closer.GRAPH, captured(stage));
              CudaStream stream = stream(stage);
              stream.beginCapture(CaptureOptions.DEFAULTS);
              return () -> stream.captureChild(child);
            }));
    all.add(
        Operation.of(
            "new GraphMemoryResource(CudaDevice)",
            stage -> () -> new GraphMemoryResource(stage.device)));
    all.add(
        capturing(
            "GraphMemoryResource.allocate(long, CudaStream)",
            (stage, stream) ->
                new GraphMemoryResource(stage.device).allocate(Stage.BYTES, stream).close()));
    all.add(resource("trim()", GraphMemoryResource::trim));
    all.add(resource("usedMemCurrent()", GraphMemoryResource::usedMemCurrent));
    all.add(resource("usedMemHigh()", GraphMemoryResource::usedMemHigh));
    all.add(resource("resetUsedMemHigh()", GraphMemoryResource::resetUsedMemHigh));
    all.add(resource("reservedMemCurrent()", GraphMemoryResource::reservedMemCurrent));
    all.add(resource("reservedMemHigh()", GraphMemoryResource::reservedMemHigh));
    all.add(resource("resetReservedMemHigh()", GraphMemoryResource::resetReservedMemHigh));
  }

  private static Operation capturing(String method, BiConsumer<Stage, CudaStream> call) {
    return Operation.of(
        method,
        stage -> {
          CudaStream stream = stream(stage);
          stream.beginCapture(CaptureOptions.DEFAULTS);
          return () -> call.accept(stage, stream);
        });
  }

  private static Operation resource(String method, Consumer<GraphMemoryResource> call) {
    return Operation.of(
        "GraphMemoryResource." + method,
        stage -> {
          GraphMemoryResource resource = new GraphMemoryResource(stage.device);
          return () -> call.accept(resource);
        });
  }

  private static void addMemory(List<Operation> all) {
    all.add(
        Operation.of(
            "CudaDevice.createGraphMemory()",
            stage -> () -> stage.device.createGraphMemory().close()));
    all.add(
        Operation.of(
            "CudaDevice.createGraphMemory(long)",
            stage -> () -> stage.device.createGraphMemory(Stage.BYTES).close()));
    all.add(
        Operation.of(
            "GraphMemory.close()",
            stage -> {
              GraphMemory memory = memory(stage);
              return memory::close;
            }));
  }

  /** A stream that can be captured beside work of others in the null stream. */
  private static CudaStream stream(Stage stage) {
    return stage.ended(Closer.STREAM, stage.device.createStream(StreamOptions.NON_BLOCKING));
  }

  private static GraphMemory memory(Stage stage) {
    return stage.ended(Closer.GRAPH, stage.device.createGraphMemory());
  }

  /** A graph with a fill of memory that it alone has by now. */
  private static CudaGraph captured(Stage stage) {
    try (CudaStream stream = stage.device.createStream(StreamOptions.NON_BLOCKING);
        Buffer buffer = stage.cuda.defaultMemoryPool().allocate(Stage.BYTES, stream)) {
      return stage.made(stream.capture(() -> buffer.fill((byte) 1, stream)));
    }
  }

  private static Operation graph(String method, Consumer<CudaGraph> call) {
    return Operation.of(
        "CudaGraph." + method,
        stage -> {
          CudaGraph graph = stage.ended(Closer.GRAPH, captured(stage));
          return () -> call.accept(graph);
        });
  }

  private static Operation executable(String method, Consumer<CudaGraphExec> call) {
    return Operation.of(
        "CudaGraphExec." + method,
        stage -> {
          CudaGraphExec executable = stage.ended(Closer.GRAPH, captured(stage).instantiate());
          return () -> call.accept(executable);
        });
  }

  /** What is done with an executable in a stream. */
  @FunctionalInterface
  private interface InStream {
    void accept(CudaGraphExec executable, CudaStream stream);
  }

  private static Operation inStream(String method, InStream call) {
    return Operation.of(
        "CudaGraphExec." + method,
        stage -> {
          CudaGraphExec executable = stage.ended(Closer.GRAPH, captured(stage).instantiate());
          CudaStream stream = stream(stage);
          return () -> call.accept(executable, stream);
        });
  }
}
