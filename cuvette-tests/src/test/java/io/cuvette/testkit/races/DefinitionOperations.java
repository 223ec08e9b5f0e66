package io.cuvette.testkit.races;

import io.cuvette.Buffer;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.GraphCondition;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphNode;
import io.cuvette.GraphPlace;
import io.cuvette.LaunchConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Consumer;

/** Operations of graphs that are built node by node. Stateless. */
final class DefinitionOperations {
  private static final int FLOATS = Stage.BYTES / Float.BYTES;

  private DefinitionOperations() {}

  static List<Operation> all() {
    List<Operation> all = new ArrayList<>();
    addDefinitions(all);
    addPlaces(all);
    addWork(all);
    addNodes(all);
    addExecutables(all);
    return all;
  }

  private static void addDefinitions(List<Operation> all) {
    all.add(
        Operation.of(
            "new GraphDefinition(CudaDevice)",
            stage -> () -> new GraphDefinition(stage.device).close()));
    all.add(definition("GraphDefinition.nodes()", one -> one.nodes().size()));
    all.add(definition("GraphDefinition.edges()", one -> one.edges().size()));
    all.add(definition("GraphDefinition.close()", GraphDefinition::close));
    all.add(definition("GraphDefinition.createCondition()", GraphDefinition::createCondition));
    all.add(definition("GraphDefinition.createCondition(int)", one -> one.createCondition(1)));
  }

  private static void addPlaces(List<Operation> all) {
    all.add(place("GraphPlace.empty()", GraphPlace::empty));
    all.add(conditional("GraphPlace.ifThen(GraphCondition)", GraphPlace::ifThen));
    all.add(conditional("GraphPlace.ifElse(GraphCondition)", GraphPlace::ifElse));
    all.add(conditional("GraphPlace.whileLoop(GraphCondition)", GraphPlace::whileLoop));
    all.add(
        conditional(
            "GraphPlace.switchCase(GraphCondition, int)",
            (place, condition) -> place.switchCase(condition, 2)));
    all.add(place("GraphPlace.allocate(long)", place -> place.allocate(Stage.BYTES)));
    all.add(
        Operation.of(
            "GraphPlace.free(GraphNode)",
            stage -> {
              GraphDefinition definition = made(stage);
              GraphNode allocated = definition.root().allocate(Stage.BYTES);
              GraphPlace place = definition.after(allocated);
              return () -> place.free(allocated);
            }));
    all.add(
        Operation.of(
            "GraphPlace.embed(CudaGraph)",
            stage -> {
              GraphPlace place = made(stage).root();
              GraphDefinition child = stage.ended(Closer.OTHER, new GraphDefinition(stage.device));
              GraphNode _ = child.root().empty();
              return () -> place.embed(child.graph());
            }));
  }

  private static void addWork(List<Operation> all) {
    all.add(
        Operation.of(
            "GraphWork.launch(LaunchableKernel, LaunchConfig, Object[])",
            stage -> {
              CudaModule module = stage.module();
              GraphPlace place = made(stage).root();
              Buffer buffer = stage.buffer(Memory.POOLED);
              return () ->
                  place.launch(
                      module.kernel("scale"), LaunchConfig.of(1, FLOATS), buffer, 1f, FLOATS);
            }));
    all.add(
        Operation.of(
            "GraphWork.copy(Buffer, Buffer)",
            stage -> {
              GraphPlace place = made(stage).root();
              Buffer target = stage.buffer(Memory.POOLED);
              Buffer source = stage.other();
              return () -> place.copy(target, source);
            }));
    all.add(fill("GraphWork.fill(Buffer, byte)", (place, buffer) -> place.fill(buffer, (byte) 1)));
    all.add(
        fill(
            "GraphWork.fillShorts(Buffer, short)",
            (place, buffer) -> place.fillShorts(buffer, (short) 1)));
    all.add(fill("GraphWork.fillInts(Buffer, int)", (place, buffer) -> place.fillInts(buffer, 1)));
    all.add(place("GraphWork.callback(Runnable)", place -> place.callback(() -> {})));
    all.add(event("GraphWork.record(CudaEvent)", GraphPlace::record));
    all.add(event("GraphWork.waitFor(CudaEvent)", GraphPlace::waitFor));
  }

