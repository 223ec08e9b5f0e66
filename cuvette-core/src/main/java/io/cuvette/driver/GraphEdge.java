package io.cuvette.driver;

/**
 * A dependency between two nodes of a graph. Immutable.
 *
 * @param from the node that runs first
 * @param to the node that waits for it
 */
public record GraphEdge(long from, long to) {}
