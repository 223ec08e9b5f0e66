package io.cuvette.driver;

import java.util.List;
import java.util.Objects;

/**
 * What a node of a graph does. Immutable, but for the memory of a kernel's parameters, which the
 * driver copies when a node is made or changed.
 */
public sealed interface GraphNodeParams {

  /** {@return the type of such nodes} */
  GraphNodeType type();

  /**
   * A launch of a kernel (CUDA_KERNEL_NODE_PARAMS).
   *
   * @param kernel CUkernel, or what a capture noted for it
   * @param shape the grid, in blocks, and the rest of the configuration
   * @param parameters the values of the parameters
   */
  record Kernel(long kernel, LaunchShape shape, LaunchParameters parameters)
      implements GraphNodeParams {
    /** A launch. */
    public Kernel {
      Objects.requireNonNull(shape, "shape");
      Objects.requireNonNull(parameters, "parameters");
    }

    @Override
    public GraphNodeType type() {
      return GraphNodeType.KERNEL;
    }
  }

  /**
   * A copy of consecutive bytes (CUDA_MEMCPY3D, of unified memory, one row).
   *
   * @param target the address
   * @param source the address
   * @param bytes the number of bytes, > 0
   */
  record Copy(long target, long source, long bytes) implements GraphNodeParams {
    @Override
    public GraphNodeType type() {
      return GraphNodeType.MEMCPY;
    }
  }

  /**
   * A fill of consecutive elements (CUDA_MEMSET_NODE_PARAMS, one row).
   *
   * @param target the address, a multiple of the size of an element
   * @param value the value, of which the low bytes count
   * @param elementBytes 1, 2 or 4
   * @param count the number of elements, > 0
   */
  record Fill(long target, int value, int elementBytes, long count) implements GraphNodeParams {
    @Override
    public GraphNodeType type() {
      return GraphNodeType.MEMSET;
    }
  }

  /**
   * A function of the host (CUDA_HOST_NODE_PARAMS), which each launch runs on a thread of the
   * driver. It must return quickly, must not call the driver and must not throw. The driver holds
   * it until the graph, its clones, what was instantiated from them and their launches are gone.
   *
   * @param function the function
   */
  record Host(Runnable function) implements GraphNodeParams {
    /** A function. */
    public Host {
      Objects.requireNonNull(function, "function");
    }

    @Override
    public GraphNodeType type() {
      return GraphNodeType.HOST;
    }
  }

  /** No work. */
  record Empty() implements GraphNodeParams {
    @Override
    public GraphNodeType type() {
      return GraphNodeType.EMPTY;
    }
  }

  /**
   * A record of an event (CUDA_EVENT_RECORD_NODE_PARAMS).
   *
   * @param event CUevent
   */
  record EventRecord(long event) implements GraphNodeParams {
    @Override
    public GraphNodeType type() {
      return GraphNodeType.EVENT_RECORD;
    }
  }

  /**
   * A wait for the last record of an event before the launch (CUDA_EVENT_WAIT_NODE_PARAMS).
   *
   * @param event CUevent
   */
  record EventWait(long event) implements GraphNodeParams {
    @Override
    public GraphNodeType type() {
      return GraphNodeType.WAIT_EVENT;
    }
  }

  /**
   * A graph within the graph (CUDA_CHILD_GRAPH_NODE_PARAMS).
   *
   * @param graph the graph, which is cloned when a node is made or changed; the node's own graph,
   *     which nobody destroys, when a node is asked
   */
  record Child(long graph) implements GraphNodeParams {
    @Override
    public GraphNodeType type() {
      return GraphNodeType.GRAPH;
    }
  }

  /**
   * An allocation of device memory (CUDA_MEM_ALLOC_NODE_PARAMS).
   *
   * @param device the device, from 0
   * @param bytes the number of bytes, > 0
   * @param peers other devices that may access the memory
   * @param address what every launch gives it; 0 before there is a node
   */
  record Allocation(int device, long bytes, List<Integer> peers, long address)
      implements GraphNodeParams {
    /** An allocation. */
    public Allocation {
      peers = List.copyOf(Objects.requireNonNull(peers, "peers"));
    }

    @Override
    public GraphNodeType type() {
      return GraphNodeType.MEM_ALLOC;
    }
  }

  /**
   * A free (CUDA_MEM_FREE_NODE_PARAMS).
   *
   * @param address what an allocation node gave, of this graph or another
   */
  record Free(long address) implements GraphNodeParams {
    @Override
    public GraphNodeType type() {
      return GraphNodeType.MEM_FREE;
    }
  }

  /**
   * Graphs that run depending on a condition (CUDA_CONDITIONAL_NODE_PARAMS). Nodes of this type
   * cannot be asked before CUDA 13.2.
   *
   * @param condition the handle of the condition
   * @param conditionType how the condition is read
   * @param size the number of bodies: 1 or 2 for IF, 1 for WHILE, 1 or more for SWITCH
   */
  record Conditional(long condition, GraphConditionType conditionType, int size)
      implements GraphNodeParams {
    /** A conditional node. */
    public Conditional {
      Objects.requireNonNull(conditionType, "conditionType");
    }

    @Override
    public GraphNodeType type() {
      return GraphNodeType.CONDITIONAL;
    }
  }

  /**
   * What this library does not make, such as a copy of several rows or of an array.
   *
   * @param type the type
   */
  record Other(GraphNodeType type) implements GraphNodeParams {
    /** What is not known. */
    public Other {
      Objects.requireNonNull(type, "type");
    }
  }
}
