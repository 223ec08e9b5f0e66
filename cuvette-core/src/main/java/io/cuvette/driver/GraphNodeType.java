package io.cuvette.driver;

/** The types of the nodes of graphs (CUgraphNodeType). */
public enum GraphNodeType {
  /** A launch of a kernel. */
  KERNEL,
  /** A copy. */
  MEMCPY,
  /** A fill. */
  MEMSET,
  /** A function of the host. */
  HOST,
  /** A graph within the graph. */
  GRAPH,
  /** No work, but what it waits for and what waits for it. */
  EMPTY,
  /** A wait for an event. */
  WAIT_EVENT,
  /** A record of an event. */
  EVENT_RECORD,
  /** A signal to semaphores of other interfaces. */
  EXT_SEMAS_SIGNAL,
  /** A wait for semaphores of other interfaces. */
  EXT_SEMAS_WAIT,
  /** An allocation. */
  MEM_ALLOC,
  /** A free of what an allocation node of a graph has allocated. */
  MEM_FREE,
  /** Several waits for, and writes of, words of memory. */
  BATCH_MEM_OP,
  /** Graphs within the graph that run depending on a condition. */
  CONDITIONAL;

  private static final GraphNodeType[] VALUES = values();

  /**
   * {@return the type with a number of CUgraphNodeType}
   *
   * @param value the number
   * @throws IllegalStateException if no type of CUDA 13.0 has it
   */
  public static GraphNodeType of(int value) {
    if (value < 0 || value >= VALUES.length) {
      throw new IllegalStateException(
          "CUgraphNodeType: %d (expected: 0 to %d)".formatted(value, VALUES.length - 1));
    }
    return VALUES[value];
  }
}
