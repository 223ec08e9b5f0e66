package io.cuvette.driver;

/**
 * How the driver answered to an instantiation. Immutable.
 *
 * @param executable CUgraphExec; 0 if the graph was refused
 * @param result CUgraphInstantiateResult: 0 instantiated, 2 invalid structure, 3 an operation that
 *     is not supported, 4 several contexts where that is not supported, 5 the handle of a condition
 *     that no conditional node uses; 1, any other error, is thrown
 * @param errorNode the node because of which the graph was refused; 0 if the driver names none
 */
public record InstantiatedGraph(long executable, int result, long errorNode) {}
