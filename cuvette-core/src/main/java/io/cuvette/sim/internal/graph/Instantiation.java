package io.cuvette.sim.internal.graph;

import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * How an instantiation ends. Immutable.
 *
 * @param executable null if it was refused
 * @param result CUgraphInstantiateResult
 * @param errorNode the handle of the node because of which it was refused; 0 if there is none
 */
public record Instantiation(@Nullable SimExecutable executable, int result, long errorNode) {
  private static final int INVALID_STRUCTURE = 2;
  private static final int OPERATION_NOT_SUPPORTED = 3;
  private static final int SEVERAL_CONTEXTS = 4;
  private static final int CONDITION_UNUSED = 5;
  private static final long FROM_DEVICES = 4;
  private static final long ALL_FLAGS = 15;

  /** Instantiates a graph, or says why not. */
  public static Instantiation of(SimGraph graph, long flags) {
    boolean fromDevices = (flags & FROM_DEVICES) != 0;
    if ((flags & ~ALL_FLAGS) != 0
        || (fromDevices && (flags & SimExecutable.FREES_ON_LAUNCH) != 0)) {
      throw SimRefusal.invalidValue(
          "flags: %d (expected: 0 to %d, not 1 with 4)".formatted(flags, ALL_FLAGS));
    }
    graph.checkInstantiates();
    Instantiation refused = checkStructure(graph);
    if (refused == null) {
      refused = checkConditions(graph);
    }
    if (refused == null && fromDevices) {
      Set<SimDevice> devices = new HashSet<>();
      refused = checkLaunchFromDevices(graph, devices);
      if (refused == null && devices.isEmpty()) {
        throw SimRefusal.invalidValue(
            "graph: 0x%x, to be launched from the device, has no work (expected: a kernel, copy or fill)"
                .formatted(graph.handle));
      }
    }
    return refused == null ? new Instantiation(new SimExecutable(graph, flags), 0, 0) : refused;
  }

  private static Instantiation refused(int result, long node) {
    return new Instantiation(null, result, node);
  }

  private static @Nullable Instantiation checkStructure(SimGraph graph) {
    List<SimNode> ordered = graph.ordered();
    if (ordered.size() < graph.size()) {
      Set<SimNode> fine = new HashSet<>(ordered);
      for (SimNode node : graph.nodes()) {
        if (!fine.contains(node)) {
          return refused(INVALID_STRUCTURE, node.handle);
        }
      }
    }
    for (SimNode node : ordered) {
      if (node.work().task() instanceof NodeTask.Free free
          && !isBehindAllocation(graph, node, free.block())) {
        return refused(INVALID_STRUCTURE, node.handle);
      }
      boolean isConditional = node.work().task() instanceof NodeTask.Conditional;
      for (SimGraph inside : node.work().graphs()) {
        Instantiation refused = checkStructure(inside);
        if (refused == null && isConditional) {
          refused = checkBody(inside, node.work().device());
        }
        if (refused != null) {
          return refused;
        }
      }
    }
    return null;
  }

  /** Whether a free of memory of the same graph comes after its allocation. */
  private static boolean isBehindAllocation(SimGraph graph, SimNode free, GraphBlock block) {
    return !graph.blocks().contains(block)
        || SimGraph.upTo(List.of(free)).stream()
            .anyMatch(node ->
                node.work().task() instanceof NodeTask.Allocation allocation
                    && allocation.block() == block);
  }

  private static @Nullable Instantiation checkBody(SimGraph body, SimDevice device) {
    for (SimNode node : body.nodes()) {
      switch (node.type()) {
        case KERNEL, EMPTY, GRAPH, MEMSET, MEMCPY, CONDITIONAL -> {
          if (node.work().device() != device) {
            return refused(SEVERAL_CONTEXTS, node.handle);
          }
        }
        default -> {
          return refused(OPERATION_NOT_SUPPORTED, node.handle);
        }
      }
      if (node.work().task() instanceof NodeTask.Child child) {
        Instantiation refused = checkBody(child.graph(), device);
        if (refused != null) {
          return refused;
        }
      }
    }
    return null;
  }

  private static @Nullable Instantiation checkConditions(SimGraph graph) {
    return graph.allConditions().stream().allMatch(condition -> condition.node() != null)
        ? null
        : refused(CONDITION_UNUSED, 0);
  }

  /** Collects the devices of all work, which must be one. */
  private static @Nullable Instantiation checkLaunchFromDevices(
      SimGraph graph, Set<SimDevice> devices) {
    for (SimNode node : graph.nodes()) {
      switch (node.type()) {
        case KERNEL, MEMCPY, MEMSET -> {
          devices.add(node.work().device());
          if (devices.size() > 1) {
            return refused(SEVERAL_CONTEXTS, node.handle);
          }
        }
        case GRAPH -> {
          for (SimGraph inside : node.work().graphs()) {
            Instantiation refused = checkLaunchFromDevices(inside, devices);
            if (refused != null) {
              return refused;
            }
          }
        }
        default -> {
          return refused(OPERATION_NOT_SUPPORTED, node.handle);
        }
      }
    }
    return null;
  }
}
