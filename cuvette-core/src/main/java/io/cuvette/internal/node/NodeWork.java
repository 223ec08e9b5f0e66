package io.cuvette.internal.node;

import io.cuvette.LaunchConfig;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.graph.GraphArena;
import io.cuvette.internal.graph.OpenGraph;
import io.cuvette.internal.kernel.ArgumentReader;
import io.cuvette.internal.kernel.OpenKernel;
import io.cuvette.internal.order.OpenEvent;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.transfer.FillValue;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** What nodes do. The graph keeps what they use. Stateless. */
public final class NodeWork {
  private NodeWork() {}

  public static NodeId launch(
      NodeTarget target,
      OpenKernel kernel,
      LaunchConfig config,
      @Nullable Object[] arguments,
      ArgumentReader reader) {
    return target.keeping(kept ->
        kernel.inGraph(
            target.device(),
            config,
            arguments,
            reader,
            used -> used.use(kept),
            (shape, parameters) ->
                target.set(new GraphNodeParams.Kernel(kernel.handle(), shape, parameters))));
  }

  public static NodeId copy(NodeTarget target, Memory to, Memory from) {
    checkMemory(target, "target", to);
    to.checkWritable();
    checkMemory(target, "source", from);
    if (from.byteSize() > to.byteSize()) {
      throw new IllegalArgumentException(
          "source: %d bytes (expected: at most the %d of the target)"
              .formatted(from.byteSize(), to.byteSize()));
    }
    if (from.address() < to.address() + from.byteSize()
        && to.address() < from.address() + from.byteSize()) {
      throw new IllegalArgumentException(
          "source: %s and target %s overlap (expected: memory apart)".formatted(from, to));
    }
    GraphNodeParams params =
        new GraphNodeParams.Copy(to.address(), from.address(), from.byteSize());
    return target.keeping(
        kept -> using(kept, to, () -> using(kept, from, () -> target.set(params))));
  }

  public static NodeId fill(NodeTarget target, Memory to, FillValue value) {
    checkMemory(target, "target", to);
    to.checkWritable();
    value.check(to);
    long count = to.byteSize() / value.bytes();
    GraphNodeParams params =
        new GraphNodeParams.Fill(to.address(), value.bits(), value.bytes(), count);
    return target.keeping(kept -> using(kept, to, () -> target.set(params)));
  }

  /** A function that runs on a thread of the driver, and must not wait for the device. */
  public static NodeId host(NodeTarget target, Runnable code) {
    return target.set(function(target.device().session(), code));
  }

  static GraphNodeParams function(Session session, Runnable code) {
    return new GraphNodeParams.Host(() -> call(session, code));
  }

  @SuppressWarnings("CatchingUnchecked") // nothing may get into the driver
  private static void call(Session session, Runnable code) {
    try {
      session.callUser("a function of a graph", code);
    } catch (Throwable e) { // it has no caller in Java
      Thread thread = Thread.currentThread();
      thread.getUncaughtExceptionHandler().uncaughtException(thread, e);
    }
  }

  public static NodeId empty(NodeTarget target) {
    return target.set(new GraphNodeParams.Empty());
  }

  public static NodeId record(NodeTarget target, OpenEvent event) {
    NodeId made = event(target, event, GraphNodeParams.EventRecord::new);
    event.recordedByGraph();
    return made;
  }

  public static NodeId await(NodeTarget target, OpenEvent event) {
    return event(target, event, GraphNodeParams.EventWait::new);
  }

  private static NodeId event(
      NodeTarget target, OpenEvent event, Function<Long, GraphNodeParams> params) {
    if (event.on() != target.device()) {
      throw new IllegalArgumentException(
          "%s of %s (expected: an event of %s)".formatted(event, event.on(), target.device()));
    }
    return target.keeping(kept -> {
      event.retain();
      kept.hold(event);
      return target.set(params.apply(event.handle()));
    });
  }

  /** The nodes of another graph, as they are now. */
  public static NodeId embed(NodeTarget target, OpenGraph child) {
    checkChild(target.device(), child);
    checkShared(child, target.memory());
    target.checkChild(child);
    OpenGraph copy = child.copy(); // so that no graph is locked inside another
    try {
      return target.alone(() -> {
        target.retained().addAll(copy.retained()); // one by one: it may be a copy of the target
        return copy.call(handle -> target.set(new GraphNodeParams.Child(handle)));
      });
    } finally {
      copy.close();
    }
  }

  static void checkChild(Device device, OpenGraph child) {
    if (child.device() != device) {
      throw new IllegalArgumentException(
          "graph: %s of %s (expected: of %s)".formatted(child, child.device(), device));
    }
  }

  static void checkShared(OpenGraph child, @Nullable GraphArena memory) {
    if (child.memory() != null && child.memory() != memory) {
      throw new IllegalArgumentException(
          "graph: %s shares memory with others (expected: in the same GraphMemory, or none)"
              .formatted(child));
    }
  }

  public static NodeId allocate(NodeTarget target, long bytes) {
    if (bytes <= 0) {
      throw new IllegalArgumentException("bytes: %d (expected: > 0)".formatted(bytes));
    }
    return target.set(new GraphNodeParams.Allocation(target.device().id(), bytes, List.of(), 0));
  }

  public static NodeId free(NodeTarget target, long address) {
    return target.set(new GraphNodeParams.Free(address));
  }

  /** A node that runs its bodies as a condition says, which the graph has. */
  public static NodeId condition(
      NodeTarget target, long condition, GraphConditionType type, int bodies) {
    return target.set(new GraphNodeParams.Conditional(condition, type, bodies));
  }

  private static void checkMemory(NodeTarget target, String what, Memory memory) {
    if (memory.on().session() != target.device().session()) {
      throw new IllegalArgumentException("%s: %s belongs to another Cuda".formatted(what, memory));
    }
    memory.checkOpen();
    if (memory.isOfDevice() && memory.on() != target.device()) {
      throw new IllegalArgumentException(
          "%s: %s of %s (expected: of %s, for which the graph is)"
              .formatted(what, memory, memory.on(), target.device()));
    }
    if (memory.byteSize() == 0) {
      throw new IllegalArgumentException("%s: 0 bytes (expected: > 0)".formatted(what));
    }
  }

  private static NodeId using(Capture kept, Memory memory, Supplier<NodeId> step) {
    memory.hold();
    try {
      memory.block().use(kept);
      return step.get();
    } finally {
      memory.unhold();
    }
  }
}
