package io.cuvette.internal.node;

/**
 * A node of a graph. The driver gives the values of handles again; the number tells apart nodes
 * that had the same one after each other. Immutable.
 *
 * @param handle CUgraphNode
 * @param number when it was added here, counted in its graph; 0 if somebody else has added it
 */
public record NodeId(long handle, long number) {
  @Override
  public String toString() {
    return "node 0x" + Long.toHexString(handle);
  }
}