  private static void addNodes(List<Operation> all) {
    all.add(node("GraphNode.type()", GraphNode::type));
    all.add(node("GraphNode.parameters()", GraphNode::parameters));
    all.add(node("GraphNode.dependencies()", GraphNode::dependencies));
    all.add(node("GraphNode.dependents()", GraphNode::dependents));
    all.add(node("GraphNode.remove()", GraphNode::remove));
    all.add(
        Operation.of(
            "GraphNode.address()",
            stage -> {
              GraphNode allocated = made(stage).root().allocate(Stage.BYTES);
              return allocated::address;
            }));
    all.add(
        Operation.of(
            "GraphNode.buffer(CudaStream)",
            stage -> {
              GraphNode allocated = made(stage).root().allocate(Stage.BYTES);
              CudaStream stream = stage.stream();
              return () -> allocated.buffer(stream).close();
            }));
    all.add(
        Operation.of(
            "GraphNode.bodies()",
            stage -> {
              GraphDefinition definition = made(stage);
              GraphNode node = definition.root().ifThen(definition.createCondition(1));
              return () -> node.bodies().getFirst().root().empty();
            }));
    all.add(kernel("GraphNode.priority()", GraphNode::priority));
    all.add(kernel("GraphNode.setPriority(int)", node -> node.setPriority(0)));
  }

  private static void addExecutables(List<Operation> all) {
    all.add(
        executable(
            "GraphNode.setEnabledIn(CudaGraphExec, boolean)",
            (node, executable) -> node.setEnabledIn(executable, false)));
    all.add(executable("GraphNode.isEnabledIn(CudaGraphExec)", (node, in) -> node.isEnabledIn(in)));
    all.add(
        Operation.of(
            "GraphNode.updateIn(CudaGraphExec)",
            stage -> {
              Buffer buffer = stage.buffer(Memory.POOLED);
              GraphDefinition definition = made(stage);
              GraphNode filled = definition.root().fill(buffer, (byte) 1);
              CudaGraphExec executable =
                  stage.ended(Closer.OTHER, definition.graph().instantiate());
              return () -> filled.updateIn(executable).fill(buffer, (byte) 2);
            }));
    all.add(
        Operation.of(
            "GraphNode.update()",
            stage -> {
              Buffer buffer = stage.buffer(Memory.POOLED);
              GraphNode filled = made(stage).root().fill(buffer, (byte) 1);
              return () -> filled.update().fill(buffer, (byte) 2);
            }));
  }

  private static GraphDefinition made(Stage stage) {
    return stage.ended(Closer.GRAPH, new GraphDefinition(stage.device));
  }

  private static Operation definition(String method, Consumer<GraphDefinition> call) {
    return Operation.of(
        method,
        stage -> {
          GraphDefinition definition = made(stage);
          GraphNode _ = definition.root().empty();
          return () -> call.accept(definition);
        });
  }

  private static Operation conditional(
      String method, BiFunction<GraphPlace, GraphCondition, GraphNode> call) {
    return Operation.of(
        method,
        stage -> {
          GraphDefinition definition = made(stage);
          GraphCondition condition = definition.createCondition(1);
          return () -> call.apply(definition.root(), condition);
        });
  }

  private static Operation place(String method, Consumer<GraphPlace> call) {
    return Operation.of(
        method,
        stage -> {
          GraphPlace place = made(stage).root();
          return () -> call.accept(place);
        });
  }

  private static Operation fill(String method, BiConsumer<GraphPlace, Buffer> call) {
    return Operation.of(
        method,
        stage -> {
          GraphPlace place = made(stage).root();
          Buffer buffer = stage.buffer(Memory.POOLED);
          return () -> call.accept(place, buffer);
        });
  }

  private static Operation event(String method, BiConsumer<GraphPlace, CudaEvent> call) {
    return Operation.of(
        method,
        stage -> {
          GraphPlace place = made(stage).root();
          CudaEvent event = stage.event();
          return () -> call.accept(place, event);
        });
  }

  private static Operation node(String method, Consumer<GraphNode> call) {
    return Operation.of(
        method,
        stage -> {
          GraphNode node = made(stage).root().empty();
          return () -> call.accept(node);
        });
  }

  private static Operation kernel(String method, Consumer<GraphNode> call) {
    return Operation.of(
        method,
        stage -> {
          Buffer buffer = stage.buffer(Memory.POOLED);
          GraphNode node =
              made(stage)
                  .root()
                  .launch(
                      stage.module().kernel("scale"),
                      LaunchConfig.of(1, FLOATS),
                      buffer,
                      1f,
                      FLOATS);
          return () -> call.accept(node);
        });
  }

  private static Operation executable(String method, BiConsumer<GraphNode, CudaGraphExec> call) {
    return Operation.of(
        method,
        stage -> {
          Buffer buffer = stage.buffer(Memory.POOLED);
          GraphDefinition definition = made(stage);
          GraphNode filled = definition.root().fill(buffer, (byte) 1);
          CudaGraphExec executable = stage.ended(Closer.OTHER, definition.graph().instantiate());
          return () -> call.accept(filled, executable);
        });
  }
}
