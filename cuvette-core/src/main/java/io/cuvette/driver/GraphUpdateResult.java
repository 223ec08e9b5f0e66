package io.cuvette.driver;

/**
 * How the driver answered to an update of an executable graph. Immutable.
 *
 * @param result CUgraphExecUpdateResult: 0 updated, 2 another topology, 3 another type of a node, 4
 *     another kernel where that is not supported, 5 parameters that cannot change, 6 a node that
 *     cannot be updated, 7 another kernel in a way that is not supported, 8 other attributes; 1,
 *     any other error, is thrown
 * @param errorNode the node of the given graph because of which it was refused; 0 if none is named
 * @param errorFromNode the node of the executable's graph that belongs to it; 0 if none is named
 */
public record GraphUpdateResult(int result, long errorNode, long errorFromNode) {}
