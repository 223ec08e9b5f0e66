package io.cuvette.internal.graph;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.driver.InstantiatedGraph;
import java.util.Locale;

/** What the driver's refusals of graphs mean. Stateless. */
final class GraphRefusals {
  private GraphRefusals() {}

  /** Why a graph was not instantiated (CUgraphInstantiateResult). */
  static CudaException ofInstantiation(InstantiatedGraph refused, GraphCalls driver) {
    String reason =
        switch (refused.result()) {
          case 2 -> "the graph's structure is not valid, such as a cycle%s";
          case 3 ->
              "the operation of a node cannot be instantiated%s, such as one for launches from the"
                  + " device";
          case 4 ->
              "its work is of several contexts%s, which graphs with conditional nodes cannot have";
          case 5 -> "the handle of a condition has no conditional node%s (expected: one for each)";
          default -> "CUgraphInstantiateResult " + refused.result() + "%s";
        };
    return new CudaException(
        CudaStatus.INVALID_VALUE,
        "cuGraphInstantiateWithParams",
        reason.formatted(at(refused.errorNode(), driver)));
  }

  /** Why an executable was not updated (CUgraphExecUpdateResult); it is as before. */
  static CudaException ofUpdate(GraphUpdateResult refused, GraphCalls driver) {
    String reason =
        switch (refused.result()) {
          case 2 ->
              "the graph has other nodes or edges than the one that was instantiated%s (expected:"
                  + " the same, queued in the same order)";
          case 3 -> "a node has another type than before%s";
          case 4 -> "a kernel is another one%s, which this driver does not support";
          case 5 -> "parameters changed that cannot%s, such as the device or kind of memory";
          case 6 -> "a node cannot be updated%s, or cannot be updated so";
          case 7 -> "a kernel is another one, of other attributes%s";
          case 8 -> "attributes of a node changed%s";
          default -> "CUgraphExecUpdateResult " + refused.result() + "%s";
        };
    return new CudaException(
        CudaStatus.GRAPH_EXEC_UPDATE_FAILURE,
        "cuGraphExecUpdate",
        reason.formatted(at(refused.errorNode(), driver)) + "; the executable is as it was");
  }

  /** Why an executable was not launched that does not free on launch: nothing has changed. */
  static CudaException ofLaunch(CudaException refused) {
    return refused.status() != CudaStatus.INVALID_VALUE
        ? refused
        : refused.explained(
            "memory that an allocation node made in a launch before is not freed, or a free node"
                + " has memory that is not allocated (expected: the memory freed before the next"
                + " launch, by a node or in order of a stream, or an executable with"
                + " GraphOptions.freeOnLaunch); nothing was launched");
  }

  private static String at(long node, GraphCalls driver) {
    if (node == 0) {
      return "";
    }
    String type;
    try {
      type = driver.graphNodeGetType(node).name().toLowerCase(Locale.ROOT).replace('_', ' ') + " ";
    } catch (CudaException e) {
      type = ""; // the text is about the refusal
    }
    return " (%snode 0x%x)".formatted(type, node);
  }
}
